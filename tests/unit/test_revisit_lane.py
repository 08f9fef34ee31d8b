"""Rows that were written before there were revisits are read with a lane for them."""

from __future__ import annotations

from skitter.frontier.rows import HostRow, LeaseRow, Tally
from skitter.frontier.tables.layout import decode_host, decode_tally, encode
from skitter.schedule.priority import LANES


def test_a_host_of_an_earlier_version_gets_a_lane_of_revisits() -> None:
    row = HostRow(host="http://a.test", lease=LeaseRow(1, "w", 2.0, [0] * LANES))
    row.queue.lengths[1] = 3
    old = decode_host(encode(row))
    assert old.lease is not None
    for lanes in (old.queue.lengths, old.queue.lows, old.lease.pages):
        lanes.pop()
    assert encode(old) != encode(row)
    assert decode_host(encode(old)) == row


def test_the_totals_of_an_earlier_version_get_one_too() -> None:
    old = Tally(tiers=[1, 2, 3, 4])
    assert decode_tally(encode(old)).tiers == [1, 2, 3, 4, 0]
