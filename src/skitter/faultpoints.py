"""Named moments at which a test may end the process, as `kill -9` would: around every commit and append.

`SKITTER_FAULT_POINT=after_commit:37` kills the process when it reaches that point for the 37th time. Costs one
comparison where it is not set; nothing but tests sets it.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum

ENVIRONMENT = "SKITTER_FAULT_POINT"


class Point(StrEnum):
    BEFORE_COMMIT = "before_commit"
    """The store's batch is complete, nothing is written."""
    AFTER_COMMIT = "after_commit"
    """The batch is written, nobody was told."""
    BEFORE_APPEND = "before_append"
    """A response arrived, no record is written."""
    AFTER_APPEND = "after_append"
    """The record is written, its outcome is not settled."""
    BEFORE_SETTLE = "before_settle"
    """Outcomes and marks are on their way to the frontier."""
    AFTER_SETTLE = "after_settle"
    """The frontier has settled, the archive was not told."""
    AFTER_ACKNOWLEDGE = "after_acknowledge"
    """The archive knows what is committed."""
    BEFORE_DELIVERY = "before_delivery"
    """A worker in another process has read pages, the committer was not told."""
    AFTER_DELIVERY = "after_delivery"
    """The committer has settled them, the worker has just heard of it."""
    BETWEEN_PARTS = "between_parts"
    """One table has a part that another has yet to get."""
    BEFORE_FINISH = "before_finish"
    """A segment is whole, committed and synced, and has no final name."""
    BETWEEN_OBJECTS = "between_objects"
    """One file of a segment is in the object store, the others are not."""
    BEFORE_STORED = "before_stored"
    """All of a segment is in the object store, the frontier was not told."""
    BEFORE_REMOVAL = "before_removal"
    """The frontier knows, the local files are still there."""


def _planned() -> tuple[str, int]:
    point, _, count = os.environ.get(ENVIRONMENT, "").partition(":")
    return point, int(count or 1)


_point, _countdown = _planned()


def reach(point: Point) -> None:
    global _countdown
    if _point != point:
        return
    _countdown -= 1
    if _countdown <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
