"""The resolver against a real DNS server on loopback that answers, lies, fails or keeps silent."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skitter.errors import UsageError
from skitter.fetch.resolver import MAX_ADDRESSES, Answer, Override, Resolver, Unresolved, parse_override
from skitter.model import FailureKind
from skitter.settings import FetchSettings
from tests.nameserver import AAAA, CNAME, NXDOMAIN, REFUSED, SERVFAIL, A, Nameserver, Record, nameserver


class FakeClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


class Bench:
    def __init__(self, server: Nameserver, resolver: Resolver, clock: FakeClock) -> None:
        self.server, self.resolver, self.clock = server, resolver, clock

    def questions(self, name: str) -> int:
        return self.server.asked[name, A]


@asynccontextmanager
async def bench(
    *,
    cache: int = 100,
    timeout: float = 2.0,
    tries: int = 1,
    pending: int = 500,
    resolve: tuple[str, ...] = (),
) -> AsyncIterator[Bench]:
    async with nameserver() as server:
        clock = FakeClock()
        settings = FetchSettings(nameservers=(server.address,), dns_cache=cache, resolve=resolve)
        resolver = Resolver(settings, clock, timeout=timeout, tries=tries, max_pending=pending)
        try:
            yield Bench(server, resolver, clock)
        finally:
            await resolver.close()


def run(promise: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await promise()

    asyncio.run(whole())


def test_both_families_are_asked_and_ipv4_comes_first() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("both.test", 60, "2001:db8::7", "192.0.2.9", "192.0.2.1")
            answer = await each.resolver.resolve("both.test", 443)
            assert answer == Answer(("192.0.2.9", "192.0.2.1", "2001:db8::7"), 443)
            assert each.server.asked == {("both.test", A): 1, ("both.test", AAAA): 1}

    run(promise)


def test_a_name_with_only_ipv6_resolves() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("six.test", 60, "2001:db8::6")
            assert await each.resolver.resolve("six.test", 80) == Answer(("2001:db8::6",), 80)

    run(promise)


def test_a_cname_is_followed_and_its_lower_ttl_counts() -> None:
    async def promise() -> None:
        async with bench(cache=1) as each:
            alias: Record = ("www.test", CNAME, 10, "real.test")
            each.server.zone["www.test", A] = [alias, ("real.test", A, 3000, "192.0.2.1")]
            each.server.zone["www.test", AAAA] = [alias]
            assert await each.resolver.resolve("www.test", 80) == Answer(("192.0.2.1",), 80)
            each.clock.time += 9.9
            await each.resolver.resolve("www.test", 80)
            assert each.questions("www.test") == 1
            each.clock.time += 0.2
            await each.resolver.resolve("www.test", 80)
            assert each.questions("www.test") == 2

    run(promise)


@pytest.mark.parametrize(("ttl", "kept"), [(0, 5.0), (60, 60.0), (2_000_000, 3600.0)])
def test_an_answer_is_kept_for_its_ttl_within_bounds(ttl: int, kept: float) -> None:
    async def promise() -> None:
        async with bench(cache=1) as each:
            each.server.add("kept.test", ttl, "192.0.2.1")
            await each.resolver.resolve("kept.test", 80)
            each.server.zone.clear()
            each.server.add("kept.test", ttl, "192.0.2.2")
            each.clock.time += kept - 0.01
            assert await each.resolver.resolve("kept.test", 80) == Answer(("192.0.2.1",), 80)
            each.clock.time += 0.02
            assert await each.resolver.resolve("kept.test", 80) == Answer(("192.0.2.2",), 80)
            assert (each.resolver.hits, each.resolver.misses) == (1, 2)

    run(promise)


@pytest.mark.parametrize(
    ("code", "kind", "kept"),
    [
        (NXDOMAIN, FailureKind.DNS_NOT_FOUND, 30.0),
        (SERVFAIL, FailureKind.DNS_FAILED, 5.0),
        (REFUSED, FailureKind.DNS_FAILED, 5.0),
    ],
)
def test_a_negative_answer_is_a_value_and_is_kept(code: int, kind: FailureKind, kept: float) -> None:
    async def promise() -> None:
        async with bench(cache=1) as each:
            each.server.codes["bad.test"] = code
            first = await each.resolver.resolve("bad.test", 80)
            assert isinstance(first, Unresolved)
            assert first.kind == kind
            asked = each.questions("bad.test")
            each.clock.time += kept - 0.01
            assert await each.resolver.resolve("bad.test", 80) == first
            assert each.questions("bad.test") == asked
            each.clock.time += 0.02
            await each.resolver.resolve("bad.test", 80)
            assert each.questions("bad.test") > asked
            assert each.resolver.failures == 2

    run(promise)


def test_a_name_without_addresses_is_not_found() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.zone["empty.test", 16] = []
            found = await each.resolver.resolve("empty.test", 80)
            assert isinstance(found, Unresolved)
            assert found.kind == FailureKind.DNS_NOT_FOUND

    run(promise)


def test_silence_is_a_timeout_within_the_promised_time() -> None:
    async def promise() -> None:
        async with bench(timeout=0.3, tries=2) as each:
            each.server.silent |= {("mute.test", A), ("mute.test", AAAA)}
            began = asyncio.get_running_loop().time()
            found = await each.resolver.resolve("mute.test", 80)
            assert isinstance(found, Unresolved)
            assert found.kind == FailureKind.DNS_TIMEOUT
            assert asyncio.get_running_loop().time() - began < 2.0

    run(promise)


def test_a_name_is_waited_for_as_long_as_the_settings_say() -> None:
    async def promise() -> None:
        async with nameserver() as server:
            server.silent |= {("mute.test", A), ("mute.test", AAAA)}
            settings = FetchSettings(nameservers=(server.address,), dns_timeout=0.4)
            resolver = Resolver(settings, FakeClock())
            async with asyncio.timeout(5.0):
                found = await resolver.resolve("mute.test", 80)
            await resolver.close()
            assert isinstance(found, Unresolved)
            assert found.kind == FailureKind.DNS_TIMEOUT

    run(promise)


def test_a_server_that_ignores_questions_for_ipv6_still_gives_ipv4() -> None:
    async def promise() -> None:
        async with bench(timeout=0.3, tries=2) as each:
            each.server.add("half.test", 60, "192.0.2.1")
            each.server.silent.add(("half.test", AAAA))
            assert await each.resolver.resolve("half.test", 80) == Answer(("192.0.2.1",), 80)

    run(promise)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def test_a_server_that_is_not_there_is_a_failure() -> None:
    async def promise() -> None:
        settings = FetchSettings(nameservers=(f"127.0.0.1:{free_port()}",))
        resolver = Resolver(settings, FakeClock(), timeout=0.2)
        found = await resolver.resolve("any.test", 80)
        await resolver.close()
        assert isinstance(found, Unresolved)
        assert found.kind == FailureKind.DNS_TIMEOUT

    run(promise)


def test_names_asked_while_the_server_is_started_anew_are_found() -> None:
    async def promise() -> None:
        port, names = free_port(), [f"n{number}.test" for number in range(20)]
        resolver = Resolver(FetchSettings(nameservers=(f"127.0.0.1:{port}",)), FakeClock(), timeout=10.0)
        asking = asyncio.gather(*(resolver.resolve(name, 80) for name in names))
        while resolver.unheard < 3 * len(names) and not asking.done():
            await asyncio.sleep(0.01)
        async with nameserver(port) as server:
            for name in names:
                server.add(name, 60, "192.0.2.1")
            assert await asking == [Answer(("192.0.2.1",), 80)] * len(names)
        assert resolver.failures == 0
        await resolver.close()

    run(promise)


def test_many_waiters_cause_one_query() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("busy.test", 60, "192.0.2.1")
            each.server.gate.clear()
            waiters = [asyncio.create_task(each.resolver.resolve("busy.test", port)) for port in range(1, 51)]
            await each.server.arrived.wait()
            each.server.gate.set()
            answers = await asyncio.gather(*waiters)
            assert answers == [Answer(("192.0.2.1",), port) for port in range(1, 51)]
            assert each.questions("busy.test") == 1
            assert (each.resolver.misses, each.resolver.hits) == (1, 49)

    run(promise)


def test_a_waiter_that_gives_up_does_not_end_the_query_for_the_others() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("busy.test", 60, "192.0.2.1")
            each.server.gate.clear()
            first = asyncio.create_task(each.resolver.resolve("busy.test", 80))
            second = asyncio.create_task(each.resolver.resolve("busy.test", 80))
            await each.server.arrived.wait()
            first.cancel()
            each.server.gate.set()
            assert await second == Answer(("192.0.2.1",), 80)
            assert first.cancelled()

    run(promise)


def test_open_queries_are_bounded() -> None:
    async def promise() -> None:
        async with bench(pending=4) as each:
            names = [f"n{number}.test" for number in range(40)]
            for name in names:
                each.server.add(name, 60, "192.0.2.1")
            answers = await asyncio.gather(*(each.resolver.resolve(name, 80) for name in names))
            assert answers == [Answer(("192.0.2.1",), 80)] * 40
            assert each.server.most_open <= 4

    run(promise)


def test_the_cache_forgets_the_name_that_was_used_longest_ago() -> None:
    async def promise() -> None:
        async with bench(cache=2) as each:
            for name in ("a.test", "b.test", "c.test"):
                each.server.add(name, 0, "192.0.2.1")
            for name in ("a.test", "b.test", "a.test", "c.test", "a.test", "b.test"):
                await each.resolver.resolve(name, 80)
            assert [each.questions(name) for name in ("a.test", "b.test", "c.test")] == [1, 2, 1]

    run(promise)


def test_channels_are_retired_under_load_without_losing_an_answer() -> None:
    async def promise() -> None:
        async with bench(cache=3, pending=20) as each:
            names = [f"n{number}.test" for number in range(200)]
            for name in names:
                each.server.add(name, 60, "192.0.2.1")
            answers = await asyncio.gather(*(each.resolver.resolve(name, 80) for name in names))
            assert answers == [Answer(("192.0.2.1",), 80)] * 200

    run(promise)


def test_closing_ends_the_wait_with_a_value() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.gate.clear()
            waiter = asyncio.create_task(each.resolver.resolve("slow.test", 80))
            await each.server.arrived.wait()
            await each.resolver.close()
            found = await waiter
            assert isinstance(found, Unresolved)
            assert found.kind == FailureKind.DNS_FAILED

    run(promise)


def test_case_and_a_trailing_dot_make_no_difference() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("dot.test", 60, "192.0.2.1")
            for name in ("dot.test.", "DOT.test", "dot.test"):
                assert await each.resolver.resolve(name, 80) == Answer(("192.0.2.1",), 80)
            assert each.questions("dot.test") == 1

    run(promise)


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("192.0.2.7", ("192.0.2.7",)),
        ("[2001:db8::7]", ("2001:db8::7",)),
        ("localhost", ("127.0.0.1", "::1")),
        ("any.localhost.", ("127.0.0.1", "::1")),
    ],
)
def test_literals_and_localhost_need_no_query(host: str, addresses: tuple[str, ...]) -> None:
    async def promise() -> None:
        async with bench() as each:
            assert await each.resolver.resolve(host, 80) == Answer(addresses, 80)
            assert not each.server.asked

    run(promise)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a..test",
        "a\0.test",
        "a b.test",
        "x" * 64 + ".test",
        "a." * 200 + "test",
        "bücher.test",
    ],
)
def test_what_cannot_be_a_name_is_not_found(name: str) -> None:
    async def promise() -> None:
        async with bench() as each:
            found = await each.resolver.resolve(name, 80)
            assert isinstance(found, Unresolved)
            assert found.kind == FailureKind.DNS_NOT_FOUND
            assert not each.server.asked

    run(promise)


def test_an_answer_of_very_many_addresses_is_cut() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("many.test", 60, "2001:db8::1", *(f"192.0.2.{number}" for number in range(1, 21)))
            found = await each.resolver.resolve("many.test", 80)
            assert isinstance(found, Answer)
            assert found.addresses == tuple(f"192.0.2.{number}" for number in range(1, MAX_ADDRESSES + 1))

    run(promise)


def test_the_hosts_file_is_honoured() -> None:
    lines = [line.partition("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines()]
    names = {
        name: line[0] for line in lines for name in line[1:] if "localhost" not in name and ":" not in line[0]
    }
    if not names:
        pytest.skip("/etc/hosts names no host but localhost")
    name, address = next(iter(names.items()))

    async def promise() -> None:
        async with bench() as each:
            found = await each.resolver.resolve(name, 80)
            assert isinstance(found, Answer)
            assert address in found.addresses
            assert each.questions(name.lower()) == 0

    run(promise)


def test_an_override_pins_the_address_and_the_most_exact_one_wins() -> None:
    entries = ("*:*:127.0.0.4", "*:80:127.0.0.3", "Pin.test:*:127.0.0.2", "pin.test:80:[::1]:8080")

    async def promise() -> None:
        async with bench(resolve=entries) as each:
            assert await each.resolver.resolve("pin.test", 80) == Answer(("::1",), 8080, True)
            assert await each.resolver.resolve("pin.test.", 443) == Answer(("127.0.0.2",), 443, True)
            assert await each.resolver.resolve("other.test", 80) == Answer(("127.0.0.3",), 80, True)
            assert await each.resolver.resolve("other.test", 81) == Answer(("127.0.0.4",), 81, True)
            assert not each.server.asked

    run(promise)


def test_an_override_of_another_port_does_not_apply() -> None:
    async def promise() -> None:
        async with bench(resolve=("*:80:127.0.0.1:8080",)) as each:
            each.server.add("pin.test", 60, "192.0.2.1")
            assert await each.resolver.resolve("pin.test", 443) == Answer(("192.0.2.1",), 443)

    run(promise)


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("example.org:443:127.0.0.1:8443", Override("example.org", 443, "127.0.0.1", 8443)),
        ("*:80:[::1]", Override("*", 80, "::1")),
        ("Example.ORG.:*:10.0.0.7", Override("example.org", None, "10.0.0.7")),
        ("[2001:db8::1]:80:[::1]:81", Override("[2001:db8::1]", 80, "::1", 81)),
    ],
)
def test_an_override_is_read(text: str, override: Override) -> None:
    assert parse_override(text) == override


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "example.org:443",
        "example.org:443:",
        "example.org:443:elsewhere.org",
        "example.org:443:::1",
        "example.org:0:127.0.0.1",
        "example.org:80:127.0.0.1:65536",
        "example.org:https:127.0.0.1",
        "*.example.org:80:127.0.0.1",
        "example.org:80:127.0.0.1:80:80",
        "example.org:80:[127.0.0.1]",
    ],
)
def test_a_wrong_override_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(UsageError, match=r"HOST:PORT:ADDRESS\[:PORT\]"):
        parse_override(text)


@pytest.mark.parametrize(
    "text", ["", "dns.example.org", "9.9.9.9:0", "9.9.9.9:dns", "[9.9.9.9]:53", "1.1.1.1,2.2.2.2"]
)
def test_a_wrong_nameserver_stops_the_start(text: str) -> None:
    with pytest.raises(UsageError, match="nameserver"):
        Resolver(FetchSettings(nameservers=(text,)), FakeClock())


@pytest.mark.parametrize("text", ["9.9.9.9", "127.0.0.1:5353", "::1", "[::1]:53", "[2620:fe::fe]"])
def test_a_nameserver_may_have_a_port(text: str) -> None:
    Resolver(FetchSettings(nameservers=(text,)), FakeClock())


# -- before it is asked for


def test_a_name_that_was_prepared_is_waited_for_no_more() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("soon.test", 60, "192.0.2.1")
            each.server.gate.clear()
            for _ in range(3):
                each.resolver.prepare("soon.test.", 443)
            await each.server.arrived.wait()
            waiter = asyncio.create_task(each.resolver.resolve("soon.test", 443))
            each.server.gate.set()
            assert await waiter == Answer(("192.0.2.1",), 443)
            each.resolver.prepare("soon.test", 443)
            assert each.questions("soon.test") == 1
            assert (each.resolver.misses, each.resolver.hits) == (1, 1)

    run(promise)


def test_a_prepared_name_is_asked_again_when_its_time_is_up() -> None:
    async def promise() -> None:
        async with bench(cache=1) as each:
            each.server.add("soon.test", 60, "192.0.2.1")
            await each.resolver.resolve("soon.test", 443)
            each.clock.time += 60.0
            each.resolver.prepare("soon.test", 443)
            await each.resolver.resolve("soon.test", 443)
            assert (each.questions("soon.test"), each.resolver.misses, each.resolver.hits) == (2, 2, 1)

    run(promise)


@pytest.mark.parametrize(
    "name", ["192.0.2.7", "[::1]", "localhost", "pin.test", "a..test", "a\0b", "", "é.test"]
)
def test_what_needs_no_question_is_not_prepared(name: str) -> None:
    async def promise() -> None:
        async with bench(resolve=("pin.test:*:127.0.0.1",)) as each:
            each.resolver.prepare(name, 80)
            await each.resolver.close()
            assert (each.resolver.misses, each.server.asked) == (0, {})

    run(promise)


def test_closing_ends_what_was_prepared_in_vain() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.gate.clear()
            each.resolver.prepare("never.test", 80)
            await each.server.arrived.wait()

    run(promise)


def test_the_time_that_servers_took_is_counted() -> None:
    async def promise() -> None:
        async with bench() as each:
            each.server.add("slow.test", 60, "192.0.2.1")
            each.server.gate.clear()
            waiter = asyncio.create_task(each.resolver.resolve("slow.test", 80))
            await each.server.arrived.wait()
            each.clock.time += 0.25
            each.server.gate.set()
            await waiter
            await each.resolver.resolve("slow.test", 80)
            assert each.resolver.seconds == 0.25

    run(promise)
