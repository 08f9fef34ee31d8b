"""A lease belongs to the worker that it was given to, at every door: attacks with another worker's token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from skitter.clock import SystemClock
from skitter.committer.lease_seals import NOT_YOURS, LeaseSeals
from skitter.committer.work_source import Delivery
from skitter.committer.worker_messages import (
    JOIN,
    LEASE,
    RELEASE,
    RENEW,
    SETTLE,
    LeasesRequest,
    RenewResponse,
    SettleRequest,
    SettleResponse,
    WorkerRequest,
)
from skitter.frontier.base import Settled
from skitter.model import Host, HostLease, Token
from skitter.service.http.access import Access, Role
from skitter.telemetry import Metric
from skitter.wiring import CrawlServices
from skitter.worker.remote.http_link import HttpLink, Refused
from skitter.worker.remote.remote_work_source import RemoteWorkSource
from tests.integration.test_remote_work_source import (
    LEASED,
    dated,
    linked,
    next_lease,
    run_to_its_end,
    serving,
    settle_request,
)

ALICE, MALLORY, FOREIGN = "alice-0123456789abcdef", "mallory-0123456789abcd", "foreign-0123456789abcd"
TOKENS = Access(
    [
        (Role.TRUSTED_WORKER, ALICE, "alice"),
        (Role.TRUSTED_WORKER, MALLORY, "mallory"),
        (Role.WORKER, FOREIGN, "foreign"),
    ]
)
Use = Callable[[str, CrawlServices], Awaitable[None]]


def run(folder: Path, use: Use, tokens: Access = TOKENS) -> None:
    async def main() -> None:
        async with serving(folder, tokens=tokens) as (where, services):
            await use(where, services)

    run_to_its_end(main())


async def joined(where: str, token: str = ALICE, name: str = "w") -> RemoteWorkSource:
    source = RemoteWorkSource(linked(where, token), SystemClock(), name)
    assert await source.join() == LEASED
    return source


async def leased_page(source: RemoteWorkSource, services: CrawlServices) -> tuple[HostLease, Delivery]:
    await source.settle([dated(await next_lease(source), services.clock.now())])  # robots.txt
    lease = await next_lease(source)
    return lease, dated(lease, services.clock.now())


async def settled(link: HttpLink, request: SettleRequest) -> SettleResponse:
    return msgspec.msgpack.decode(
        await link.post(SETTLE, msgspec.msgpack.encode(request)), type=SettleResponse
    )


@pytest.mark.parametrize("said", ["w", "mallory", "alice/w"])
def test_a_worker_cannot_settle_what_another_was_given_whatever_it_calls_itself(
    tmp_path: Path, said: str
) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        alice, mallory = await joined(where), linked(where, MALLORY)
        _, made = await leased_page(alice, services)
        stolen = replace(settle_request(alice, made), worker=said)
        for number, seals in enumerate((stolen.seals, [], [b"x" * 12])):
            taken = await settled(mallory, replace(stolen, seals=seals, sequence=number))
            assert (taken.settled, taken.refused) == ([Settled.STALE], {0: NOT_YOURS})
        assert services.telemetry.value(Metric.LEASES_REFUSED) == 3
        await alice.settle([made])
        assert (await services.frontier.stats()).pages == 1

    run(tmp_path, use)


def test_a_page_without_a_lease_is_kept_only_if_its_worker_once_had_it(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        alice, mallory = await joined(where), linked(where, MALLORY)
        lease, made = await leased_page(alice, services)
        await alice.release([(lease.host, lease.token)])
        guessed = replace(made, outcome=replace(made.outcome, token=Token(1)))
        for number, attack in enumerate((made, guessed)):
            request = settle_request(alice, attack, sequence=number)
            assert (await settled(mallory, request)).refused == {0: NOT_YOURS}
        assert (await services.frontier.stats()).pages == 0
        assert (await settled(linked(where, ALICE), settle_request(alice, made))).settled == [Settled.LATE]

    run(tmp_path, use)


def test_a_worker_can_neither_renew_nor_release_what_another_was_given(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        alice, mallory = await joined(where), linked(where, MALLORY)
        lease, made = await leased_page(alice, services)
        held = (lease.host, lease.token)
        request = LeasesRequest(
            worker="w", incarnation="1", sequence=1, leases=[held, held], seals=alice._seals.of([held])
        )
        raw = await mallory.post(RENEW, msgspec.msgpack.encode(request))
        assert msgspec.msgpack.decode(raw, type=RenewResponse).deadlines == [None, None]
        await mallory.post(RELEASE, msgspec.msgpack.encode(request))
        assert len(await services.frontier.leases(limit=10)) == 1
        assert services.telemetry.value(Metric.LEASES_REFUSED) == 4
        (deadline,) = await alice.renew([held], 30.0) or [None]
        assert deadline is not None
        await alice.settle([made])
        assert (await services.frontier.stats()).stale_outcomes == 0

    run(tmp_path, use)


def test_two_workers_that_share_a_token_are_told_apart_by_their_seals(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        one, other = await joined(where, name="one"), await joined(where, name="other")
        _, made = await leased_page(one, services)
        request = settle_request(other, made)  # it has no seal of this lease
        for said in ("one", "other"):
            assert (await settled(linked(where, ALICE), replace(request, worker=said))).refused
        await one.settle([made])
        assert (await services.frontier.stats()).pages == 1

    run(tmp_path, use)


def test_a_foreign_workers_token_cannot_use_the_wire_of_our_own(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        body = msgspec.msgpack.encode(WorkerRequest(worker="w", incarnation="1", sequence=1))
        for path in (JOIN, LEASE, SETTLE, RENEW, RELEASE):
            with pytest.raises(Refused, match="trusted-worker") as refused:
                await linked(where, FOREIGN).post(path, body)
            assert refused.value.status == 403

    run(tmp_path, use)


def test_seals_outlive_a_restart_of_the_server(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, tokens=TOKENS) as (where, services):
            alice = await joined(where)
            _, made = await leased_page(alice, services)
            request = settle_request(alice, made)
        async with serving(tmp_path, tokens=TOKENS) as (where, services):
            assert (await settled(linked(where, ALICE), request)).settled == [Settled.LATE]

    run_to_its_end(main())


def test_the_workers_of_a_server_are_named_by_their_tokens(tmp_path: Path) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        await next_lease(await joined(where, name="machine-7"))
        (lease,) = await services.frontier.leases(limit=10)
        assert lease.worker == "remote:alice/machine-7"

    run(tmp_path, use)


def test_no_two_leases_have_the_same_seal() -> None:
    seals = LeaseSeals(b"k" * 32)
    triples = [("ab", "c", 1), ("a", "bc", 1), ("ab", "c", 11), ("1 ab", "c", 1), ("ab", "c", 2)]
    for worker, host, token in triples:
        own = seals._of(worker, Host(host), Token(token))
        fitting = [one for one in triples if seals.fits(own, one[0], Host(one[1]), Token(one[2]))]
        assert fitting == [(worker, host, token)]


def test_another_crawls_seals_are_worth_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "a") as (where, services):
            source = RemoteWorkSource(linked(where), SystemClock(), "w")
            await source.join()
            made = dated(await next_lease(source), services.clock.now())
            request = settle_request(source, made)
        async with serving(tmp_path / "b") as (where, services):
            other = RemoteWorkSource(linked(where), SystemClock(), "w")
            await other.join()
            lease = await next_lease(other)
            assert (lease.host, lease.token) == (made.outcome.host, made.outcome.token)
            assert (await settled(linked(where), request)).refused == {0: NOT_YOURS}

    run_to_its_end(main())
