"""What happens to a server and its workers while they crawl: kills, pauses past the lease, clocks that disagree.

What happens to whom, and when, is drawn from a seed. `Unrest.run` does it all, starts everybody again each time,
at last lets them finish, and says what it did. Judges nothing but how the processes ended.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bench._company import Company, Process
from bench._crawls import LogSize
from bench._jumps import library
from bench._report import progress
from bench._torment import (
    AHEAD,
    DRAIN,
    EARLIEST,
    FARTHEST,
    GIVE_UP,
    JUMPS,
    LATEST,
    PAUSE,
    Act,
    Torments,
    planned,
)

# Of what happens, this share happens to the server.
SERVER = 0.2
LONGEST_REST = 0.5
FAREWELL = 60.0
_LOOK = 0.02
# What the server has to say of itself costs it time, too.
_ASK = 1.0
# Told to end before it could listen, Python ends by the signal.
_DRAINED = (0, -15)


class Strike(NamedTuple):
    share: float
    act: Act
    member: int


def strikes(choose: random.Random, *, kills: int, pauses: int, workers: int) -> list[Strike]:
    """The server is member 0."""
    acts = planned(choose, kills=kills, pauses=pauses, fills=0)
    return [
        Strike(due.share, due.act, 0 if choose.random() < SERVER else choose.randint(1, workers))
        for due in acts
    ]


class Unrest:
    def __init__(
        self,
        company: Company,
        size: LogSize,
        expected: int,
        choose: random.Random,
        lease: float,
        give_up: float = GIVE_UP,
    ) -> None:
        self._give_up = give_up
        self._company = company
        self._size = size
        self._expected = expected
        self._choose = choose
        self._lease = lease
        self._done = company.done
        self._words = ""
        self._next_words = 0.0

    def run(self, planned: list[Strike]) -> Torments:
        self._began = time.monotonic()
        for member in self._company.members:
            self._start(member)
        for number, strike in enumerate(planned, start=1):
            member = self._company.members[strike.member]
            self._words = f"{number} of {len(planned)}: {strike.act}, {member.name}"
            if not self._until(partial(self._has_seen, int(strike.share * self._expected))):
                break
            self._rest(self._choose.uniform(0, 0.2))
            self._strike(strike.act, member)
        self._finish()
        self._done.seconds = time.monotonic() - self._began
        return self._done

    def _strike(self, act: Act, member: Process) -> None:
        match act:
            case Act.PAUSE:
                self._company.stop(member, self._lease * self._choose.uniform(*PAUSE))
                self._count(act, member)
                return
            case Act.EARLY_KILL:
                self._kill(Act.KILL, member)
                self._start(member)
                self._rest(self._choose.uniform(EARLIEST, LATEST))
            case Act.DRAIN_KILL if member.wakes_at is None:
                member.tell_to_end()
                self._rest(self._choose.uniform(0, DRAIN))
        self._kill(act, member)
        self._rest(self._choose.uniform(0, LONGEST_REST))
        self._start(member)

    def _kill(self, act: Act, member: Process) -> None:
        code = member.code
        if code is not None:
            # Told to end, it was quicker.
            self._done.counts["drained in time"] += 1
            if act is not Act.DRAIN_KILL or code not in _DRAINED:
                self._done.faults.append(f"{member.name} ended with {code} without cause")
            self._company.note_end(member)
            return
        self._company.kill(member)
        self._count(act, member)

    def _count(self, act: Act, member: Process) -> None:
        self._done.counts[f"{act}, {'server' if member is self._company.server else 'worker'}"] += 1

    def _start(self, member: Process) -> None:
        offset = member.offset
        if library() and self._choose.random() < JUMPS:
            offset = round(self._choose.uniform(-FARTHEST, FARTHEST), 3)
            self._done.counts["clock jumps"] += 1
        self._company.start(member, offset)

    # -- the end

    def _finish(self) -> None:
        """With a server whose clock is ahead of every other: an appointment by one that was ahead comes due."""
        self._words = "left to finish"
        self._company.wake_all()
        self._until(lambda: self._company.is_up)
        server = self._company.server
        self._end(server)
        self._company.start(server, max(run.offset for run in self._done.runs) + AHEAD)
        self._until(lambda: False)
        for member in (*self._company.workers, server):
            self._end(member)
        self._done.code = server.code or 0

    def _end(self, member: Process) -> None:
        member.tell_to_end()
        code = member.ends_within(FAREWELL)
        if code is None:
            member.kill()
        if code not in _DRAINED:
            self._done.faults.append(f"{member.name} ended with {code} when it was told to end")
        self._company.note_end(member)

    # -- waiting

    def _has_seen(self, requests: int) -> bool:
        return self._size.look() >= requests

    def _until(self, there: Callable[[], bool]) -> bool:
        """False when nothing is left to crawl before that."""
        next_stats = 0.0
        while not there():
            self._rest(_LOOK)
            self._tell()
            if time.monotonic() > next_stats:
                next_stats = time.monotonic() + _ASK
                if self._company.is_done():
                    return False
        return True

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            self._company.look()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, _LOOK))

    def _tell(self) -> None:
        now = time.monotonic()
        for member in self._company.members:
            if (code := member.code) is not None:
                self._done.faults.append(f"{member.name} ended with {code} without cause")
                self._company.note_end(member)
                self._start(member)
        if now - self._began > self._give_up:
            raise SystemExit(f"the crawl did not end within {self._give_up:g} s")
        if now > self._next_words:
            self._next_words = now + 1
            seen = f"{now - self._began:5.0f} s  {self._size.look():,} of {self._expected:,} requests"
            progress(f"{seen}; {self._words}")
