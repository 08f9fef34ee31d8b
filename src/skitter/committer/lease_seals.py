"""Whose is a lease, and since when? A seal over the worker's name, the host, the token and the time.

Between the wire and the committer. A worker gets a seal with each lease and returns it with whatever it asks of
that lease. Nothing is remembered: the seal is keyed with bytes that stay in the crawl's folder, so it outlives a
restart of the server. Its time counts only for the process that wrote it: the next one may have another clock. To
a worker it is opaque.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct

from skitter.model import Host, HostLease, Token

_BYTES = 12
_STAMP = Struct("<4sd")  # which process wrote it, and its time
_PURPOSE = b"skitter-lease"
NOT_YOURS = "its lease was never given to this worker"


class LeaseSeals:
    def __init__(self, key: bytes) -> None:
        self._key = key
        self._process = secrets.token_bytes(4)

    def of_leases(self, worker: str, leases: Sequence[HostLease], now: float) -> list[bytes]:
        return self.of_names(worker, [(lease.host, lease.token) for lease in leases], now)

    def of_names(self, worker: str, leases: Sequence[tuple[Host, Token]], now: float) -> list[bytes]:
        return [self._of(worker, host, token, now) for host, token in leases]

    def fits(self, seal: bytes, worker: str, host: Host, token: Token) -> bool:
        """Whether this worker once had this lease. It may be over: the frontier knows that."""
        stamp = seal[: _STAMP.size]
        return hmac.compare_digest(seal, stamp + self._digest(stamp, worker, host, token))

    def given_at(self, seal: bytes) -> float:
        """When the lease of this seal, which fits, was given; 0 where that is unknown."""
        process, at = _STAMP.unpack_from(seal)
        return float(at) if process == self._process else 0.0

    def _of(self, worker: str, host: Host, token: Token, now: float = 0.0) -> bytes:
        stamp = _STAMP.pack(self._process, now)
        return stamp + self._digest(stamp, worker, host, token)

    def _digest(self, stamp: bytes, worker: str, host: Host, token: Token) -> bytes:
        # lengths first: no two triples write the same bytes
        name, place = worker.encode("utf-8", "surrogatepass"), host.encode("utf-8", "surrogatepass")
        said = stamp + b"%d %d %d " % (token, len(name), len(place)) + name + place
        return blake2b(said, digest_size=_BYTES, key=self._key, person=_PURPOSE).digest()
