"""One tab of the browser, and the page that is in it.

Between the browser and one rendering. Every frame and worker that a page makes is stopped before its first line,
until its requests come to us. A tab shows pages of one host, one after the other, eight at most; it is thrown
away after a page that was late, made workers, or crashed. Waits for nobody longer than the hard limit.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Coroutine
from typing import Any, TypeVar

from skitter.clock import Clock
from skitter.render.base import Answer, Answers, Asked, Ending, PageToRender, Rendered, Screenshots
from skitter.render.cdp import BrowserGone, CallFailed, Connection, Params
from skitter.render.done_rule import Seen, until_done
from skitter.render.layers import Layer
from skitter.render.page_requests import PageRequests
from skitter.render.rules import headers_for_page, is_inside
from skitter.render.scripts import CHANGED, PAGE_HEIGHT, WORLD, quiet, taken
from skitter.render.stopwatch import Stopwatch
from skitter.settings.rendering import RenderSettings

_T = TypeVar("_T")

MOST_PAGES = 8
# What waits to be seen is seen, down to there.
WIDTH, HEIGHT = 1280, 10_000
_LOW = 800
AUTO_ATTACH: Params = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
# A page that tries to leave must get in first.
_ONLY_TESTS = "*://*.invalid/*"
_WITH_DOCUMENT = ("page", "iframe")
# Long enough for answers from a disk; the rest of the wait costs nothing.
_BEFORE_FREEZING = 0.1
_TO_TAKE_TEXT = 2.0
_THUMBNAIL = 0.25
_JPEG_QUALITY = 80


class PageCrashed(Exception):
    pass


class Tab:
    """States: idle; rendering, with `_requests` set; closed. `workers` run by the real clock."""

    def __init__(
        self,
        connection: Connection,
        target: str,
        session: str,
        settings: RenderSettings,
        clock: Clock,
        layers: frozenset[Layer],
    ) -> None:
        self._connection = connection
        self.target = target
        self._session = session
        self._settings = settings
        self._clock = clock
        self._layers = layers
        self._sessions: dict[str, str] = {}
        self._requests: PageRequests | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._finding: set[asyncio.Task[None]] = set()
        self._granted = asyncio.Event()
        self._budget = 0
        self._crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._crashed.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._script = ""
        self._watch = Stopwatch(clock)
        self._freezing: asyncio.TimerHandle | None = None
        self._giving_up: asyncio.TimerHandle | None = None
        self.pages = 0
        self.workers = 0
        self.is_spent = False

    # -- the life of a tab

    async def open(self, agent: str) -> None:
        await self._adopt(self._session, "page")
        await asyncio.gather(
            self._resize(HEIGHT),
            self._send("Emulation.setUserAgentOverride", {"userAgent": agent}),
        )

    async def render(self, page: PageToRender, answers: Answers) -> Rendered:
        """Raises BrowserGone when the browser dies, and nothing for what a page does."""
        self.pages += 1
        self._watch = Stopwatch(self._clock)
        requests = PageRequests(page, answers, self._settings, self._weigh_freezing)
        self._requests = requests
        rendered = Rendered(url=page.url, ending=Ending.DONE)
        try:
            rendered.ending = await self._show(page)
            if rendered.ending is not Ending.NO_PAGE:
                await self._within(self._take(page, rendered), self._settings.hard_limit)
        except TimeoutError:
            rendered.ending = Ending.STUCK
        except PageCrashed:
            rendered.ending = Ending.CRASHED
        except CallFailed:
            rendered.ending = Ending.CRASHED if self._crashed.done() else Ending.STUCK
        finally:
            self._end_requests(requests)
        _fill(rendered, requests, self._watch)
        if rendered.ending is Ending.DONE and not self.workers and self.pages < MOST_PAGES:
            await self._rest()
        else:
            self.is_spent = True
        return rendered

    def close(self) -> None:
        """The sessions end with their context."""
        self.is_spent = True
        for session in (self._session, *self._sessions):
            self._connection.forget(session)
        for task in (*self._tasks, *self._finding):
            task.cancel()

    # -- showing a page

    async def _show(self, page: PageToRender) -> Ending:
        try:
            return await self._within(self._navigate(page), self._settings.soft_limit)
        except TimeoutError:
            self._unfreeze()
            for session in (self._session, *self._sessions):
                self._send("Runtime.terminateExecution", session=session)
            self._send("Emulation.setVirtualTimePolicy", {"policy": "pause"})
            self._send("Emulation.setScriptExecutionDisabled", {"value": True})
            self._send("Runtime.terminateExecution")
            return Ending.LATE

    async def _navigate(self, page: PageToRender) -> Ending:
        if self.pages > 1:
            self._send("Page.setWebLifecycleState", {"state": "active"})
        if self._script:
            self._send("Page.removeScriptToEvaluateOnNewDocument", {"identifier": self._script})
        if Layer.SCRIPT in self._layers:
            added = await self._send(
                "Page.addScriptToEvaluateOnNewDocument", {"source": quiet(page.fetched_at)}
            )
            self._script = str(added.get("identifier", ""))
        await self._send("Emulation.setVirtualTimePolicy", {"policy": "pause"})
        shown = await self._send("Page.navigate", {"url": page.url})
        if shown.get("errorText"):
            return Ending.NO_PAGE
        await until_done(self)
        return Ending.DONE

    async def grant(self, milliseconds: int) -> None:
        self._granted.clear()
        self._budget = milliseconds
        try:
            await self._run_clock()
            await self._granted.wait()
        finally:
            self._budget = 0

    def _run_clock(self) -> asyncio.Future[Params]:
        policy = {"policy": "pauseIfNetworkFetchesPending", "budget": self._budget}
        return self._send("Emulation.setVirtualTimePolicy", policy)

    async def look(self) -> tuple[Seen, bool]:
        links, text, moves = await self._ask(CHANGED)
        made = self._requests.made if self._requests is not None else 0
        return (int(links), int(text), made), bool(moves) or self.workers > 0

    async def _take(self, page: PageToRender, rendered: Rendered) -> None:
        found: Params = await self._ask(taken(self._settings.max_html))
        rendered.html, rendered.is_cut = str(found["html"]), bool(found["cut"])
        rendered.text = str(found["text"])
        if page.screenshots:
            rendered.screenshots = await self._photograph()

    async def _ask(self, expression: str) -> Any:
        """In a world of our own: what the page made of its prototypes does not hold there."""
        made = {"frameId": self.target, "worldName": WORLD}
        world = await self._send("Page.createIsolatedWorld", made)
        call = {"expression": expression, "contextId": world["executionContextId"], "returnByValue": True}
        answer = await self._send("Runtime.evaluate", call)
        if "exceptionDetails" in answer or "value" not in answer.get("result", {}):
            raise CallFailed("the page has no document")
        return answer["result"]["value"]

    async def _photograph(self) -> Screenshots:
        """As high as the page is: in a window that is higher, every page would be as high as the window."""
        await self._resize(_LOW)
        height = max(1, min(int(await self._ask(PAGE_HEIGHT)), HEIGHT))
        await self._resize(height)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
        shots = []
        for scale in (1, _THUMBNAIL):
            shot = await self._send(
                "Page.captureScreenshot",
                {"format": "jpeg", "quality": _JPEG_QUALITY, "clip": {**clip, "scale": scale}},
            )
            shots.append(binascii.a2b_base64(str(shot["data"])))
        await self._resize(HEIGHT)
        return Screenshots(whole=shots[0], thumbnail=shots[1])

    def _resize(self, height: int) -> asyncio.Future[Params]:
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
        return self._send("Emulation.setDeviceMetricsOverride", size)

    async def _within(self, work: Coroutine[Any, Any, _T], limit: float) -> _T:
        """By the page's stopwatch. Raises TimeoutError, or PageCrashed."""
        task: asyncio.Future[_T] = asyncio.ensure_future(work)
        either: set[asyncio.Future[Any]] = {task, self._crashed}
        try:
            while not task.done():
                left = limit - self._watch.ran
                if left <= 0:
                    raise TimeoutError
                await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if self._crashed.done() and not task.done():
                    raise PageCrashed
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _rest(self) -> None:
        """Nothing of the page goes on until the next one comes."""
        self._send("Emulation.setVirtualTimePolicy", {"policy": "pause"})
        self._send("Page.setWebLifecycleState", {"state": "frozen"})

    # -- frames and workers

    async def _adopt(self, session: str, kind: str) -> None:
        """Runs only when its requests come to us. A worker has none of its own where the browser says so: they
        come by the frame that made it."""
        self._connection.listen(session, lambda method, params: self._on_event(session, method, params))
        calls = [self._send("Target.setAutoAttach", AUTO_ATTACH, session)]
        patterns = "*" if Layer.INTERCEPTION in self._layers else _ONLY_TESTS
        calls.append(self._send("Fetch.enable", {"patterns": [{"urlPattern": patterns}]}, session))
        if kind in _WITH_DOCUMENT:
            calls.append(self._send("Page.enable", session=session))
        done = await asyncio.gather(*calls, return_exceptions=True)
        if kind in _WITH_DOCUMENT and any(isinstance(each, CallFailed) for each in done):
            return
        script = quiet(self._requests.page.fetched_at) if self._requests is not None else ""
        if script and Layer.SCRIPT in self._layers and session != self._session:
            if kind in _WITH_DOCUMENT:
                self._send("Page.addScriptToEvaluateOnNewDocument", {"source": script}, session)
            else:
                self._send("Runtime.evaluate", {"expression": script}, session)
        self._send("Runtime.runIfWaitingForDebugger", session=session)

    def _on_event(self, session: str, method: str, params: Params) -> None:
        match method:
            case "Fetch.requestPaused":
                self._begin(self._answer(session, params), self._finding)
            case "Target.attachedToTarget":
                child, kind = str(params["sessionId"]), str(params["targetInfo"]["type"])
                self._sessions[child] = kind
                self.workers += kind not in _WITH_DOCUMENT
                self._begin(self._adopt(child, kind), self._tasks)
            case "Target.detachedFromTarget":
                self._sessions.pop(str(params["sessionId"]), None)
                self._connection.forget(str(params["sessionId"]))
            case "Page.javascriptDialogOpening":
                self._send("Page.handleJavaScriptDialog", {"accept": False}, session)
            case "Emulation.virtualTimeBudgetExpired":
                if self._watch.is_running:  # else it is of before the freezing
                    self._granted.set()
            case "Inspector.targetCrashed" if session == self._session:
                if not self._crashed.done():
                    self._crashed.set_result(None)
            case _:
                pass

    def _begin(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(_unless_gone(work))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def count_popup(self) -> None:
        if self._requests is not None:
            self._requests.popups += 1

    # -- requests

    async def _answer(self, session: str, paused: Params) -> None:
        request: Params = paused["request"]
        number = {"requestId": paused["requestId"]}
        asked = Asked(
            url=str(request["url"]),
            method=str(request["method"]),
            kind=str(paused.get("resourceType", "Other")),
            headers={str(name): str(value) for name, value in request.get("headers", {}).items()},
        )
        if is_inside(asked.url):
            self._send("Fetch.continueRequest", number, session)
            return
        requests = self._requests
        answer: Answer | None = None
        is_main = asked.kind == "Document" and paused.get("frameId") == self.target
        try:
            if requests is not None:
                answer = (
                    requests.navigate(asked.url, asked.method) if is_main else await requests.answer(asked)
                )
        finally:  # also when the wait was given up
            if answer is None:
                # A navigation that is aborted leaves the page as it is; any other word shows an error page.
                reason = {"errorReason": "Aborted" if is_main else "BlockedByClient"}
                self._send("Fetch.failRequest", {**number, **reason}, session)
            else:
                self._send("Fetch.fulfillRequest", {**number, **_fulfilled(answer)}, session)

    def _end_requests(self, requests: PageRequests) -> None:
        self._unfreeze()
        requests.is_over = True
        for task in tuple(self._finding):
            task.cancel()

    # -- waiting for answers

    def _weigh_freezing(self) -> None:
        """Whoever waits for answers alone is frozen a little later; whoever gets one goes on at once."""
        self._unfreeze()
        requests = self._requests
        if requests is not None and requests.waiting and not requests.is_over:
            loop = asyncio.get_running_loop()
            self._freezing = loop.call_later(_BEFORE_FREEZING, self._freeze)

    def _freeze(self) -> None:
        self._freezing = None
        self._watch.pause()
        # The clock of a frozen page would run to its end: what is on its way does not stop it then.
        self._send("Emulation.setVirtualTimePolicy", {"policy": "pause"})
        self._send("Page.setWebLifecycleState", {"state": "frozen"})
        left = max(0.0, self._settings.patience - self._watch.rested)
        self._giving_up = asyncio.get_running_loop().call_later(left, self._give_up)

    def _unfreeze(self) -> None:
        for timer in (self._freezing, self._giving_up):
            if timer is not None:
                timer.cancel()
        self._freezing = self._giving_up = None
        if not self._watch.is_running:
            self._watch.go_on()
            self._send("Page.setWebLifecycleState", {"state": "active"})
            # Once frozen it counts as hidden, and has no animation frames: an app that waits for one stays empty.
            self._send("Emulation.setFocusEmulationEnabled", {"enabled": True})
            if self._budget:
                self._run_clock()

    def _give_up(self) -> None:
        for task in tuple(self._finding):
            task.cancel()

    def _send(self, method: str, params: Params | None = None, session: str = "") -> asyncio.Future[Params]:
        return self._connection.send(method, params, session or self._session)


def _fulfilled(answer: Answer) -> Params:
    return {
        "responseCode": answer.status,
        "responseHeaders": headers_for_page(answer.headers),
        "body": binascii.b2a_base64(answer.body, newline=False).decode(),
    }


def _fill(rendered: Rendered, requests: PageRequests, watch: Stopwatch) -> None:
    rendered.used = tuple(requests.used)
    rendered.missing = tuple(requests.missing.values())
    rendered.refused = tuple(requests.refused.values())
    rendered.leads_to = tuple(requests.leads_to)
    rendered.popups = requests.popups
    rendered.requests = requests.made
    rendered.seconds, rendered.frozen = watch.ran, watch.rested


async def _unless_gone(work: Coroutine[Any, Any, None]) -> None:
    """What is on its way when a browser dies, or refuses, has nobody to tell."""
    try:
        await work
    except (BrowserGone, CallFailed):
        return
