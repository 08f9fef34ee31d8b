"""Names to addresses, just before a connection: overrides, literals, the cache, then DNS through c-ares.

The addresses go to the address guard and are then dialled as they are; nothing here judges an address. A name
that cannot be resolved is a value, never an exception. A name is asked for once, however many requests wait
for it. The cache and the number of open queries are bounded.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import OrderedDict
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

import aiodns
import msgspec
import pycares
from aiodns import error as ares

from skitter.clock import Clock
from skitter.errors import UsageError
from skitter.model import FailureKind
from skitter.settings import FetchSettings

MIN_TTL = 5.0
MAX_TTL = 3600.0
NOT_FOUND_TTL = 30.0
FAILURE_TTL = 5.0
TRIES = 2
MAX_PENDING = 256
MAX_ADDRESSES = 16
CHANNEL_QUERIES = 10_000
_FIRST_PAUSE = 0.05
# RFC 1035, 2.3.4 for the lengths. c-ares takes a C string, so a NUL must not get there.
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NO_SORT = 0x80  # ARES_AI_NOSORT, unnamed in pycares: sorting opens a socket for every address
LOOPBACK = ("127.0.0.1", "::1")


class Answer(msgspec.Struct, frozen=True):
    """Where to dial: IPv4 first, IPv6 without brackets. `pinned` when the operator named the address."""

    addresses: tuple[str, ...]
    port: int
    pinned: bool = False


class Unresolved(msgspec.Struct, frozen=True):
    kind: FailureKind
    detail: str


class Override(msgspec.Struct, frozen=True):
    """One `HOST:PORT:ADDRESS[:PORT]`; host `*` is any, port None is any, dial None keeps the URL's port."""

    host: str
    port: int | None
    address: str
    dial: int | None = None

    def applies(self, host: str, port: int) -> bool:
        return self.host in ("*", host) and self.port in (None, port)


_OVERRIDE = re.compile(
    r"(?P<host>\*|\[[^\]]+\]|[^:\[\]\s*]+):(?P<port>\*|[0-9]{1,5})"
    r":(?P<address>\[[^\]]+\]|[^:\[\]\s]+)(?::(?P<dial>[0-9]{1,5}))?"
)


def parse_override(text: str) -> Override:
    match = _OVERRIDE.fullmatch(text)
    address = match and _literal(match["address"])
    if match is None or address is None:
        raise _bad_override(text, "")
    ports = [int(port) for port in (match["port"], match["dial"]) if port and port != "*"]
    if not all(0 < port < 65536 for port in ports):
        raise _bad_override(text, "; ports are 1 to 65535")
    return Override(
        _bare(match["host"]),
        None if match["port"] == "*" else int(match["port"]),
        address,
        int(match["dial"]) if match["dial"] else None,
    )


def _bad_override(text: str, why: str) -> UsageError:
    return UsageError(
        f"DNS override {text!r} is not of the form HOST:PORT:ADDRESS[:PORT], as in"
        f" example.org:443:127.0.0.1:8443, *:80:[::1] or example.org:*:10.0.0.7{why}"
    )


@lru_cache(maxsize=1024)
def _literal(host: str) -> str | None:
    """The address that the host of a URL spells out, IPv6 in brackets; None for a name."""
    # Most names end here: `ipaddress` is slow to refuse one.
    if not host or host[-1] not in "]0123456789":
        return None
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        return None
    return str(address) if isinstance(address, IPv6Address) == bracketed else None


def _bare(name: str) -> str:
    return name.lower().removesuffix(".")


def _checked_server(text: str) -> str:
    host, port = text, "53"
    if match := re.fullmatch(r"(\[[^\]]+\]|[^:]+):([0-9]{1,5})", text):
        host, port = match[1], match[2]
    plain_v6 = f"[{host}]" if ":" in host and not host.startswith("[") else host
    if _literal(plain_v6) is None or not 0 < int(port) < 65536:
        raise UsageError(f"nameserver {text!r} is not an address, as in 9.9.9.9, 127.0.0.1:5353 or [::1]:53")
    return f"{plain_v6}:{port}"


class _Channel:
    """One c-ares channel and how much it was used.

    c-ares keeps answers in a cache of its own (measured: 2 KB a name, no limit on names) that its Python
    binding cannot switch off; so a channel is retired after some thousand queries, and its cache with it.
    """

    def __init__(self, servers: tuple[str, ...], timeout: float, tries: int) -> None:
        self._resolver = aiodns.DNSResolver(
            nameservers=servers,
            loop=asyncio.get_running_loop(),
            timeout=timeout,
            tries=tries,
            lookups="fb",  # the hosts file, then DNS
            flags=pycares.ARES_FLAG_EDNS | pycares.ARES_FLAG_NOSEARCH,
        )
        self.asked = 0
        self.open = 0

    async def ask(self, name: str) -> pycares.AddrInfoResult:
        self.asked += 1
        self.open += 1
        try:
            return await self._resolver.getaddrinfo(name, type=socket.SOCK_STREAM, flags=_NO_SORT)
        finally:
            self.open -= 1

    async def close(self) -> None:
        await self._resolver.close()


_Found = tuple[str, ...] | Unresolved


class Resolver:
    """Resolves names for one event loop. `hits`, `misses` and `failures` count what happened, `unheard` counts
    questions that reached no server, `seconds` is how long DNS servers took for all misses together.
    `timeout` is of one try; without it `settings.dns_timeout` is for all tries.

    A name is in the cache, pending, or unknown. Every pending name has one task, and only that task writes its
    cache entry. Waiters share the task; one that gives up does not end it for the others.
    """

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        *,
        timeout: float | None = None,
        tries: int = TRIES,
        max_pending: int = MAX_PENDING,
    ) -> None:
        overrides = map(parse_override, settings.resolve)
        self._overrides = {(each.host, each.port): each for each in overrides}
        self._pinned: dict[tuple[str, int], Answer] = {}
        self._servers = tuple(map(_checked_server, settings.nameservers))
        self._clock = clock
        self._timeout = timeout or settings.dns_timeout / tries
        self._tries = tries
        self._size = settings.dns_cache
        self._cache: OrderedDict[str, tuple[float, _Found]] = OrderedDict()
        self._pending: dict[str, asyncio.Task[_Found]] = {}
        self._slots = asyncio.Semaphore(max_pending)
        self._channel: _Channel | None = None
        self._retired: list[_Channel] = []
        self.hits = 0
        self.misses = 0
        self.failures = 0
        self.unheard = 0
        self.seconds = 0.0

    def known(self, name: str, port: int) -> Answer | Unresolved | None:
        """The answer, if there is one without waiting; None where `resolve` has to ask."""
        if (given := self._pinned.get((name, port))) is not None:
            return given
        host = _bare(name)
        if (given := self._given(host, port)) is not None:
            return given
        found = self._cached(host)
        return found if found is None or isinstance(found, Unresolved) else Answer(found, port)

    async def resolve(self, name: str, port: int) -> Answer | Unresolved:
        """The addresses of a host as WHATWG serialises it (IPv6 in brackets), and the port to dial."""
        if (known := self.known(name, port)) is not None:
            return known
        host = _bare(name)
        found = await self._join(host) if _NAME.fullmatch(host) else self._impossible(host)
        return found if isinstance(found, Unresolved) else Answer(found, port)

    def prepare(self, name: str, port: int) -> None:
        """Begin to resolve a name that will be needed soon."""
        host = _bare(name)
        if host in self._pending or self._given(host, port) is not None or not _NAME.fullmatch(host):
            return
        entry = self._cache.get(host)
        if entry is None or entry[0] <= self._clock.now():
            self._begin(host)

    def _given(self, host: str, port: int) -> Answer | None:
        """The answer that needs no DNS: an override, a literal, localhost."""
        if self._overrides and (override := self._override(host, port)):
            return self._pin(host, port, override)
        if literal := _literal(host):
            return Answer((literal,), port)
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761, 6.3
            return Answer(LOOPBACK, port)
        return None

    async def close(self) -> None:
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        channels = [*self._retired, *([self._channel] if self._channel else [])]
        self._channel, self._retired = None, []
        for channel in channels:
            await channel.close()

    def _impossible(self, host: str) -> Unresolved:
        # Not cached: the cache is bounded in names, and this one may be of any length.
        self.failures += 1
        return Unresolved(FailureKind.DNS_NOT_FOUND, f"{host[:100]!r} cannot be a host name")

    def _override(self, host: str, port: int) -> Override | None:
        keys = ((host, port), (host, None), ("*", port), ("*", None))
        return next((self._overrides[key] for key in keys if key in self._overrides), None)

    def _pin(self, host: str, port: int, override: Override) -> Answer:
        """Make the answer of an override and remember it. They are bounded: `*` applies to any number of
        hosts."""
        if len(self._pinned) >= self._size:
            self._pinned.clear()
        answer = Answer((override.address,), override.dial or port, True)
        return self._pinned.setdefault((host, port), answer)

    def _cached(self, host: str) -> _Found | None:
        entry = self._cache.get(host)
        if entry is None:
            return None
        expires, found = entry
        if expires <= self._clock.now():
            del self._cache[host]
            return None
        self._cache.move_to_end(host)
        self.hits += 1
        return found

    def _remember(self, host: str, found: _Found, ttl: float) -> None:
        self._cache[host] = (self._clock.now() + ttl, found)
        self._cache.move_to_end(host)
        if len(self._cache) > self._size:
            self._cache.popitem(last=False)

    async def _join(self, host: str) -> _Found:
        task = self._pending.get(host)
        if task is None:
            task = self._begin(host)
        else:
            self.hits += 1
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            waiter = asyncio.current_task()
            if not task.cancelled() or (waiter and waiter.cancelling()):
                raise
            return Unresolved(FailureKind.DNS_FAILED, f"{host}: the resolver was closed")

    def _begin(self, host: str) -> asyncio.Task[_Found]:
        self.misses += 1
        task = self._pending[host] = asyncio.create_task(self._look_up(host))
        task.add_done_callback(lambda _: self._pending.pop(host, None))
        return task

    async def _look_up(self, host: str) -> _Found:
        found, ttl = await self._ask(host)
        if isinstance(found, Unresolved):
            self.failures += 1
        self._remember(host, found, ttl)
        return found

    async def _ask(self, host: str) -> tuple[_Found, float]:
        async with self._slots:
            begun = self._clock.now()
            try:
                # c-ares doubles its timeout from try to try; this keeps the sum to what was promised.
                async with asyncio.timeout(self._timeout * self._tries):
                    result = await self._ask_channel(host)
            except TimeoutError:
                return Unresolved(FailureKind.DNS_TIMEOUT, f"no answer for {host}"), FAILURE_TTL
            except ares.DNSError as error:
                return _fault(host, error)
            finally:
                self.seconds += max(0.0, self._clock.now() - begun)
                await self._close_idle()
        return _addresses(host, result)

    async def _ask_channel(self, host: str) -> pycares.AddrInfoResult:
        """Ask again, ever later, while no server hears the question. An error of one socket fails every
        question that is open on it, up to 256 at once; a name server on this machine refuses all questions
        while it restarts; and c-ares reports the same when it could open no socket for lack of
        descriptors."""
        pause = 0.0
        while True:
            try:
                return await self._live_channel().ask(host)
            except ares.DNSError as error:
                if _code(error) != ares.ARES_ECONNREFUSED:
                    raise
            self.unheard += 1
            await asyncio.sleep(pause)
            pause = 2 * pause or _FIRST_PAUSE

    def _live_channel(self) -> _Channel:
        if self._channel is not None and self._channel.asked >= min(self._size, CHANNEL_QUERIES):
            self._retired.append(self._channel)
            self._channel = None
        if self._channel is None:
            self._channel = _Channel(self._servers, self._timeout, self._tries)
        return self._channel

    async def _close_idle(self) -> None:
        idle = [channel for channel in self._retired if not channel.open]
        self._retired = [channel for channel in self._retired if channel.open]
        for channel in idle:
            await channel.close()


def _not_found(detail: str) -> tuple[Unresolved, float]:
    return Unresolved(FailureKind.DNS_NOT_FOUND, detail), NOT_FOUND_TTL


_ABSENT = (ares.ARES_ENOTFOUND, ares.ARES_ENODATA, ares.ARES_ENONAME, ares.ARES_EBADNAME)


def _fault(host: str, error: ares.DNSError) -> tuple[Unresolved, float]:
    code = _code(error)
    detail = f"{host}: {pycares.errno.errorcode.get(code, code)}"
    if code in _ABSENT:
        return _not_found(detail)
    # no answer says nothing about the name
    kind = FailureKind.DNS_TIMEOUT if code == ares.ARES_ETIMEOUT else FailureKind.DNS_FAILED
    return Unresolved(kind, detail), FAILURE_TTL


def _code(error: ares.DNSError) -> int:
    code: int = error.args[0] if error.args else ares.ARES_EFORMERR
    return code


def _addresses(host: str, result: pycares.AddrInfoResult) -> tuple[_Found, float]:
    addresses = dict.fromkeys(node.addr[0].decode() for node in result.nodes)
    if not addresses:
        return _not_found(f"{host}: no addresses")
    ttl = min([node.ttl for node in result.nodes] + [cname.ttl for cname in result.cnames])
    # Stable: within a family the order stays as the server gave it, it may be spreading load.
    return tuple(sorted(addresses, key=_is_v6)[:MAX_ADDRESSES]), min(max(ttl, MIN_TTL), MAX_TTL)


def _is_v6(address: str) -> bool:
    return ":" in address
