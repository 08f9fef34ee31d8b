"""The seals of a worker's leases: proof that they are its own, returned with whatever it asks of them.

Beside `remote_work_source.py`. Bounded: the oldest is forgotten first, long after its lease has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skitter.model import Host, HostLease, Token

# Many more than a worker holds and has to deliver at once.
_MOST = 20_000


class KeptSeals:
    def __init__(self) -> None:
        self._seals: dict[tuple[Host, Token], bytes] = {}

    def keep(self, leases: Sequence[HostLease], seals: Sequence[bytes]) -> None:
        """`seals` is empty where a server gives none: to the workers that it started itself."""
        self.keep_named([(lease.host, lease.token) for lease in leases] if seals else (), seals)

    def keep_named(self, leases: Sequence[tuple[Host, Token]], seals: Sequence[bytes]) -> None:
        if not seals:
            return
        for lease, seal in zip(leases, seals, strict=True):
            self._seals[lease] = seal
        while len(self._seals) > _MOST:
            del self._seals[next(iter(self._seals))]

    def of(self, leases: Iterable[tuple[Host, Token]]) -> list[bytes]:
        """Empty where no lease came with one."""
        return [self._seals.get(lease, b"") for lease in leases] if self._seals else []
