"""A worker's end of the wire against a real server: clocks, lost answers, absences."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skitter.clock import Clock, SystemClock
from skitter.desk.brain import Delivery, Standing
from skitter.desk.wire import SETTLE, SettleAsk, Taken
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled, Settlement
from skitter.frontier.bundles import bundled, untied
from skitter.log import Log
from skitter.model import Bundle, Discovered, Fetched, HostLease, Outcome
from skitter.service.access import Access, Role
from skitter.settings import FrontierSettings
from skitter.wiring import Office, open_office, serving_office
from skitter.worker.link import Away, Link, Refused
from skitter.worker.remote import RemoteBrain
from tests.frontier_kit import discovered, seed
from tests.integration.test_desk import SETTINGS, delivery

LEASED = msgspec.structs.replace(SETTINGS, frontier=FrontierSettings(lease_duration=30.0))
URL, OTHER = "http://a.test/", "http://b.test/"


class Wrong:
    """A clock that is off by so much."""

    def __init__(self, right: Clock, off: float) -> None:
        self._clock, self._off = right, off

    def now(self) -> float:
        return self._clock.now() + self._off


class Hasty:
    """A clock that goes on by so much whenever it is asked."""

    def __init__(self, right: Clock) -> None:
        self._clock, self._ahead = right, 0.0
        self.step = 0.0

    def now(self) -> float:
        self._ahead += self.step
        return self._clock.now() + self._ahead


LINKS: list[Link] = []


def linked(where: str, token: str = "") -> Link:
    LINKS.append(Link(where, token))
    return LINKS[-1]


def run_to_its_end(main: Coroutine[Any, Any, None]) -> None:
    async def all_of_it() -> None:
        try:
            await main
        finally:
            while LINKS:
                await LINKS.pop().close()

    asyncio.run(all_of_it())


@asynccontextmanager
async def serving(
    folder: Path, listen: str = "127.0.0.1:0", tokens: Access | None = None
) -> AsyncIterator[tuple[str, Office]]:
    async with (
        open_office(CrawlFolder(folder), LEASED) as office,
        serving_office(office, CrawlFolder(folder), LEASED, listen, tokens or Access()) as (where, _),
    ):
        await office.frontier.admit([seed(URL)])
        yield where, office


def run(folder: Path, use: Callable[[str, Office], Awaitable[None]], listen: str = "127.0.0.1:0") -> None:
    async def main() -> None:
        async with serving(folder, listen) as (where, office):
            await use(where, office)

    run_to_its_end(main())


async def joined(where: str, clock: Clock | None = None, name: str = "worker-1") -> RemoteBrain:
    brain = RemoteBrain(linked(where), clock or SystemClock(), name)
    assert await brain.join() == LEASED
    return brain


async def next_lease(brain: RemoteBrain) -> HostLease:
    """Of a host that was just asked: a delivery is dated 10 ms ahead, and until then it rests."""
    async with asyncio.timeout(30):
        while not (leases := await brain.lease("", 10, 30.0)):
            await asyncio.sleep(0.005)
    (lease,) = leases
    return lease


def dated(lease: HostLease, at: float, *links: str) -> Delivery:
    made = delivery(lease, lease.tasks[0])
    outcome = msgspec.structs.replace(made.outcome, sent_at=at, ended_at=at + 0.01)
    if links:
        result = msgspec.structs.replace(
            outcome.result, bundles=bundled(discovered(url, depth=2) for url in links)
        )
        outcome = msgspec.structs.replace(outcome, result=result)
    return msgspec.structs.replace(made, outcome=outcome)


@pytest.mark.parametrize("off", [-86_400.0, 0.0, 3_600.0])
def test_a_worker_with_a_wrong_clock_keeps_to_its_lease_and_tells_the_right_times(
    tmp_path: Path, off: float
) -> None:
    async def use(where: str, office: Office) -> None:
        here = Wrong(office.clock, off)
        brain = await joined(where, here)
        before = here.now()
        (lease,) = await brain.lease("", 10, 30.0)
        after = here.now()
        assert before + 29.9 < lease.deadline <= after + 30.0
        assert before - 0.1 < lease.not_before <= after + 0.1
        renewed = await brain.renew([(lease.host, lease.token)], 30.0)
        assert renewed is not None
        (deadline,) = renewed
        assert deadline is not None
        assert after + 29.9 < deadline <= here.now() + 30.0
        sent = here.now()
        await brain.settle([dated(lease, sent)])
        (view,) = await office.frontier.hosts(limit=10)
        # with a delay of 0 the host is ready when its last request was sent, or a little later
        assert sent - off - 0.001 <= view.next_start < sent - off + 5.0

    run(tmp_path, use)


def test_a_batch_that_is_sent_again_is_answered_as_the_first_time(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain, link = await joined(where), linked(where)
        (lease,) = await brain.lease("", 10, 30.0)
        ask = SettleAsk(
            worker="w", incarnation="1", sequence=7, deliveries=[dated(lease, office.clock.now())]
        )
        answers = [await link.post(SETTLE, msgspec.msgpack.encode(ask)) for _ in range(3)]
        settled = [msgspec.msgpack.decode(answer, type=Taken).settled for answer in answers]
        assert settled == [[Settled.ACCEPTED]] * 3
        again = msgspec.structs.replace(ask, incarnation="2")
        answer = msgspec.msgpack.decode(await link.post(SETTLE, msgspec.msgpack.encode(again)), type=Taken)
        assert answer.settled == [Settled.STALE]
        stats = await office.frontier.stats()
        assert (stats.fetches, stats.stale_outcomes) == (1, 1)

    run(tmp_path, use)


def test_hosts_that_came_with_an_answer_come_with_it_again(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain, link = await joined(where), linked(where)
        (lease,) = await brain.lease("", 10, 30.0)
        made = dated(lease, office.clock.now() - 1.0)
        ask = SettleAsk(worker="w", incarnation="1", sequence=7, deliveries=[made], capacity=9)
        asks = [ask, msgspec.structs.replace(ask, capacity=0), ask]
        answers = [await link.post(SETTLE, msgspec.msgpack.encode(one)) for one in asks]
        tokens = [msgspec.msgpack.decode(answer, type=Taken).leases[0].token for answer in answers]
        assert len(set(tokens)) == len(await office.frontier.leases(limit=10)) == 1

    run(tmp_path, use)


def test_what_was_fetched_while_the_server_was_away_is_delivered_when_it_is_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    log = tmp_path / "log"

    async def main() -> None:
        async with AsyncExitStack() as first:
            where, office = await first.enter_async_context(serving(tmp_path / "crawl", listen))
            brain = await joined(where)
            brain.log = Log(log, SystemClock())
            (robots,) = await brain.lease("", 10, 30.0)
            await brain.settle([dated(robots, office.clock.now())])
            lease = await next_lease(brain)
        await brain.settle([dated(lease, SystemClock().now())])
        assert (brain.standing, brain.undelivered, brain.is_away) == (Standing.PAUSED, 1, True)
        assert await brain.lease("", 10, 30.0) == []
        assert await brain.renew([(lease.host, lease.token)], 30.0) is None
        async with serving(tmp_path / "crawl", listen) as (_, office):
            while brain.is_away:
                await brain.beat()
                await asyncio.sleep(0.01)
            assert (brain.standing, brain.undelivered) == (Standing.OPEN, 0)
            stats = await office.frontier.stats()
            assert stats.pages == 1
        brain.log.close()

    (tmp_path / "crawl").mkdir()
    run_to_its_end(main())
    assert [word in log.read_text() for word in ("server_away", "server_back")] == [True, True]


def test_what_nobody_took_for_too_long_is_dropped_and_told(tmp_path: Path) -> None:
    class Later(Wrong):
        def __init__(self) -> None:
            super().__init__(SystemClock(), 0.0)

        def pass_by(self, seconds: float) -> None:
            self._off += seconds

    async def main() -> None:
        clock = Later()
        async with serving(tmp_path / "crawl") as (where, _):
            brain = RemoteBrain(linked(where), clock, "w")
            await brain.join()
            (lease,) = await brain.lease("", 10, 30.0)
        brain.log = Log(tmp_path / "log", clock)
        await brain.settle([dated(lease, clock.now())])
        clock.pass_by(60.0)
        await brain.beat()
        assert brain.undelivered == 1
        clock.pass_by(100.0)
        await brain.beat()
        assert brain.undelivered == 0
        brain.log.close()

    (tmp_path / "crawl").mkdir()
    run_to_its_end(main())
    assert "deliveries_dropped" in (tmp_path / "log").read_text()


def test_a_worker_without_anything_to_deliver_notices_that_the_server_is_back_or_goes_on(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"

    async def until(brain: RemoteBrain, standing: Standing) -> None:
        while brain.standing is not standing:
            await brain.beat()
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with serving(tmp_path, listen) as (where, office):
            brain = await joined(where)
            office.desk.is_paused = True
            await brain.lease("", 10, 30.0)
            assert brain.standing is Standing.PAUSED
            office.desk.is_paused = False
            await until(brain, Standing.OPEN)
        await brain.lease("", 10, 30.0)
        await until(brain, Standing.PAUSED)
        async with serving(tmp_path, listen):
            await until(brain, Standing.OPEN)

    run_to_its_end(main())


def test_what_waits_to_be_delivered_keeps_its_lease_and_no_more_is_leased(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        clock = Hasty(office.clock)
        brain = await joined(where, clock)
        (robots,) = await brain.lease("", 10, 30.0)
        await office.frontier.admit([seed(f"{URL}{number}") for number in range(3)])
        await brain.settle([dated(robots, clock.now())])
        lease = await next_lease(brain)
        assert len(lease.tasks) > 2
        # More than one batch, and no time for a second one.
        clock.step = 2.0
        first, second = delivery(lease, lease.tasks[0]), delivery(lease, lease.tasks[1])
        await brain.settle([first] * 64 + [second])
        assert brain.undelivered == 1
        (before,) = await office.frontier.leases(limit=10)
        clock.step = 0.0
        await office.frontier.admit([seed("http://other.test/")])
        brain._waiting.extend([(clock.now(), 0, second)] * 256)
        assert await brain.lease("", 10, 30.0) == []
        standings = [brain.standing]
        brain._bytes += 64_000_000
        standings.append(brain.standing)
        brain._bytes -= 64_000_000
        await brain.beat()
        assert [*standings, brain.standing] == [Standing.OPEN, Standing.PAUSED, Standing.OPEN]
        (kept,) = await office.frontier.leases(limit=10)
        assert (brain.undelivered, kept.tasks) == (0, len(lease.tasks) - 2)
        assert kept.deadline > before.deadline

    run(tmp_path, use)


def test_a_server_that_was_started_anew_sees_the_gaps_that_there_were(tmp_path: Path) -> None:
    """The first answer of the last one took long: its clock could be ahead of ours by as much. That of the new
    one comes at once; of two requests of a lease one is told to each."""

    async def use(where: str, office: Office) -> None:
        brain = await joined(where)
        (lease,) = await brain.lease("", 10, 30.0)
        brain._server, brain._offset = "the last one", brain._offset + 0.4
        before = brain._offset
        await brain.settle([dated(lease, office.clock.now() - 1.0)])
        assert (brain.undelivered, brain._offset) == (0, before)

    run(tmp_path, use)


def test_a_server_whose_first_answer_took_long_is_asked_again_before_anything_is_dated(
    tmp_path: Path,
) -> None:
    """It was stopped, or busy: its clock may be as much behind what the answer says."""

    async def use(where: str, office: Office) -> None:
        clock = Hasty(office.clock)
        brain = await joined(where, clock)
        (lease,) = await brain.lease("", 10, 30.0)
        brain._server, brain._offset = "the last one", 7200.0
        clock.step = 12.0
        await brain.renew([(lease.host, lease.token)], 30.0)
        clock.step = 0.0
        right = office.clock.now() - clock.now()
        assert right + 5.0 < brain._offset < right + 60.0
        sent = clock.now()
        await brain.settle([dated(lease, sent)])
        assert brain.undelivered == 0
        assert right - 0.001 <= brain._offset < right + 5.0
        (view,) = await office.frontier.hosts(limit=10)
        assert view.next_start < sent + right + 5.0

    run(tmp_path, use)


def test_the_clock_of_a_server_that_was_slow_when_it_was_joined_is_known_from_its_next_answer(
    tmp_path: Path,
) -> None:
    async def use(where: str, office: Office) -> None:
        clock = Hasty(office.clock)
        clock.step = 12.0
        brain = await joined(where, clock)
        clock.step = 0.0
        right = office.clock.now() - clock.now()
        assert brain._offset > right + 5.0
        await brain.lease("", 10, 30.0)
        assert right - 0.001 <= brain._offset < right + 5.0

    run(tmp_path, use)


def test_a_server_that_was_started_anew_and_slow_sees_the_gaps_that_there_were(tmp_path: Path) -> None:
    """As one that answers at once: the bound of the last one's clock holds for its own."""

    async def use(where: str, office: Office) -> None:
        clock = Hasty(office.clock)
        brain = await joined(where, clock)
        (lease,) = await brain.lease("", 10, 30.0)
        brain._server = "the last one"
        clock.step = 12.0
        await brain.renew([(lease.host, lease.token)], 30.0)
        clock.step = 0.0
        brain._former = before = office.clock.now() - clock.now() + 0.4
        await brain.settle([dated(lease, clock.now() - 1.0)])
        assert (brain.undelivered, brain._offset) == (0, before)

    run(tmp_path, use)


def test_a_server_that_was_started_anew_gets_times_by_its_own_clock(tmp_path: Path) -> None:
    """The last one's may have been hours ahead, and a host that was asked in the future waits until then."""

    async def use(where: str, office: Office) -> None:
        brain = await joined(where)
        (lease,) = await brain.lease("", 10, 30.0)
        sent = office.clock.now()
        brain._server, brain._offset = "the last one", 7200.0
        await brain.settle([dated(lease, sent)])
        assert brain.undelivered == 0
        (view,) = await office.frontier.hosts(limit=10)
        assert view.next_start < sent + 5.0

    run(tmp_path, use)


def test_links_that_a_page_of_the_same_host_told_of_do_not_cross_the_wire_again(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain = await joined(where)
        (robots,) = await brain.lease("", 10, 30.0)
        await brain.settle([dated(robots, office.clock.now())])
        own, elsewhere = [f"{URL}{number}" for number in range(5)], ["http://b.test/", "http://c.test/"]
        for saved in (0, 5):
            lease = await next_lease(brain)
            await brain.settle([dated(lease, office.clock.now(), *own, *elsewhere)])
            assert brain.offered.saved == saved
            await brain.release([(lease.host, lease.token)])
        stats = await office.frontier.stats()
        assert stats.urls["queued"] == 4
        brain.offered.forget()

    run(tmp_path, use)


def test_a_unix_socket_is_joined_as_well_and_nobody_elses(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain = await joined(where)
        assert len(await brain.lease("", 10, 30.0)) == 1
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600

    run(tmp_path, use, f"unix:{tmp_path / 's'}")


def test_a_token_that_does_not_allow_it_is_the_users_fault(tmp_path: Path) -> None:
    async def main() -> None:
        tokens = Access([(Role.WORKER, "w" * 20), (Role.READ, "r" * 20)])
        async with serving(tmp_path, tokens=tokens) as (where, _):
            assert await RemoteBrain(linked(where, "w" * 20), SystemClock(), "w").join() == LEASED
            for token in ("", "r" * 20, "nonsense"):
                with pytest.raises(UsageError, match="refuses the token"):
                    await RemoteBrain(linked(where, token), SystemClock(), "w").join()

    run_to_its_end(main())


def test_garbage_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        link = linked(where)
        for body in (b"", b"\xc1", b"\x80", b"\xff" * 100, msgspec.msgpack.encode({"worker": "w"})):
            with pytest.raises(Refused) as refused:
                await link.post(SETTLE, body)
            assert refused.value.status in (400, 422)
        assert len(await (await joined(where)).lease("", 10, 30.0)) == 1

    run(tmp_path, use)


@pytest.mark.parametrize("where", ["", "ftp://x", "127.0.0.1:8600", "http://"])
def test_a_server_is_named_as_a_url(where: str) -> None:
    with pytest.raises(UsageError, match="no server to join"):
        Link(where)


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"])
def test_a_server_that_is_none_is_away(said: bytes) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(said)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(Away):
                await linked(f"http://127.0.0.1:{port}").post("/", b"x")

    run_to_its_end(main())


def test_a_link_that_another_worker_told_is_known_and_counted_as_such(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        first, second = await joined(where), await joined(where)
        await first.settle([dated(await next_lease(first), office.clock.now())])  # robots.txt
        watch = Watching(office)
        await first.settle([dated(await next_lease(first), office.clock.now(), "http://a.test/new")])
        await first.leave()
        told = ("http://a.test/new", "http://a.test/newer")
        await second.settle([dated(await next_lease(second), office.clock.now(), *told)])
        assert watch.links == [("http://a.test/new",), told]
        assert watch.counts == [(1, 0), (1, 1)]

    run(tmp_path, use)


def test_links_that_are_none_are_refused(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain, link = await joined(where), linked(where)
        made = dated(await next_lease(brain), office.clock.now())
        broken = Bundle(b"short", URL, 1)
        result = Fetched(status=200, bundles=(broken,))
        made = msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.outcome, result=result))
        ask = SettleAsk(worker="w", incarnation="1", sequence=1, deliveries=[made])
        with pytest.raises(Refused, match="422"):
            await link.post(SETTLE, msgspec.msgpack.encode(ask))
        assert (await office.frontier.stats()).fetches == 0

    run(tmp_path, use)


def test_a_fingerprint_that_is_none_is_refused_and_the_desk_goes_on(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain, link = await joined(where), linked(where)
        await brain.settle([dated(await next_lease(brain), office.clock.now())])  # robots.txt
        made = dated(await next_lease(brain), office.clock.now())
        result = Fetched(status=200, simhash=-1)
        broken = msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.outcome, result=result))
        ask = SettleAsk(worker="w", incarnation="1", sequence=1, deliveries=[broken])
        with pytest.raises(Refused, match="422"):
            await link.post(SETTLE, msgspec.msgpack.encode(ask))
        await brain.settle([made])
        assert (await office.frontier.stats()).fetches == 2

    run(tmp_path, use)


def test_hosts_that_a_settle_frees_come_with_its_answer(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain, leases = await joined(where), Watching(office).leases
        (robots,) = await brain.lease("", 10, 30.0)
        await brain.settle([dated(robots, office.clock.now() - 1.0)])
        assert leases == [1, 1]
        await brain.beat()
        (lease,) = await brain.lease("", 10, 30.0)
        assert (lease.host, leases) == (robots.host, [1, 1])
        assert lease.deadline > robots.deadline
        await brain.settle([dated(lease, office.clock.now() - 1.0)])
        assert await brain.lease("", 10, 30.0) == []

    run(tmp_path, use)


def test_hosts_that_came_with_an_answer_and_are_not_wanted_are_given_back(tmp_path: Path) -> None:
    """By the second pulse, or when the loop has ended: it drained meanwhile, or was told to wait."""

    async def use(where: str, office: Office) -> None:
        brain = await joined(where)
        (robots,) = await brain.lease("", 10, 30.0)
        await brain.settle([dated(robots, office.clock.now() - 1.0)])
        await brain.beat()
        held = [len(await office.frontier.leases(limit=10))]
        await brain.beat()
        held.append(len(await office.frontier.leases(limit=10)))
        (lease,) = await brain.lease("", 10, 30.0)
        await brain.settle([dated(lease, office.clock.now() - 1.0, f"{URL}1")])
        held.append(len(await office.frontier.leases(limit=10)))
        await brain.leave()
        held.append(len(await office.frontier.leases(limit=10)))
        assert held == [1, 0, 1, 0]

    run(tmp_path, use)


def test_pages_with_thousands_of_links_are_committed_one_by_one(tmp_path: Path) -> None:
    """So that who asks for hosts does not wait for all of them."""

    async def use(where: str, office: Office) -> None:
        brain, watch = await joined(where), Watching(office)
        (robots,) = await brain.lease("", 10, 30.0)
        await office.frontier.admit([seed(f"{URL}{number}") for number in range(3)])
        await brain.settle([dated(robots, office.clock.now() - 1.0)])
        (lease,) = await brain.lease("", 10, 30.0)
        plain, *long = (
            dated(msgspec.structs.replace(lease, tasks=(task,)), office.clock.now()) for task in lease.tasks
        )
        links = tuple(discovered(f"{URL}a/{number}") for number in range(2_000))
        assert len(long) > 1
        filled = [with_links(made, links) for made in long]
        await brain.settle([plain, *filled])
        assert watch.commits == [1, 2, *([1] * (len(long) - 1))]

    run(tmp_path, use)


def test_who_holds_no_host_is_given_those_that_its_first_page_frees_before_the_next_is_taken(
    tmp_path: Path,
) -> None:
    """Two indexes with thousands of links: a worker idled until the desk had admitted all of both."""
    links = tuple(discovered(f"{URL}a/{number}") for number in range(4_000))

    async def use(where: str, office: Office) -> None:
        await office.frontier.admit([seed(OTHER)])
        brain, watch = await joined(where), Watching(office)
        await brain.settle(
            [dated(lease, office.clock.now() - 1.0) for lease in await brain.lease("", 10, 30.0)]
        )
        pages = [dated(lease, office.clock.now() - 1.0) for lease in await brain.lease("", 10, 30.0)]
        assert len(pages) == 2
        first, second = (with_links(made, links) for made in pages)
        watch.commits.clear()
        await brain.settle([first, second])
        await brain.beat()
        assert (watch.commits, brain.undelivered) == ([1], 1)
        assert [lease.host for lease in await brain.lease("", 10, 30.0)] == [first.outcome.host]
        brain.held = lambda: 1
        await brain.beat()
        assert (watch.commits, brain.undelivered) == ([1, 1], 0)

    run(tmp_path, use)


def test_who_does_not_want_hosts_delivers_all_the_same(tmp_path: Path) -> None:
    """It was told to stop after it had asked for them: they go back, and the rest is delivered."""
    links = tuple(discovered(f"{URL}a/{number}") for number in range(4_000))

    async def use(where: str, office: Office) -> None:
        await office.frontier.admit([seed(OTHER)])
        brain = await joined(where)
        await brain.settle(
            [dated(lease, office.clock.now() - 1.0) for lease in await brain.lease("", 10, 30.0)]
        )
        pages = [dated(lease, office.clock.now() - 1.0) for lease in await brain.lease("", 10, 30.0)]
        await brain.settle([with_links(made, links) for made in pages])
        for _ in range(2):
            await brain.beat()
        assert brain.undelivered == 0
        assert await office.frontier.leases(limit=10) == []

    run(tmp_path, use)


def with_links(made: Delivery, links: tuple[Discovered, ...]) -> Delivery:
    result = msgspec.structs.replace(made.outcome.result, bundles=bundled(links))
    return msgspec.structs.replace(made, outcome=msgspec.structs.replace(made.outcome, result=result))


def test_who_holds_more_hosts_than_one_that_went_short_leaves_it_those_that_become_free(
    tmp_path: Path,
) -> None:
    async def use(where: str, office: Office) -> None:
        rich, poor = await joined(where), await joined(where, name="worker-2")
        rich.held = lambda: 10
        (robots,) = await rich.lease("", 10, 30.0)
        assert await poor.lease("", 10, 30.0) == []
        await rich.settle([dated(robots, office.clock.now() - 1.0)])
        assert (await rich.lease("", 10, 30.0), await office.frontier.leases(limit=10)) == ([], [])
        assert (await rich.lease("", 10, 30.0), await office.frontier.leases(limit=10)) == ([], [])
        (lease,) = await poor.lease("", 1, 30.0)
        await poor.release([(lease.host, lease.token)])
        assert len(await rich.lease("", 10, 30.0)) == 1, "the other has all that it asked for"

    run(tmp_path, use)


def test_who_went_short_and_was_not_heard_since_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        rich, poor = await joined(where), await joined(where, name="worker-2")
        rich.held = lambda: 10
        (robots,) = await rich.lease("", 10, 30.0)
        assert await poor.lease("", 10, 30.0) == []
        await rich.settle([dated(robots, office.clock.now() - 1.0)])
        async with asyncio.timeout(20):
            while not await rich.lease("", 10, 30.0):
                await asyncio.sleep(0.1)

    run(tmp_path, use)


def test_who_did_not_ask_lately_is_given_no_hosts_with_an_answer(tmp_path: Path) -> None:
    async def use(where: str, office: Office) -> None:
        brain = await joined(where)
        (robots,) = await brain.lease("", 10, 30.0)
        await brain.beat()
        await brain.settle([dated(robots, office.clock.now() - 1.0)])
        assert await office.frontier.leases(limit=10) == []

    run(tmp_path, use)


class Watching:
    """A witness of what reaches the frontier, and of what it says to it."""

    def __init__(self, office: Office) -> None:
        self.links: list[tuple[str, ...]] = []
        self.counts: list[tuple[int, int]] = []
        self.leases: list[int] = []
        self.commits: list[int] = []
        office.frontier.attend(self)

    def leased(self, worker: str, leases: int, now: float) -> None:
        self.leases.append(leases)

    def settled(self, outcomes: Sequence[Outcome], settlements: Sequence[Settlement], now: float) -> None:
        self.commits.append(len(outcomes))
        for outcome, settlement in zip(outcomes, settlements, strict=True):
            if not isinstance(outcome.result, Fetched):
                continue
            self.links.append(tuple(link.url for link in untied(outcome.result.bundles)))
            self.counts.append((settlement.added, settlement.known))

    def syncing(self) -> None: ...

    def synced(self) -> None: ...
