"""What lies in segments that are not safe in their object store yet: which fetches, and which of them are pages.

With an object store a fetch is held, by its segment, from the turn that settles it until the turn that says
that the segment is stored; if the segment is lost before, its URLs go back to their queues. Never asks where a
segment is: that is the archive's to say.
"""

from __future__ import annotations

from skitter.frontier.rocks.rows import Held, UrlRow, decode_held, encode, micros
from skitter.frontier.rocks.turn import Turn
from skitter.model import Fetched, Outcome, RobotsRead


def hold(
    turn: Turn, outcome: Outcome, row: UrlRow | None, *, is_page: bool = False, behalf: str = ""
) -> None:
    """The fetch that was entered in the ledger in this turn; 2.3 us. `behalf` is whose robots.txt it was."""
    result = outcome.result
    if result.record is None:
        return
    stamp = micros(turn.book.by_the_clock(outcome.sent_at))
    made_copy = isinstance(result, Fetched | RobotsRead) and result.copy is not None
    held = Held(is_page, result.digest if made_copy else b"", behalf)  # type: ignore[union-attr]
    segment = result.record.segment
    turn.put("unstored", start_of(segment) + outcome.key + stamp, encode(held))
    counts = turn.tally.held.setdefault(segment, [0, 0])
    counts[0] += 1
    counts[1] += is_page
    if row is not None:
        row.waiting = start_of(segment) + stamp if is_page else b""


def count_no_more(turn: Turn, key: bytes, row: UrlRow) -> None:
    """The URL is looked at again and is no page until then: its fetch is held on, but not as one."""
    segment, _, stamp = row.waiting.partition(b"\0")
    counts = turn.tally.held.get(segment.decode())
    place = segment + b"\0" + key + stamp
    row.waiting = b""
    if counts is None or (raw := turn.book.store.get("unstored", place)) is None:
        return
    held = decode_held(raw)
    turn.put("unstored", place, encode(Held(False, held.copied, held.behalf)))
    counts[1] -= held.is_page


def let_go(turn: Turn, segment: str) -> None:
    """The segment is stored: whatever becomes of its local files, nothing of it is fetched again."""
    turn.delete_range("unstored", start_of(segment), end_of(segment))
    turn.tally.held.pop(segment, None)


def start_of(segment: str) -> bytes:
    return segment.encode() + b"\0"


def end_of(segment: str) -> bytes:
    return segment.encode() + b"\1"
