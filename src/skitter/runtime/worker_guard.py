"""What a worker lets its server decide: a server may tighten what the worker's machine does, never loosen it.

Between joining and working. A server that was taken over must not turn its workers into a way into their
networks: special addresses, other answers of DNS, certificates that are not checked and secrets of this machine
are taken over only if whoever started the worker allowed it (`skitter worker --allow`). Changes nothing for the
workers that a crawl starts itself.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec.structs import replace

from skitter.errors import UsageError
from skitter.settings import FetchSettings, Settings


class Allowed(StrEnum):
    """What a server may loosen: a closed set."""

    PRIVATE = "private"
    """`fetch.allow_private`"""
    RESOLVE = "resolve"
    """`fetch.resolve` and `fetch.nameservers`"""
    TLS = "tls"
    """`fetch.verify_tls` and `fetch.ca_file`, and `verify_tls` of a host's policy"""
    SECRETS = "secrets"
    """Identities of hosts, whose secrets are read from this machine."""


_OWN = FetchSettings()
_GUARDED = {
    Allowed.PRIVATE: ("allow_private",),
    Allowed.RESOLVE: ("resolve", "nameservers"),
    Allowed.TLS: ("verify_tls", "ca_file"),
}


def guarded(settings: Settings, allowed: Collection[Allowed]) -> tuple[Settings, list[str]]:
    """The server's settings without what it may not loosen, and the names of those. Raises where a host is to be
    asked with secrets that the server may not use: without them it would be asked as somebody else."""
    if settings.identities and Allowed.SECRETS not in allowed:
        raise UsageError(
            f"the crawl asks {', '.join(sorted(settings.identities)[:3])} with secrets of this machine: start "
            "the worker with --allow secrets if the server may use them"
        )
    names = [
        name
        for what, of_it in _GUARDED.items()
        if what not in allowed
        for name in of_it
        if _is_looser(settings, name)
    ]
    fetch = replace(settings.fetch, **{name: getattr(_OWN, name) for name in names})
    return replace(settings, fetch=fetch), [f"fetch.{name}" for name in names]


def _is_looser(settings: Settings, name: str) -> bool:
    return bool(getattr(settings.fetch, name) != getattr(_OWN, name))


def words_of(kept: Collection[str]) -> str:
    """What was not taken over, and what to do."""
    flags = [what for what, names in _GUARDED.items() if any(f"fetch.{name}" in kept for name in names)]
    return (
        f"the server's {', '.join(kept)} {'is' if len(kept) == 1 else 'are'} not taken over; if it may decide "
        f"that here, start the worker with {' '.join(f'--allow {what}' for what in flags)}"
    )


def warning_of(server: str) -> str:
    """Why whoever looks on should not send a token there; empty when nothing is wrong with it."""
    parts = urlsplit(server)
    if parts.scheme != "http" or _is_loopback(parts.hostname or ""):
        return ""
    return (
        f"{server} is not encrypted: whoever is between here and there reads the token and all pages, and can "
        "change them; use https:// (a proxy before the server) or a tunnel"
    )


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
