"""Slots: the places in the queue of a host, in the order in which they are served.

    slot     host id (8), lane (1), urgency (1), sequence number (8)

Lane 0 holds errands, lane t+1 the URLs of tier t, the last one pages that are visited again. Within a lane urgent
ones go first, then old ones; revisits go by age alone. The engine keeps a slot as a whole and asks the questions
below.
"""

from __future__ import annotations

import struct

from skitter.schedule.priority import REVISITS

ERRAND_LANE = 0
REVISIT_LANE = REVISITS + 1
pack_slot = struct.Struct(">8sBBQ").pack


def slot_of(host_id: bytes, lane: int, priority: int, sequence: int) -> bytes:
    return pack_slot(host_id, lane, 255 - priority, sequence)


def lane_of(slot: bytes) -> int:
    return slot[8]


def tier_of_slot(slot: bytes) -> int:
    return slot[8] - 1


def host_of_slot(slot: bytes) -> bytes:
    """The id of the host; empty for a URL that has no slot."""
    return slot[:8]


def within_lane(slot: bytes) -> bytes:
    """The bytes that order a slot within its lane: `HostQueue.lows` keeps the lowest."""
    return slot[9:]
