"""One browser process, from its start to its death: contexts, tabs, and how much memory it takes.

Below the renderer, which decides when to start and when to replace it. It is started by `launch.py`, talks over
pipes, opens no port, and lives in a folder of its own that is removed with it. It raises `BrowserGone`
and, at its start, `RenderFailed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from skitter.clock import Clock
from skitter.confinement import child_environment
from skitter.errors import RenderFailed, UsageError
from skitter.render.cdp import BrowserGone, CallFailed, Connection, Params
from skitter.render.flags import flags
from skitter.render.launch import NO_FILTER
from skitter.render.layers import ALL, Layer
from skitter.render.profiles import Profile, sweep
from skitter.render.tab import AUTO_ATTACH, Tab
from skitter.settings.rendering import RenderSettings

# Debian's command is a shell script around the first one, and would stand between us and the browser's death.
PROGRAMS = (
    "/usr/lib/chromium/chromium-headless-shell",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "headless_shell",
)
# On a machine that is busy otherwise a start takes ten times as long.
_LONGEST_START = 60.0
_LONGEST_CALL = 3.0
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_KEPT_WORDS = 4000


def find_program(settings: RenderSettings) -> str:
    """Raises UsageError where there is no browser."""
    for name in (settings.browser,) if settings.browser else PROGRAMS:
        if found := shutil.which(name):
            return found
    raise UsageError(
        f"there is no {settings.browser or PROGRAMS[1]} to render pages with: install it (on Debian: apt install "
        f"chromium-headless-shell), or name another headless browser with render.browser"
    )


class Browser:
    """Alive from `start` until `is_alive` is false; then it can only be closed."""

    def __init__(
        self,
        settings: RenderSettings,
        clock: Clock,
        agent: str,
        *,
        pictures: bool = False,
        layers: frozenset[Layer] = ALL,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._agent = agent
        self._pictures = pictures
        self._layers = layers
        self._connection = Connection()
        self._process: Process | None = None
        self._profile: Profile | None = None
        self._words: asyncio.Task[str] | None = None
        self._tabs: dict[str, Tab] = {}
        self._opening: dict[str, asyncio.Future[Tab]] = {}
        self._begun: set[asyncio.Task[None]] = set()
        self.started_at = 0.0
        self.pages = 0
        self.busy = 0
        self._is_closed = False

    @property
    def is_alive(self) -> bool:
        return self._connection.is_open

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    # -- its start and its end

    async def start(self) -> None:
        program = find_program(self._settings)
        self.started_at = self._clock.now()
        sweep()
        self._profile = Profile()
        ours, theirs = os.pipe(), os.pipe()  # what we write they read, and the other way round
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *(
                    "-P",
                    "-m",
                    "skitter.render.launch",
                    *self._words_for(program, self._profile.path, ours[0], theirs[1]),
                ),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=PIPE,
                env=child_environment(),
                pass_fds=(ours[0], theirs[1]),
                start_new_session=True,
            )
        finally:
            os.close(ours[0])
            os.close(theirs[1])
        self._words = asyncio.create_task(_last_of(self._process.stderr))
        await self._connection.open(theirs[0], ours[1])
        self._connection.listen("", self._on_event)
        try:
            async with asyncio.timeout(_LONGEST_START):
                await self._call("Browser.getVersion")
                await self._call("Target.setAutoAttach", AUTO_ATTACH)
        except (BrowserGone, CallFailed, TimeoutError):
            raise await self._start_failed(program) from None

    def _words_for(self, program: str, profile: str, read: int, write: int) -> list[str]:
        settings = self._settings
        words = {
            "read": read,
            "write": write,
            "memory": settings.process_memory,
            "nice": settings.nice,
            "parent": os.getpid(),
            "layers": ",".join(sorted(self._layers)),
            "user": settings.user if os.geteuid() == 0 else "",
            "profile": profile,
        }
        chosen = flags(
            profile,
            silent=Layer.FLAGS in self._layers,
            sandbox=settings.sandbox,
            pictures=self._pictures,
            is_shell="headless" in os.path.basename(program),
        )
        return [*(f"--{name}={value}" for name, value in words.items()), "--", program, *chosen]

    async def _start_failed(self, program: str) -> RenderFailed:
        words = self._words
        await self.close()
        said = await words if words is not None else ""
        code = self._process.returncode if self._process is not None else None
        if code == NO_FILTER:
            return RenderFailed(
                "pages are not rendered: this kernel has no seccomp filter to keep a browser off the network"
            )
        if "sandbox" in said.lower():
            return RenderFailed(
                f"{program} finds no sandbox: allow user name spaces here, or set render.sandbox = false"
            )
        last = said.strip().splitlines()[-1:] or [f"exit status {code}"]
        return RenderFailed(f"{program} does not start: {last[0][:300]}")

    async def close(self) -> None:
        """Kills all of its processes: it has nothing to lose."""
        if self._is_closed:
            return
        self._is_closed = True
        self._connection.close()
        for tab in self._tabs.values():
            tab.close()
        self._tabs.clear()
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if self._words is not None:
            await asyncio.gather(self._words, return_exceptions=True)
        if self._profile is not None:
            self._profile.remove()

    # -- tabs

    async def open_tab(self) -> Tab:
        """In a context of its own: no cookie, cache or storage of another one."""
        context = str((await self._call("Target.createBrowserContext"))["browserContextId"])
        denied = {"behavior": "deny", "browserContextId": context}
        self._connection.send("Browser.setDownloadBehavior", denied)
        tab: asyncio.Future[Tab] = asyncio.get_running_loop().create_future()
        self._opening[context] = tab
        # Answered only when the target runs, which it does not before its tab lets it.
        self._connection.send("Target.createTarget", {"url": "about:blank", "browserContextId": context})
        try:
            async with asyncio.timeout(_LONGEST_START):
                return await tab
        finally:
            self._opening.pop(context, None)

    async def close_tab(self, tab: Tab) -> bool:
        """Whether the browser did so; one that does not answer is of no use any more."""
        context = next((name for name, each in self._tabs.items() if each is tab), "")
        tab.close()
        if not self._tabs.pop(context, None):
            return self.is_alive
        try:
            async with asyncio.timeout(_LONGEST_CALL):
                await self._call("Target.disposeBrowserContext", {"browserContextId": context})
        except (BrowserGone, CallFailed, TimeoutError):
            return False
        return True

    def close_tab_soon(self, tab: Tab) -> None:
        """Of a page that nobody waits for any more."""
        self._begin(self._close_unasked(tab))

    async def _close_unasked(self, tab: Tab) -> None:
        await self.close_tab(tab)

    async def answers(self) -> bool:
        """Whether a new tab can still be opened: a dead zygote is seen in no other way."""
        try:
            async with asyncio.timeout(_LONGEST_CALL):
                tab = await self.open_tab()
        except (BrowserGone, CallFailed, TimeoutError):
            return False
        return await self.close_tab(tab)

    def _on_event(self, method: str, params: Params) -> None:
        if method != "Target.attachedToTarget":
            return
        about: Params = params["targetInfo"]
        opening = self._opening.get(str(about.get("browserContextId")))
        opener = about.get("openerId")
        if about["type"] == "page" and opener is None and opening is not None:
            names = str(about["browserContextId"]), str(about["targetId"]), str(params["sessionId"])
            self._begin(self._open(opening, *names))
            return
        for tab in self._tabs.values():
            if tab.target == opener:
                tab.count_popup()
        self._begin(self._shut(str(about["targetId"]), str(params["sessionId"])))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _shut(self, target: str, session: str) -> None:
        """A popup, or a worker that pages share. It must run before it is closed: while a popup waits, the page
        that opened it does too. So its requests are held first, and nobody answers them."""
        with contextlib.suppress(BrowserGone, CallFailed):
            await self._connection.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, session)
            self._connection.send("Runtime.runIfWaitingForDebugger", session=session)
        self._connection.send("Target.closeTarget", {"targetId": target})

    async def _open(self, opening: asyncio.Future[Tab], context: str, target: str, session: str) -> None:
        tab = Tab(self._connection, target, session, self._settings, self._clock, self._layers)
        self._tabs[context] = tab
        try:
            await tab.open(self._agent)
        except (BrowserGone, CallFailed) as error:
            if not opening.done():
                opening.set_exception(error)
        else:
            if not opening.done():
                opening.set_result(tab)

    def _call(self, method: str, params: Params | None = None) -> asyncio.Future[Params]:
        return self._connection.send(method, params)

    # -- what it costs

    def processes(self) -> list[int]:
        """All of its own, by their session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    # The name of a program, in brackets, may hold anything.
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    if int(fields[3]) == self.pid and fields[0] != "Z":
                        found.append(int(entry.name))
        return found

    def memory(self) -> int:
        """Bytes that no other process shares with it."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError, ValueError):
                resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
                total += (int(resident) - int(shared)) * _PAGE_SIZE
        return total


async def _last_of(stream: asyncio.StreamReader | None) -> str:
    kept = b""
    while stream is not None and (piece := await stream.read(1 << 16)):
        kept = (kept + piece)[-_KEPT_WORDS:]
    return kept.decode("utf-8", "replace")
