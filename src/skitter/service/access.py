"""Who may do what: bearer tokens with a role, or nobody but this machine.

    read      looks on
    worker    and leases, settles, renews, releases
    operator  and seeds, policies, pause, requeue

Without any token the service listens on loopback or a unix socket only, and whoever reaches it is the operator.
Tokens are kept as digests and compared in constant time; one never appears in a log, an error or an answer.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from pathlib import Path

from skitter.errors import UsageError

ENVIRONMENT = "SKITTER_TOKENS"
_SHORTEST = 16


class Role(IntEnum):
    """Each may do what those before it may."""

    READ = 1
    WORKER = 2
    OPERATOR = 3


class Access:
    def __init__(self, tokens: Iterable[tuple[Role, str]] = ()) -> None:
        self._tokens = [(role, _digest(token)) for role, token in tokens]

    @property
    def is_open(self) -> bool:
        """No token exists: who can connect may do everything."""
        return not self._tokens

    def role_of(self, authorization: str) -> Role | None:
        """The role that an Authorization header gives; None when it gives none."""
        if self.is_open:
            return Role.OPERATOR
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = _digest(token.strip())
        # every token is compared, so that the time tells nothing about which one came close
        found = [role for role, digest in self._tokens if hmac.compare_digest(digest, given)]
        return max(found, default=None)


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_tokens(file: Path | None, environment: str = "") -> Access:
    """Tokens of a file, one `role token` a line, and of `SKITTER_TOKENS`, where commas may part them."""
    found = [_token(line, ENVIRONMENT) for line in _entries(environment.replace(",", "\n"))]
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read tokens from {file}: {error}") from error
        found += [_token(line, str(file)) for line in _entries(lines)]
        if not found:
            raise UsageError(f"no token in {file}: write lines such as `operator SOME-LONG-RANDOM-STRING`")
    return Access(found)


def _entries(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _token(line: str, place: str) -> tuple[Role, str]:
    role, _, token = line.partition(" ")
    token = token.strip()
    if role.upper() not in Role.__members__:
        roles = ", ".join(name.lower() for name in Role.__members__)
        raise UsageError(
            f"{place}: a token's line begins with its role ({roles}), then a space, then the token"
        )
    if len(token) < _SHORTEST or any(char.isspace() for char in token):
        raise UsageError(f"{place}: a token has {_SHORTEST} characters at least and no spaces")
    return Role[role.upper()], token


def require_safe(access: Access, address: str) -> None:
    """Without a token, nobody from elsewhere may reach the service."""
    if access.is_open and not is_loopback(address):
        raise UsageError(
            f"listening on {address} without a token would let anybody steer the crawl: "
            f"give --tokens FILE (or {ENVIRONMENT}), or listen on 127.0.0.1"
        )


def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
