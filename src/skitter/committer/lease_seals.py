"""Whose is a lease? A seal over the worker's name, the host and the token, made and checked here.

Between the wire and the committer. A worker gets a seal with each lease and returns it with whatever it asks of
that lease. Nothing is remembered: the seal is keyed with bytes that stay in the crawl's folder, so it outlives a
restart of the server. To a worker it is opaque.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from hashlib import blake2b

from skitter.model import Host, HostLease, Token

_BYTES = 12
_PURPOSE = b"skitter-lease"
NOT_YOURS = "its lease was never given to this worker"


class LeaseSeals:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def of_leases(self, worker: str, leases: Sequence[HostLease]) -> list[bytes]:
        return [self._of(worker, lease.host, lease.token) for lease in leases]

    def fits(self, seal: bytes, worker: str, host: Host, token: Token) -> bool:
        """Whether this worker once had this lease. It may be over: the frontier knows that."""
        return hmac.compare_digest(seal, self._of(worker, host, token))

    def _of(self, worker: str, host: Host, token: Token) -> bytes:
        # lengths first: no two triples write the same bytes
        name, place = worker.encode("utf-8", "surrogatepass"), host.encode("utf-8", "surrogatepass")
        said = b"%d %d %d " % (token, len(name), len(place)) + name + place
        return blake2b(said, digest_size=_BYTES, key=self._key, person=_PURPOSE).digest()
