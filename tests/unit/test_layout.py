"""Rows as bytes: what a lease reads of them without decoding them whole."""

from __future__ import annotations

from msgspec.structs import replace

from skitter.frontier.rows import Found, UrlRow
from skitter.frontier.tables.layout import encode, slots_of
from skitter.model import UrlState, Via


def test_rows_tell_where_their_urls_wait() -> None:
    row = UrlRow(
        url="http://a.test/" + "x" * 300,
        state=UrlState.QUEUED,
        priority=50,
        found=Found(1, Via.LINK, b"p" * 16),
    )
    waiting = replace(row, slot=b"host-id-\x01\x00seq")
    assert slots_of([(b"a", encode(row)), (b"b", encode(waiting))]) == [b"", waiting.slot]
