"""A crawl that is given no peace: killed, paused past its leases, its clock set, its files torn, its disk filled.

What happens when is drawn from a seed. `Torment.run` does it all to one crawl, starts the same command again each
time, at last lets it finish, and says what it did and when. Judges nothing but how the processes ended.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from bench._account import CLOCKS, Cause, Death
from bench._crawls import LogSize, start
from bench._damage import LogGrowth, SmallDisk, dirty_archive, dirty_store, tear_store
from bench._jumps import Run, Wall, library
from bench._report import progress
from bench._starved import Hunger, Span

INTERRUPTED, OUR_FAULT = 130, 1
# Spread over what the web will see; the rest belongs to the last run.
LAST_ACT = 0.85
EARLIEST, LATEST = 0.05, 1.5
DRAIN = 0.3
JUMPS, FARTHEST = 0.25, 1800.0
# The last run's clock is ahead of every other: an appointment made by a clock that was ahead comes due.
AHEAD = 60.0
PAUSE = (1.1, 1.6)
SPARE = 300_000
FULL_AT_LAST = 30.0
PAUSED, GOING_ON = b"paused: ", b"room again: going on"
KILLED_WHILE_PAUSED = 0.5
GIVE_UP = 3600.0


class Act(StrEnum):
    KILL = "kill"
    EARLY_KILL = "kill while starting"
    DRAIN_KILL = "kill while draining"
    PAUSE = "pause past the lease"
    FULL = "disk full"
    LEAP = "clock set while it runs"


class Damage(StrEnum):
    """To files, after a kill."""

    ALL = "all"
    TEAR = "tear"
    NONE = "none"


class Due(NamedTuple):
    share: float
    act: Act


class Torments(msgspec.Struct, kw_only=True):
    """What was done. `deaths` are ends of processes; `others` is what else may have taken requests with it."""

    deaths: list[float] = msgspec.field(default_factory=list)
    others: list[Death] = msgspec.field(default_factory=list)
    pauses: list[Span] = msgspec.field(default_factory=list)
    starved: list[Span] = msgspec.field(default_factory=list)
    runs: list[Run] = msgspec.field(default_factory=list)
    history: list[tuple[float, str]] = msgspec.field(default_factory=list)
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    faults: list[str] = msgspec.field(default_factory=list)
    code: int = -1
    seconds: float = 0.0


def planned(choose: random.Random, *, kills: int, pauses: int, fills: int, leaps: int = 0) -> list[Due]:
    kinds = [Act.KILL, Act.EARLY_KILL, Act.KILL, Act.DRAIN_KILL]
    acts = [kinds[number % len(kinds)] for number in range(kills)]
    acts += [Act.PAUSE] * pauses + [Act.FULL] * fills + [Act.LEAP] * leaps
    choose.shuffle(acts)
    shares = sorted(choose.uniform(0, LAST_ACT) for _ in acts)
    return [Due(share, act) for share, act in zip(shares, acts, strict=True)]


class Torment:
    """States: no child (a run is to be started), or a child that runs, with its clock and beginning."""

    def __init__(
        self,
        command: list[str],
        folder: Path,
        size: LogSize,
        expected: int,
        choose: random.Random,
        lease: float,
        disk: SmallDisk | None,
        *,
        jumps: float = JUMPS,
        damage: Damage = Damage.ALL,
    ) -> None:
        """`jumps` is the share of runs with another clock, `damage` what becomes of files after a kill."""
        self._command = command
        self._folder = folder
        self._size = size
        self._expected = expected
        self._choose = choose
        self._lease = lease
        self._disk = disk
        self._jumps = jumps if library() else 0.0
        self._kind_of_damage = damage
        self._growth = LogGrowth(folder / "frontier")
        self._hunger = Hunger()
        self._child: subprocess.Popen[bytes] | None = None
        self._wall = Wall()
        self._done = Torments()
        self._words = ""
        self._next_words = 0.0

    def run(self, acts: list[Due], output: IO[bytes]) -> Torments:
        self._output = output
        self._began = time.monotonic()
        idle = 0
        for number, due in enumerate(acts, start=1):
            self._words = f"{number} of {len(acts)}: {due.act}"
            idle = 0 if self._act(due) else idle + 1
            if idle == 3:  # nothing is left to crawl
                break
        self._words = "left to finish"
        self._end_kindly()
        self._go_ahead()
        self._start(jump=False)
        self._done.code = self._await(lambda: False) or 0
        self._note_end()
        self._done.starved = self._hunger.spans
        self._done.seconds = time.monotonic() - self._began
        return self._done

    def _act(self, due: Due) -> bool:
        """False when the crawl had ended before it was time."""
        if self._child is None:
            self._start(jump=self._choose.random() < self._jumps)
        if due.act is Act.EARLY_KILL:
            self._exits_within(self._choose.uniform(EARLIEST, LATEST))
        elif self._wait_for(due.share) is not None:
            return self._ended_early()
        match due.act:
            case Act.PAUSE:
                self._pause()
            case Act.FULL:
                self._fill()
            case Act.LEAP:
                self._leap()
            case Act.DRAIN_KILL:
                self._interrupt()
                self._kill(due.act)
            case _:
                self._kill(due.act)
        return True

    # -- acts

    def _kill(self, act: Act, *, damage: bool = True) -> None:
        child = self._child
        if child is None or child.poll() is not None:
            # it was quicker: the next run gets this kill while it starts
            self._note_end()
            self._start(jump=False)
            self._exits_within(self._choose.uniform(EARLIEST, LATEST))
            child, act = self._child, Act.EARLY_KILL
        assert child is not None
        self._hunger.look(child.pid)
        child.kill()
        child.wait()
        self._count(act)
        self._note_end(death=True)
        if damage:
            self._damage()

    def _interrupt(self) -> None:
        # Python has a Ctrl-C of its own while it starts: wait for the crawl's first words.
        if self._await(lambda: self._said() > self._silent) is None and self._child is not None:
            self._child.send_signal(signal.SIGINT)
            self._exits_within(self._choose.uniform(0, DRAIN))

    def _pause(self) -> None:
        assert self._child is not None
        began = time.time()
        self._child.send_signal(signal.SIGSTOP)
        time.sleep(self._lease * self._choose.uniform(*PAUSE))  # the pause itself is what is tried
        self._child.send_signal(signal.SIGCONT)
        self._done.pauses.append((began, time.time()))
        self._count(Act.PAUSE)

    def _fill(self) -> None:
        """The crawl must pause and say so, also when it is started on the full disk; killed there, or given room
        again, it goes on."""
        if self._disk is None:
            return
        self._count(Act.FULL)
        gone_on = self._notes(GOING_ON)
        try:
            waits = self._take_room(self._disk)
        finally:
            self._disk.free()
        if waits:
            # While it still looks for room, it would not notice that there is none again.
            self._await(lambda: self._notes(GOING_ON) > gone_on)

    def _take_room(self, disk: SmallDisk) -> bool:
        """True when it is left waiting for room."""
        for spare in (self._choose.randint(0, SPARE), 0):
            if self._child is None:
                self._start(jump=False)
            paused = self._notes(PAUSED)
            disk.fill(spare)
            full_at = time.time()
            if not self._has_paused(paused):
                return False
            self._note_pause(full_at)
            if self._choose.random() > KILLED_WHILE_PAUSED:
                return True
            self._kill(Act.KILL, damage=False)  # there is no room for it
        return False

    def _leap(self) -> None:
        """A crawl that runs is not to notice; one that pauses for a full disk looks at the clock anew."""
        self._set_clock()
        self._clocks.append((self._wall.offset, time.time()))
        self._count(Act.LEAP)

    def _has_paused(self, before: int) -> bool:
        deadline = time.monotonic() + FULL_AT_LAST
        code = self._await(lambda: self._notes(PAUSED) > before or time.monotonic() > deadline)
        if code is not None:
            self._done.faults.append(f"exit code {code} on a full disk")
            self._note_end(death=True)
        elif self._notes(PAUSED) == before:
            self._done.faults.append("a full disk was not noticed")
        return code is None and self._notes(PAUSED) > before

    def _note_pause(self, full_at: float) -> None:
        """What was not committed was dropped at some moment since; closing everything takes seconds on a loaded
        machine."""
        now = time.time()
        moments = [full_at + second for second in range(1, int(now - full_at) + 1)]
        self._done.others.extend(Death(at, Cause.FULL, full_at) for at in (*moments, now))

    def _notes(self, words: bytes) -> int:
        return Path(self._output.name).read_bytes().count(words)

    def _damage(self) -> None:
        """Three times in five; a torn log takes its last commits with it, as a power loss would."""
        frontier, archive = self._folder / "frontier", self._folder / "archive"
        drawn = self._choose.randrange(5)
        match {Damage.ALL: drawn, Damage.TEAR: 0, Damage.NONE: 4}[self._kind_of_damage]:
            case 0:
                if written := tear_store(frontier, self._growth, self._choose):
                    self._count("logs torn")
                    event = self._done.deaths[-1]
                    self._done.others.extend(Death(at + CLOCKS, Cause.TEAR, event) for at in written)
            case 1:
                if dirty_store(frontier, self._choose):
                    self._count("logs dirtied")
            case 2:
                if dirty_archive(archive, self._choose):
                    self._count("segments dirtied")

    def _count(self, what: str) -> None:
        self._done.counts[what] += 1
        self._done.history.append((time.time(), what))

    # -- runs

    def _start(self, *, jump: bool) -> None:
        if jump:
            self._set_clock()
            self._count("clock jumps")
        self._silent = self._said()
        self._clocks = [(self._wall.offset, time.time())]
        self._child = start(self._command, self._output, self._wall.environ if self._jumps else {})

    def _set_clock(self) -> None:
        self._wall.set(round(self._choose.uniform(-FARTHEST, FARTHEST), 3))

    def _go_ahead(self) -> None:
        if self._jumps:
            self._wall.set(max((run.offset for run in self._done.runs), default=-AHEAD) + AHEAD)

    def _note_end(self, *, death: bool = False) -> None:
        """After the process is gone: a request that the web had not read yet is stamped with the closing of its
        connection, which the kernel does while the process dies."""
        now = time.time()
        if self._child is not None:
            self._done.runs.extend(Run(offset, since, now) for offset, since in self._clocks)
        if death:
            self._done.deaths.append(now)
        self._child = None

    def _ended_early(self) -> bool:
        child = self._child
        assert child is not None
        code = child.returncode
        self._note_end(death=code == OUR_FAULT)
        self._count("ended before its time")
        if code not in (0, 3):
            self._done.faults.append(f"exit code {code} without cause")
        self._go_ahead()
        return False

    def _end_kindly(self) -> None:
        if self._child is not None:
            self._interrupt()
            code = self._child.wait(FULL_AT_LAST)
            if code not in (0, 3, INTERRUPTED):
                self._done.faults.append(f"exit code {code} after Ctrl-C")
            self._note_end()

    # -- waiting

    def _said(self) -> int:
        return os.fstat(self._output.fileno()).st_size

    def _wait_for(self, share: float) -> int | None:
        """Until the web has seen its share of the requests, and then somewhere within the next few pulses."""
        target = int(share * self._expected)
        code = self._await(lambda: self._size.look() >= target)
        return code if code is not None else self._exits_within(self._choose.uniform(0, 0.2))

    def _exits_within(self, seconds: float) -> int | None:
        assert self._child is not None
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _await(self, there: Callable[[], bool]) -> int | None:
        """The exit code when the crawl was quicker."""
        assert self._child is not None
        while not there():
            try:
                return self._child.wait(0.05)
            except subprocess.TimeoutExpired:
                self._growth.look()
                self._hunger.look(self._child.pid)
                self._tell()
        return None

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._began > GIVE_UP:
            assert self._child is not None
            self._child.kill()
            raise SystemExit(f"the crawl did not end within {GIVE_UP:g} s")
        if now > self._next_words:
            self._next_words = now + 1
            seen = f"{now - self._began:5.0f} s  {self._size.look():,} of {self._expected:,} requests"
            progress(f"{seen}; {self._words}; clock {self._wall.offset:+.0f} s")
