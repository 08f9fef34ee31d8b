"""Named changes of single tables, for the engine: the counterpart of `queries.py`.

A part of `Transaction`: everything here is committed with it or not at all. Moves that concern several tables
(a URL into its queue, a lease) are the transaction's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.posts import WaitingPost
from skitter.frontier.rows import FetchRow, Habits, Held, Note, UrlRow, Walk
from skitter.frontier.stores.base import Changes
from skitter.frontier.tables.forgotten import Mention
from skitter.frontier.tables.layout import (
    ABANDON,
    FORGOTTEN,
    HABITS,
    LOST,
    MARK,
    REJUDGE,
    RELEASE,
    REVISIT,
    SPENT,
    WALK,
    decode_held,
    encode,
    end_of_segment,
    micros,
    post_key,
    refused_prefix,
    start_of_segment,
    taken_key,
)
from skitter.frontier.tables.queries import Cursor, Due, HeldFetch, Revisit, walk_of
from skitter.frontier.tables.row_cache import RowCache
from skitter.model import Copy, RecordAt, SegmentMark, UrlKey

LedgerRow = tuple[float, str, int, int, str, tuple[str, int, int] | None, str]
"""The fields of a `FetchRow`, without the cost of making one for every fetch."""


class TableWrites:
    def __init__(self, cache: RowCache, changes: Changes) -> None:
        self.cache = cache
        # bound once: 18 rows change with a page
        self.put = changes.put
        self.put_all = changes.put_all
        self.delete = changes.delete
        self.delete_range = changes.delete_range
        # those that this transaction has changed
        self._walks: dict[bytes, Walk | None] = {}

    def set_note(self, name: Note, value: bytes) -> None:
        self.put("meta", name.encode(), value)

    def clear_note(self, name: Note) -> None:
        self.delete("meta", name.encode())

    def drop_posts(self, posts: Sequence[WaitingPost]) -> None:
        """Those that other partitions have taken."""
        for post in posts:
            self.delete("meta", post_key(post.part, post.number))

    def note_taken(self, source: int, number: int) -> None:
        """The last post that was taken from a partition."""
        self.put("meta", taken_key(source), number.to_bytes(8, "big"))

    def add_anchor(self, anchor: str) -> None:
        """A seed brings this into scope."""
        self.put("anchors", anchor.encode(), b"")
        self.cache.remember_anchor(anchor)

    # -- URLs by what they wait for

    def add_dead(self, key: UrlKey) -> None:
        self.put("dead", key, b"")

    def drop_dead(self, key: UrlKey) -> None:
        self.delete("dead", key)

    def add_denied(self, key: UrlKey) -> None:
        self.put("denied", key, b"")

    def drop_denied(self, key: UrlKey) -> None:
        self.delete("denied", key)

    def add_due(self, key: UrlKey, at: float) -> None:
        entry = micros(at) + key
        self.put("due", entry, b"")
        self.cache.due_low = min(self.cache.due_low, entry)

    def drop_due(self, due: Due) -> None:
        self.delete("due", due.entry)

    def add_revisit(self, key: UrlKey, at: float, prompt: bool) -> None:
        entry = REVISIT[prompt] + micros(at) + key
        self.put("due", entry, b"")
        lows = self.cache.revisit_lows
        lows[prompt] = min(lows[prompt], entry)

    def drop_revisit(self, revisit: Revisit) -> None:
        self.delete("due", revisit.entry)

    def drop_revisit_of(self, key: UrlKey, at: float, prompt: bool) -> None:
        self.delete("due", REVISIT[prompt] + micros(at) + key)

    def put_habits(self, key: bytes, habits: Habits) -> None:
        self.put("skeletons", key + HABITS, encode(habits))

    def drop_slot(self, slot: bytes) -> None:
        """Remove a slot that no row names any more, or an errand that is done."""
        self.delete("queue", slot)

    # -- hosts by what is to be done about them

    def mark_to_rejudge(self, ident: bytes, cursor: Cursor = b"") -> None:
        """Its robots.txt changed: URLs that it denied are judged again, from `cursor` on."""
        self.put("meta", REJUDGE + ident, cursor)

    def unmark_to_rejudge(self, ident: bytes) -> None:
        self.delete("meta", REJUDGE + ident)

    def put_walk(self, ident: bytes, walk: Walk) -> None:
        """The walk over refused URLs of a host; without a host, that over all of them."""
        self._walks[ident] = walk
        self.put("meta", WALK + ident, encode(walk))

    def drop_walk(self, ident: bytes) -> None:
        self._walks[ident] = None
        self.delete("meta", WALK + ident)

    def walk(self, ident: bytes) -> Walk | None:
        return self._walks[ident] if ident in self._walks else walk_of(self.cache, ident)

    def mark_to_empty(self, ident: bytes) -> None:
        self.put("meta", ABANDON + ident, b"")

    def unmark_to_empty(self, ident: bytes) -> None:
        self.delete("meta", ABANDON + ident)

    def put_robots(self, ident: bytes, body: bytes) -> None:
        self.put("robots", ident, body)

    def drop_robots(self, ident: bytes) -> None:
        self.delete("robots", ident)

    # -- what is forgotten

    def add_forgotten(self, mark: bytes) -> None:
        self.put("meta", FORGOTTEN + mark, b"")
        self.cache.forgotten.add(mark)

    def note_spent(self, segment: str) -> None:
        self.put("meta", SPENT + segment.encode(), b"")

    def clear_spent(self, segment: str) -> None:
        self.delete("meta", SPENT + segment.encode())

    def replace_fetch_at(self, key: UrlKey, at: float, row: FetchRow) -> None:
        self.put("ledger", key + micros(at), encode(row))

    def put_scrubbed(self, mention: Mention) -> None:
        """The row of another host without the name of the one that is forgotten."""
        self.put(mention.table, mention.key, encode(mention.row))

    # -- fetches and what they brought

    def put_fetch(self, key: UrlKey, sent_at: float, row: LedgerRow) -> None:
        """`sent_at` is by the clock."""
        self.put("ledger", key + micros(sent_at), encode(row))

    def replace_fetch(self, fetch: bytes, row: FetchRow) -> None:
        self.put("ledger", fetch, encode(row))

    def put_copy(self, digest: bytes, copy: Copy) -> None:
        self.put("copies", digest, encode(copy))

    def drop_copy(self, digest: bytes) -> None:
        self.delete("copies", digest)

    def put_mark(self, mark: SegmentMark) -> None:
        self.put("meta", MARK + mark.segment.encode(), encode(mark))

    def drop_mark(self, segment: str) -> None:
        self.delete("meta", MARK + segment.encode())

    def lose_mark(self, segment: str) -> None:
        """The segment is lost, and does not count if it turns up again."""
        self.drop_mark(segment)
        self.put("meta", LOST + segment.encode(), b"")

    # -- fetches whose segment is not stored elsewhere yet

    def hold(self, record: RecordAt, key: UrlKey, sent_at: float, held: Held) -> bytes:
        """Note a fetch whose segment is not stored yet. Returns its name for `UrlRow.waiting`."""
        start, stamp = start_of_segment(record.segment), micros(sent_at)
        self.put("unstored", start + key + stamp, encode(held))
        return start + stamp

    def held_segment(self, row: UrlRow) -> str:
        """The segment that a page waits for, by `UrlRow.waiting`."""
        return row.waiting.partition(b"\0")[0].decode()

    def hold_as_no_page(self, key: UrlKey, row: UrlRow) -> bool | None:
        """The fetch stays held, but no longer counts as a page. Returns whether it did; None when it is not
        held."""
        segment, _, stamp = row.waiting.partition(b"\0")
        place = segment + b"\0" + key + stamp
        raw = self.cache.store.get("unstored", place)
        if raw is None:
            return None
        held = decode_held(raw)
        self.put("unstored", place, encode(Held(False, held.copied, held.behalf)))
        return held.is_page

    def drop_held(self, held: HeldFetch) -> None:
        self.delete("unstored", held.place)

    def drop_all_held(self, segment: str) -> None:
        self.delete_range("unstored", start_of_segment(segment), end_of_segment(segment))

    # -- verdicts on traps

    def add_refused(self, number: int, key: UrlKey) -> None:
        self.put("traps", refused_prefix(number) + key, b"")

    def drop_refused(self, number: int, key: UrlKey) -> None:
        self.delete("traps", refused_prefix(number) + key)

    def add_ended_verdict(self, number: int) -> None:
        """Its URLs are still to be requeued."""
        self.put("meta", RELEASE + number.to_bytes(4, "big"), b"")

    def drop_ended_verdict(self, number: int) -> None:
        self.delete("meta", RELEASE + number.to_bytes(4, "big"))
