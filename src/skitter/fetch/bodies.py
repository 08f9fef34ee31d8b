"""The memory of bodies that are under way or not yet read: beyond it the longer ones are paused.

Beside the fetch. 256 requests of 10 MB each would be 2.5 GB, and slow ones can be thousands. A short body is
never held up, so pages are crawled on whatever long ones do. Never ends a request: the time limits do that.
"""

from __future__ import annotations

from typing import Protocol

# Most pages are shorter, coded. So many bytes of each request in flight are not counted.
SHORT = 65_536
_WOKEN_FOR = 262_144  # libcurl delivers no more at once


class Growing(Protocol):
    """A body that arrives: `size` bytes of it so far."""

    size: int

    def resume(self) -> None: ...


class Bodies:
    """`held` is what all long bodies take. Beyond `most` they wait, but for one, which may grow to its end:
    otherwise all could wait for each other. So it is `most` and one body at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0
        self._waiting: dict[Growing, None] = {}
        self._ahead: Growing | None = None

    def has_room(self, body: Growing, more: int) -> bool:
        """Whether `more` bytes may be kept now; they count from here on. If not, the body will be resumed."""
        size = body.size + more
        if size <= SHORT:
            return True
        grown = more if body.size > SHORT else size
        if self.held + grown > self._most and not self._goes_ahead(body):
            self._waiting[body] = None
            return False
        self.held += grown
        return True

    def is_waiting(self, body: Growing) -> bool:
        return body in self._waiting

    def ended(self, body: Growing) -> None:
        """Its request is over; what it has keeps counting until it is let go."""
        self._waiting.pop(body, None)
        if self._ahead is body:
            self._ahead = None

    def dropped(self, body: Growing) -> None:
        """Its request is over, and nobody wants what came."""
        self.ended(body)
        self.let_go(body.size)

    def let_go(self, size: int) -> None:
        """A body of this size is needed no more."""
        if size > SHORT:
            self.held -= size
            self._wake()

    def _goes_ahead(self, body: Growing) -> bool:
        if self._may_go_ahead():
            self._ahead = body
        return self._ahead is body

    def _may_go_ahead(self) -> bool:
        """Not before the last one that did is let go."""
        return self._ahead is None and self.held <= self._most

    def _wake(self) -> None:
        """As many as can go on at once, or one to go ahead."""
        room = self._most - self.held
        count = max(room // _WOKEN_FOR, int(self._may_go_ahead()))
        for body in list(self._waiting)[:count]:
            del self._waiting[body]
            body.resume()
