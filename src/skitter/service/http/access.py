"""Who may do what: bearer tokens with a role and a name, or nobody but this machine.

    read            looks on
    worker          and leases, settles, renews, releases tasks, over the JSON API
    trusted-worker  and speaks the wire of our own workers: what it delivers is archived
    operator        and seeds, policies, pause, requeue

A lease belongs to the name of the token that it was given to, whatever its worker calls itself.
Without any token the service listens on loopback or a unix socket only, and whoever reaches it is the operator.
Tokens are kept as digests and compared in constant time; one never appears in a log, an error or an answer.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from skitter.errors import UsageError
from skitter.secret_files import read_secret

ENVIRONMENT = "SKITTER_TOKENS"
_SHORTEST = 16
UNIX = "unix:"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Role(IntEnum):
    """Each may do what those before it may."""

    READ = 1
    WORKER = 2
    TRUSTED_WORKER = 3
    OPERATOR = 4

    @property
    def word(self) -> str:
        """As it is written in a file of tokens."""
        return self.name.lower().replace("_", "-")


class Caller(NamedTuple):
    """Who calls: `name` is of its token, and empty where there are none."""

    role: Role
    name: str = ""


class Access:
    """`tokens` are roles and tokens, each with a name or without: then it is named by its digest."""

    def __init__(self, tokens: Iterable[tuple[Role, str] | tuple[Role, str, str]] = ()) -> None:
        self._tokens = [_known(*token) for token in tokens]

    def with_token(self, role: Role, token: str, name: str) -> Access:
        """The same, and one more."""
        more = Access()
        more._tokens = [*self._tokens, _known(role, token, name)]
        return more

    @property
    def is_open(self) -> bool:
        """No token exists: who can connect may do everything."""
        return not self._tokens

    def role_of(self, authorization: str) -> Role | None:
        """The role that an Authorization header gives; None when it gives none."""
        caller = self.caller_of(authorization)
        return None if caller is None else caller.role

    def caller_of(self, authorization: str) -> Caller | None:
        """None for a header without a token that is known."""
        if self.is_open:
            return Caller(Role.OPERATOR)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = _digest(token.strip())
        # every token is compared, so that the time tells nothing about which one came close
        found = [caller for caller, digest in self._tokens if hmac.compare_digest(digest, given)]
        return max(found, default=None)


def _known(role: Role, token: str, name: str = "") -> tuple[Caller, bytes]:
    digest = _digest(token)
    return Caller(role, name or f"{role.word}-{sha256(digest).hexdigest()[:8]}"), digest


_ROLES = {role.word: role for role in Role}


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_tokens(file: Path | None, environment: str = "") -> Access:
    """Tokens of a file, one `role token` or `role name token` a line, and of `SKITTER_TOKENS`, where commas may
    part them. A file that others can read is refused."""
    found = [_token(line, ENVIRONMENT) for line in _entries(environment.replace(",", "\n"))]
    if file is not None:
        lines = read_secret(file, "tokens")
        found += [_token(line, str(file)) for line in _entries(lines)]
        if not found:
            raise UsageError(f"no token in {file}: write lines such as `operator SOME-LONG-RANDOM-STRING`")
    return Access(found)


def _entries(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _token(line: str, place: str) -> tuple[Role, str, str]:
    role, *rest = line.split()
    if role.lower() not in _ROLES:
        roles = ", ".join(_ROLES)
        raise UsageError(
            f"{place}: a token's line begins with its role ({roles}), then a name if you like, then the token"
        )
    if not 1 <= len(rest) <= 2 or len(rest[-1]) < _SHORTEST:
        raise UsageError(f"{place}: a token has {_SHORTEST} characters at least and no spaces")
    name = rest[0] if len(rest) == 2 else ""
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"{place}: a token's name is of up to 64 letters, digits, dots, dashes and underscores"
        )
    return _ROLES[role.lower()], rest[-1], name


def check_listen(listen: str, tokens: Access) -> tuple[str, int] | None:
    """Name and port, None for a unix socket; what may not be listened on is refused before anything is opened."""
    if listen.startswith(UNIX):
        return None
    name, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"{listen!r} is no place to listen at: write HOST:PORT or unix:PATH")
    require_safe(tokens, name)
    return name.strip("[]"), int(port)


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
