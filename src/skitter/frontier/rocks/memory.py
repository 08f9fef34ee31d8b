"""One knob, `frontier.memory`, divided among everything in the frontier that takes RAM.

The shares are by what they were seen to bring; what an entry weighs was measured with tracemalloc.
"""

from __future__ import annotations

import msgspec

from skitter.settings import FrontierSettings

# Two million URLs on 100,000 hosts with 64 MB, as twenty on a million with 640: reads of `urls` a page went from
# 2.4 to 1.8 and of `hosts` from 0.80 to 0.70 when the certain keys took 21 % instead of 12, and kept hosts 7, not
# 6. The block cache has the system's own behind it: what it lost was not seen in the time of a read. At twenty
# million a new URL touches a quarter of a host, of which three of ten were reads, 2 us a URL, with 7 for hosts.
_BLOCK_CACHE, _MEMTABLES, _FILTER, _NEAR = 0.10, 0.22, 0.15, 0.14
_CERTAIN, _RECENT, _HOSTS, _DORMANT = 0.21, 0.03, 0.03, 0.12
_HOST_BYTES = 2_500
_DORMANT_BYTES = 450
_RECENT_BYTES = 130


class MemoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes for RocksDB's block cache, its memtables, the two filters and the keys that are certainly known;
    entries for our other caches."""

    block_cache: int
    memtables: int
    seen_filter: int
    certain_keys: int
    recent_keys: int
    hosts: int
    dormant_hosts: int
    near_filter: int

    @classmethod
    def of(cls, settings: FrontierSettings) -> MemoryPlan:
        memory = settings.memory
        return cls(
            block_cache=int(memory * _BLOCK_CACHE),
            memtables=int(memory * _MEMTABLES),
            seen_filter=int(memory * _FILTER),
            certain_keys=int(memory * _CERTAIN),
            recent_keys=settings.recent_keys or int(memory * _RECENT / _RECENT_BYTES),
            near_filter=int(memory * _NEAR),
            hosts=settings.cached_hosts or int(memory * _HOSTS / _HOST_BYTES),
            dormant_hosts=settings.cached_hosts or int(memory * _DORMANT / _DORMANT_BYTES),
        )
