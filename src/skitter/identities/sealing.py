"""The session of a host as the frontier keeps it: sealed with a key that only holders of the secrets can make.

The frontier, its backups and the wire to workers hold these bytes and cannot read them. A worker that has the
host's secrets opens them, and goes on with the session. Where the identity has no secret there is nothing to make
a key of: cookies that the host gives to anybody are kept as they are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from hashlib import scrypt, sha256

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from skitter.identities.cookies import Cookie

_SEALED, _OPEN = b"S", b"P"
_NONCE = 12
# A password may be short: whoever has the frontier's files tries 20 a second, not a million.
_COST = {"n": 2**14, "r": 8, "p": 1}


class SessionState(msgspec.Struct, frozen=True, array_like=True):
    cookies: list[Cookie]
    is_logged_in: bool = False


class Seal:
    """For the session of one host, with the secrets of its identity."""

    def __init__(self, host: str, secrets: Sequence[str]) -> None:
        self._host = host.encode()
        self._secrets = "\0".join(secrets).encode()

    def write(self, state: SessionState) -> bytes:
        plain = msgspec.msgpack.encode(state)
        if not self._secrets:
            return _OPEN + plain
        nonce = os.urandom(_NONCE)
        return _SEALED + nonce + AESGCM(self._key()).encrypt(nonce, plain, self._host)

    def read(self, sealed: bytes) -> SessionState | None:
        """None where there is none, and for one that was sealed with other secrets: it begins anew."""
        plain = self._plain(sealed)
        try:
            return msgspec.msgpack.decode(plain, type=SessionState) if plain else None
        except msgspec.MsgspecError:
            return None

    def _plain(self, sealed: bytes) -> bytes:
        kind, rest = sealed[:1], sealed[1:]
        if kind == _OPEN and not self._secrets:
            return rest
        if kind != _SEALED or not self._secrets:
            return b""
        try:
            return AESGCM(self._key()).decrypt(rest[:_NONCE], rest[_NONCE:], self._host)
        except (InvalidTag, ValueError):
            return b""

    def _key(self) -> bytes:
        return _derived(self._secrets, sha256(b"skitter session of " + self._host).digest())


@lru_cache(maxsize=256)
def _derived(secrets: bytes, salt: bytes) -> bytes:
    return scrypt(secrets, salt=salt, dklen=32, maxmem=64_000_000, **_COST)
