"""Which address is dialled: the one that was checked, and another when it cannot be reached."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import uvloop

from skitter.fetch.curl import CurlFetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Resolver
from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings, IdentitySettings
from skitter.testing.clock import FakeClock
from tests.nameserver import A, Nameserver, nameserver
from tests.raw_server import RawServer, page, sends, serving

CONTACT = IdentitySettings(contact="me@example.org")


class Stage:
    """A fetcher that asks our own DNS server, by a clock that tests move."""

    def __init__(self, fetcher: CurlFetcher, names: Nameserver, clock: FakeClock) -> None:
        self.fetcher, self.names, self.clock = fetcher, names, clock

    def points(self, name: str, *addresses: str) -> None:
        """From now on the name leads here."""
        self.names.zone.clear()
        self.names.add(name, 0, *addresses)


@asynccontextmanager
async def stage(guard: AddressGuard, connect_timeout: float = 2.0) -> AsyncIterator[Stage]:
    async with nameserver() as names:
        limits = FetchSettings(nameservers=(names.address,), connect_timeout=connect_timeout, dns_cache=1)
        clock = FakeClock()
        resolver = Resolver(limits, clock)
        fetcher = CurlFetcher(limits, CONTACT, resolver, guard, clock)
        try:
            yield Stage(fetcher, names, clock)
        finally:
            await fetcher.close()
            await resolver.close()


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scene()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(whole())


# -- names that lead elsewhere the second time


class LocalNetwork(AddressGuard):
    """On loopback nothing is public; so 127.0.0.2 stands for the address that may be dialled."""

    def refusal(self, address: str, port: int = 80) -> str | None:
        return None if address == "127.0.0.2" else super().refusal(address, port)


GUARD = LocalNetwork(allow_private=False)


def test_a_name_that_turns_to_loopback_is_dialled_where_it_was_checked_and_then_refused() -> None:
    async def scene() -> None:
        async with stage(GUARD) as on:
            on.points("rebind.test", "127.0.0.2")
            url = f"http://rebind.test:{public.port}/"
            first = await on.fetcher.fetch(url)
            assert isinstance(first, Exchange), first
            assert (first.body, first.address) == (b"public", "127.0.0.2")
            on.points("rebind.test", "127.0.0.1")
            again = await on.fetcher.fetch(url)
            assert isinstance(again, Exchange), "within its time to live the first answer holds"
            assert again.address == "127.0.0.2"
            assert on.names.asked["rebind.test", A] == 1, "what was checked is not looked up a second time"
            on.clock.advance(6)
            refused = await on.fetcher.fetch(url)
            assert isinstance(refused, Failed)
            assert refused.kind is FailureKind.ADDRESS_REFUSED
            assert refused.detail == "loopback address 127.0.0.1"

    with serving(sends(page(b"public")), address="127.0.0.2") as public:
        victim = socket.create_server(("127.0.0.1", public.port))
        victim.setblocking(False)
        with victim:
            play(scene)
            with pytest.raises(BlockingIOError):
                victim.accept()


def test_an_open_connection_is_no_way_around_the_guard() -> None:
    async def scene() -> None:
        async with stage(GUARD) as on:
            on.points("rebind.test", "127.0.0.2")
            url = f"http://rebind.test:{public.port}/"
            for _ in range(2):
                assert isinstance(await on.fetcher.fetch(url), Exchange)
            on.points("rebind.test", "10.0.0.1")
            on.clock.advance(6)
            assert isinstance(await on.fetcher.fetch(url), Failed)

    with serving(sends(page(b"public"), keep=True), address="127.0.0.2") as public:
        play(scene)
        assert (public.connections, len(public.requests)) == (1, 2)


def test_of_several_addresses_only_the_allowed_ones_are_dialled() -> None:
    async def scene() -> None:
        async with stage(GUARD) as on:
            on.points("mixed.test", "127.0.0.1", "127.0.0.2", "::1", "169.254.169.254")
            found = await on.fetcher.fetch(f"http://mixed.test:{public.port}/")
            assert isinstance(found, Exchange)
            assert found.address == "127.0.0.2"

    with serving(sends(page(b"public")), address="127.0.0.2") as public:
        play(scene)


# -- addresses that cannot be reached


@contextmanager
def silent_listener(port: int) -> Iterator[None]:
    """With a full backlog it drops further connection requests, as a dead machine would."""
    with (
        socket.create_server(("127.0.0.1", port), backlog=0) as listener,
        contextlib.ExitStack() as filling,
    ):
        for _ in range(4):
            client = filling.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield


def test_when_one_family_leads_nowhere_the_other_is_tried_in_time_and_first_from_then_on() -> None:
    async def scene() -> None:
        async with stage(AddressGuard(allow_private=True)) as on:
            on.points("dual.test", "127.0.0.1", "::1")
            loop = asyncio.get_running_loop()
            took = []
            for _ in range(2):
                begun = loop.time()
                found = await on.fetcher.fetch(f"http://dual.test:{live.port}/")
                took.append(loop.time() - begun)
                assert isinstance(found, Exchange), found
                assert (found.address, found.reused_connection) == ("::1", False)
            assert 0.9 < took[0] < 2.0, "half of the time to connect"
            assert took[1] < 0.9

    try:
        live = RawServer(sends(page(b"six", b"Connection: close")), address="::1")
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with contextlib.closing(live), silent_listener(live.port):
        play(scene)


def test_a_refused_connection_is_followed_by_the_next_address_at_once() -> None:
    async def scene() -> None:
        async with stage(AddressGuard(allow_private=True)) as on:
            on.points("two.test", "127.0.0.3", "127.0.0.1")
            found = await on.fetcher.fetch(f"http://two.test:{live.port}/")
            assert isinstance(found, Exchange)
            assert found.address == "127.0.0.1"

    with serving(sends(page(b"x"))) as live:
        play(scene)


def test_when_no_address_can_be_reached_the_failure_is_of_a_connection() -> None:
    async def scene() -> None:
        async with stage(AddressGuard(allow_private=True)) as on:
            on.points("none.test", "127.0.0.3", "127.0.0.1")
            found = await on.fetcher.fetch(f"http://none.test:{gone.port}/")
            assert isinstance(found, Failed)
            assert found.kind is FailureKind.CONNECT_REFUSED

    with serving(sends(page(b"x"))) as gone:
        pass
    play(scene)
