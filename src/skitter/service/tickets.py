"""Task ids: all that the server must know of a task when its result comes back, sealed, in the id itself.

So nothing is remembered per task, an id outlives a restart, and a worker can settle only what it was given: the
seal is keyed with 32 random bytes that stay in the crawl's folder. To a worker an id is opaque text.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from hashlib import blake2b
from pathlib import Path

import msgspec

from skitter.errors import StoreFailed
from skitter.model import Host, HostLease, Task, TaskKind, Token, UrlKey
from skitter.urls.canonical import host_of

_FILE = "service.key"
_KEY_BYTES = 32
_SEAL_BYTES = 12
LONGEST = 12_000
"""Characters of an id; one of the longest URL that is admitted by default takes 2,900, and 5,500 more with the
longest form."""


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """`granted` is when the lease began: no request of it can have been sent before. `conditional`: the task
    came with validators, so that 304 is an answer to it. `holder` is the name of the token that it was given
    to."""

    kind: TaskKind
    token: Token
    key: UrlKey
    url: str
    granted: float
    depth: int = 0
    hops: int = 0
    nesting: int = 0
    conditional: bool = False
    holder: str = ""
    form: str = ""

    @property
    def host(self) -> Host:
        return host_of(self.url)


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Ticket).decode


class Seal:
    def __init__(self, key: bytes = b"") -> None:
        self._key = key or os.urandom(_KEY_BYTES)

    def write(self, lease: HostLease, task: Task, granted: float, holder: str) -> str:
        ticket = Ticket(
            kind=task.kind,
            token=lease.token,
            key=task.key,
            url=task.url,
            granted=granted,
            depth=task.depth,
            hops=task.hops,
            nesting=task.nesting,
            conditional=bool(task.etag or task.last_modified),
            holder=holder,
            form=task.form,
        )
        raw = _encode(ticket)
        return base64.urlsafe_b64encode(self._of(raw) + raw).rstrip(b"=").decode()

    def read(self, text: str) -> Ticket | None:
        """The ticket of an id; None for what this crawl never gave out."""
        if len(text) > LONGEST:
            return None
        try:
            raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError, ValueError):
            return None
        seal, rest = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        return _decode(rest) if hmac.compare_digest(seal, self._of(rest)) else None

    def _of(self, raw: bytes) -> bytes:
        return blake2b(raw, digest_size=_SEAL_BYTES, key=self._key).digest()


def service_key(folder: Path) -> bytes:
    """The folder's own key for seals, made when there is none; only its owner may read it. The folder's lock is
    held."""
    file = folder / _FILE
    try:
        key = file.read_bytes() if file.exists() else b""
        if len(key) != _KEY_BYTES:
            key = os.urandom(_KEY_BYTES)
            temporary = file.with_suffix(".new")
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(key)
            temporary.replace(file)
    except OSError as error:
        raise StoreFailed(
            f"cannot keep {file} ({error.strerror}): check its owner and permissions"
        ) from error
    return key
