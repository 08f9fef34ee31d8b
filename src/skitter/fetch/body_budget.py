"""The memory of all bodies that arrive or are not yet read. Beyond a limit, long bodies are paused.

Beside the fetch. 256 requests of 10 MB each would take 2.5 GB. Short bodies are never paused, so pages are
crawled on whatever long bodies do. Never ends a request: the time limits do that.
"""

from __future__ import annotations

from typing import Protocol

# Most pages are shorter, as they come over the network. Bodies up to this size are not counted.
SHORT = 65_536
_WOKEN_FOR = 262_144  # libcurl delivers no more at once


class Growing(Protocol):
    """A body that arrives: `size` bytes of it so far."""

    size: int

    def resume(self) -> None: ...


class BodyBudget:
    """`held` is the size of all long bodies together. Beyond `most` they wait, except for one, which may grow
    to its end: otherwise all could wait for each other. So memory is bounded by `most` and one body."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0
        self._waiting: dict[Growing, None] = {}
        self._ahead: Growing | None = None

    def reserve(self, body: Growing, more: int) -> bool:
        """Count `more` bytes for the body. False when there is no room for them: then nothing is counted, and
        the body is resumed when there is."""
        size = body.size + more
        if size <= SHORT:
            return True
        grown = more if body.size > SHORT else size
        if self.held + grown > self._most and not self._let_ahead(body):
            self._waiting[body] = None
            return False
        self.held += grown
        return True

    def is_waiting(self, body: Growing) -> bool:
        return body in self._waiting

    def end(self, body: Growing) -> None:
        """The request of the body is over. Its bytes count until `release`."""
        self._waiting.pop(body, None)
        if self._ahead is body:
            self._ahead = None

    def drop(self, body: Growing) -> None:
        """The request of the body is over, and nobody wants what came."""
        self.end(body)
        self.release(body.size)

    def release(self, size: int) -> None:
        """A body of this size is needed no more."""
        if size > SHORT:
            self.held -= size
            self._wake()

    def _let_ahead(self, body: Growing) -> bool:
        """Make it the one body that may grow beyond the limit, if there is none."""
        if self._has_none_ahead():
            self._ahead = body
        return self._ahead is body

    def _has_none_ahead(self) -> bool:
        """A body that went ahead counts here until it is released."""
        return self._ahead is None and self.held <= self._most

    def _wake(self) -> None:
        """Resume as many bodies as there is room for, or one to go ahead."""
        room = self._most - self.held
        count = max(room // _WOKEN_FOR, int(self._has_none_ahead()))
        for body in list(self._waiting)[:count]:
            del self._waiting[body]
            body.resume()
