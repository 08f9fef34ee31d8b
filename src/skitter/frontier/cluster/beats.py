"""The heartbeats of all partitions of a node: one statement says that all of them are alive.

Between a node, which sends it, and the stores, which look whether they must stop. Which partition under which
epoch is known from the claim on, also while its folder still catches up.
"""

from __future__ import annotations

from collections.abc import Callable

from skitter.errors import Fenced, SkitterError
from skitter.frontier.log.base import Claim


class PartBeats:
    def __init__(self) -> None:
        self._epochs: dict[int, int] = {}
        self._faults: dict[tuple[int, int], SkitterError] = {}

    def of(self, number: int) -> Callable[[Claim], PartBeat]:
        """Begins to beat for a partition that is claimed."""

        def begin(claim: Claim) -> PartBeat:
            self._epochs[number] = claim.epoch
            return PartBeat(self, number, claim.epoch)

        return begin

    def epochs(self) -> dict[int, int]:
        return dict(self._epochs)

    def heard(self, asked: dict[int, int], ours: frozenset[int]) -> None:
        """Of those that were asked about, these are still ours."""
        for number, epoch in asked.items():
            if number not in ours:
                self._faults[number, epoch] = Fenced(
                    f"another node has partition {number} now: this one answers nothing more for it"
                )

    def fault_of(self, number: int, epoch: int) -> SkitterError | None:
        return self._faults.get((number, epoch))

    def end(self, number: int, epoch: int) -> None:
        if self._epochs.get(number) == epoch:
            del self._epochs[number]


class PartBeat:
    """That of one partition under one epoch."""

    def __init__(self, beats: PartBeats, number: int, epoch: int) -> None:
        self._beats = beats
        self._number = number
        self._epoch = epoch

    @property
    def fault(self) -> SkitterError | None:
        return self._beats.fault_of(self._number, self._epoch)

    def stop(self) -> None:
        self._beats.end(self._number, self._epoch)
