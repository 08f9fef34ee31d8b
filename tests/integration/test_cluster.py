"""A cluster in one process: its database, its post, its calls, and leases that outlive their owner."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from skitter.cli import main
from skitter.errors import Fenced, OwnedElsewhere, UsageError
from skitter.frontier.base import REMOTE
from skitter.frontier.cluster.base import Part
from skitter.frontier.cluster.beats import PartBeats
from skitter.frontier.cluster.calls import CALLS, PartCall, RemotePart, answer_call
from skitter.frontier.cluster.relay import Relay
from skitter.frontier.engine.frontier import EngineFrontier
from skitter.frontier.log.base import Owner
from skitter.frontier.log.members import Members
from skitter.frontier.log.postgres import Link, PostgresLog
from skitter.frontier.opening import open_on
from skitter.frontier.posts import WaitingPost
from skitter.frontier.stores.memory import MemoryStore, MemoryTables
from skitter.model import Host, HostLease, LinkBatch, Outcome, Result, TaskKind
from skitter.settings import CrawlSettings, Settings
from skitter.testing.clock import FakeClock
from skitter.urls.partitions import Partition, part_of
from tests.frontier_kit import NO_RULES, OK, discovered, seed
from tests.frontier_stores import LogDisk, MemoryDisk
from tests.keys import key_of
from tests.postgres import new_database

ANY = Settings(crawl=CrawlSettings(scope="any"))


def host_in(part: int, parts: int = 2, skip: int = 0) -> str:
    found = (f"http://h{n}.test" for n in range(1_000) if part_of(Host(f"http://h{n}.test"), parts) == part)
    return [next(found) for _ in range(skip + 1)][-1]


# -- the database


@pytest.fixture
def members() -> Iterator[Members]:
    link = Link(new_database(), None)
    yield Members(link)
    link.close()


def begun(members: Members, parts: int = 4) -> Members:
    members.begin(parts, "", is_unreplicated=True)
    return members


def test_a_cluster_is_made_once(members: Members) -> None:
    assert members.crawl() is None
    made = members.begin(4, "[crawl]\n", is_unreplicated=True)
    assert (made.parts, len(made.key), len(members.parts())) == (4, 32, 4)
    with pytest.raises(UsageError, match="holds a crawl already"):
        members.begin(8, "", is_unreplicated=True)


def test_a_database_without_a_synchronous_standby_is_refused(members: Members) -> None:
    with pytest.raises(UsageError, match="synchronous standby"):
        members.begin(4, "", is_unreplicated=False)


def test_nodes_with_another_list_of_public_suffixes_are_refused(members: Members) -> None:
    made = begun(members).crawl()
    assert made is not None
    crawl = msgspec.structs.replace(made, suffixes="other")
    with pytest.raises(UsageError, match="public suffixes"):
        members.check(crawl, is_unreplicated=True)


def test_a_node_is_live_while_it_beats_and_drains_when_told(members: Members) -> None:
    begun(members).announce("n1", "http://n1", "here", 0.2)
    assert [one.is_live for one in members.nodes()] == [True]
    assert members.drain("http://n1")
    assert members.beat("n1", {}).is_draining
    members.leave("n1")
    assert members.nodes() == []
    assert not members.drain("n1")


def test_a_beat_says_which_partitions_are_still_ours(members: Members) -> None:
    begun(members)
    beats = PartBeats()
    url = members._link
    log = PostgresLog("", is_unreplicated=True, part=2, links=(url, url))
    claim = log.claim(Owner(ident="n1", place="here"))
    beat = beats.of(2)(claim)
    assert members.beat("n1", beats.epochs()).ours == {2}
    other = PostgresLog("", is_unreplicated=True, part=2, links=(url, url))
    with pytest.raises(OwnedElsewhere):
        other.claim(Owner(ident="n2", place="there"))
    log.release()
    other.claim(Owner(ident="n2", place="there"))
    asked = beats.epochs()
    beats.heard(asked, members.beat("n1", asked).ours)
    assert isinstance(beat.fault, Fenced)
    with pytest.raises(Fenced):
        log.append(1, b"x")


def test_partitions_have_logs_of_their_own(members: Members) -> None:
    begun(members)
    links = members._link, members._link
    one, two = (PostgresLog("", is_unreplicated=True, part=part, links=links) for part in (1, 2))
    one.claim(Owner(ident="n", place=""))
    two.claim(Owner(ident="n", place=""))
    one.append(1, b"of one")
    two.append(1, b"of two")
    one.append(2, b"more")
    assert [entry.body for entry in one.read_from(1)] == [b"of one", b"more"]
    assert [row.sequence for row in members.parts()] == [0, 2, 1, 0]


def test_grants_never_add_up_to_more_than_the_limit(members: Members) -> None:
    begun(members)
    assert [members.grant(part, 40, 100) for part in (0, 1, 2, 3)] == [40, 40, 20, 0]
    members.give_back(0, 10)
    assert members.grant(3, 40, 100) == 30
    assert sum(members.granted().values()) == 100


def test_settings_have_a_version_that_nodes_hear_of(members: Members) -> None:
    begun(members).announce("n1", "http://n1", "here", 5.0)
    before = members.beat("n1", {}).settings_version
    members.change_settings("[politeness]\ndelay = 2.0\n")
    assert members.beat("n1", {}).settings_version == before + 1


# -- the command


def test_the_command_makes_a_cluster_shows_it_and_drains_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    database = new_database()
    given = ("--database", database)
    made = main(
        ["cluster", "init", *given, "--parts", "3", "--archive", "s3://b/c", "--frontier-log-unreplicated"]
    )
    assert made == 0
    link = Link(database, None)
    Members(link).announce("n1", "http://10.0.0.1:8600", "here", 15.0)
    assert main(["cluster", "status", *given]) == 0
    shown = capsys.readouterr().out
    assert "http://10.0.0.1:8600" in shown
    assert "3 partitions, 3 without an owner (0, 1, 2)" in shown
    assert main(["cluster", "drain", *given, "--node", "http://10.0.0.1:8600"]) == 0
    assert [one.is_draining for one in Members(link).nodes()] == [True]
    link.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status",), "there is no cluster in this database"),
        (("init", "--archive", "s3://b/c"), "has no synchronous standby"),
        (("init", "--frontier-log-unreplicated"), "needs archive.url"),
        (("drain",), "name the node to drain"),
    ],
)
def test_what_the_command_cannot_do_it_says(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", *arguments, "--database", new_database()]) == 2
    assert said in capsys.readouterr().err


def test_a_node_that_listens_everywhere_must_say_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("operator not-a-real-token-at-all\n")
    tokens.chmod(0o600)
    given = ("--cluster", new_database(), "--listen", "0.0.0.0:0", "--tokens", str(tokens))
    assert main(["serve", str(tmp_path / "node"), *given]) == 2
    assert "--advertise" in capsys.readouterr().err


# -- the post


class Pair:
    """Two partitions, and the relay of the first."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = FakeClock()
        self.runner = asyncio.Runner()
        self.stores = [MemoryTables(), MemoryTables()]
        self.parts = [self.open(number, tmp_path) for number in (0, 1)]
        self.fails = False
        self.told: list[list[WaitingPost]] = []
        self.relay = Relay(0, cast(Part, self.parts[0]), self.tell)

    def open(self, number: int, folder: Path) -> EngineFrontier:
        place = folder / str(number)
        place.mkdir(exist_ok=True)
        store = MemoryStore(self.stores[number])
        return open_on(store, place, ANY, self.clock, partition=Partition(number, 2))

    async def tell(self, source: int, target: int, posts: object) -> None:
        found = cast(list[WaitingPost], posts)
        self.told.append(list(found))
        await self.parts[target].take_posts(source, found)
        if self.fails:
            raise UsageError("the answer was lost")

    def lease(self, part: int) -> HostLease:
        (lease,) = self.runner.run(self.parts[part].lease(REMOTE + "w", 10, 60.0))
        return lease

    def settle(self, part: int, lease: HostLease, *results: Result) -> None:
        now = self.clock.now()
        outcomes = [
            Outcome(
                host=lease.host,
                token=lease.token,
                kind=task.kind,
                key=task.key,
                sent_at=now,
                ended_at=now,
                result=result,
            )
            for task, result in zip(lease.tasks, results, strict=True)
        ]
        self.runner.run(self.parts[part].settle(outcomes))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = Pair(tmp_path)
    yield found
    for part in found.parts:
        found.runner.run(part.close())
    found.runner.close()


def page_with(pair: Pair, *links: str) -> None:
    """A page of partition 0 that links these is settled."""
    home = host_in(0) + "/"
    pair.runner.run(pair.parts[0].admit([seed(home)]))
    pair.settle(0, pair.lease(0), NO_RULES)
    pair.clock.advance(2)
    batch = LinkBatch(b"".join(key_of(link) for link in links), "\n".join(links), 1, parent=key_of(home))
    page = msgspec.structs.replace(OK, link_batches=(batch,))
    pair.settle(0, pair.lease(0), page)


def urls(pair: Pair, part: int) -> int:
    return sum(pair.runner.run(pair.parts[part].stats()).urls.values())


def test_a_link_to_another_partition_is_posted_and_admitted_there_once(pair: Pair) -> None:
    target = host_in(1) + "/page"
    page_with(pair, target, host_in(0) + "/own")
    assert pair.runner.run(pair.parts[0].parts_with_posts()) == [1]
    assert (urls(pair, 0), urls(pair, 1)) == (2, 0)
    pair.fails = True
    assert pair.runner.run(pair.relay.run_once()) == 0
    assert pair.relay.trouble
    pair.fails = False
    assert pair.runner.run(pair.relay.run_once()) == 1
    assert len(pair.told) == 2
    assert pair.told[0] == pair.told[1]
    assert urls(pair, 1) == 1
    assert pair.runner.run(pair.parts[1].explain(target)).state == "queued"
    assert pair.runner.run(pair.parts[0].parts_with_posts()) == []


def test_a_post_that_is_told_twice_counts_once(pair: Pair) -> None:
    page_with(pair, host_in(1) + "/page")
    posts = pair.runner.run(pair.parts[0].waiting_posts(1, 0, 10))
    assert pair.runner.run(pair.parts[1].take_posts(0, posts)) == 1
    assert pair.runner.run(pair.parts[1].take_posts(0, posts)) == 0


def test_what_waits_in_the_post_survives_its_process(pair: Pair, tmp_path: Path) -> None:
    page_with(pair, host_in(1) + "/page")
    pair.stores[0].release()
    pair.parts[0] = pair.open(0, tmp_path)
    assert pair.runner.run(pair.parts[0].parts_with_posts()) == [1]


def test_a_link_that_was_told_is_not_told_again(pair: Pair) -> None:
    target = host_in(1) + "/page"
    page_with(pair, target)
    pair.runner.run(pair.relay.run_once())
    again = discovered(target, parent=key_of(host_in(0) + "/"), priority=None)
    pair.runner.run(pair.parts[0].admit([again]))
    assert pair.runner.run(pair.parts[0].parts_with_posts()) == []


def test_a_frontier_that_is_no_partition_posts_nothing(tmp_path: Path) -> None:
    frontier = open_on(MemoryStore(MemoryTables()), tmp_path, ANY, FakeClock())
    asyncio.run(frontier.admit([seed(host_in(1) + "/")]))
    assert asyncio.run(frontier.parts_with_posts()) == []


# -- calls of partitions elsewhere


def test_a_partition_elsewhere_answers_as_one_that_is_here(pair: Pair) -> None:
    pair.runner.run(pair.parts[0].admit([seed(host_in(0) + "/")]))
    here = pair.parts[0]

    async def ask(part: int, name: str, arguments: bytes) -> bytes:
        return await answer_call(cast(Part, here), PartCall(part, name, arguments))

    there = cast(Part, RemotePart(0, ask))
    run = pair.runner.run
    assert run(there.stats()) == run(here.stats())
    assert run(there.hosts(limit=5)) == run(here.hosts(limit=5))
    assert run(there.explain(host_in(0) + "/")) == run(here.explain(host_in(0) + "/"))
    assert run(there.admit([seed(host_in(0) + "/more")])) == [
        run(here.admit([seed(host_in(0, skip=1) + "/")]))[0]
    ]
    assert run(there.url_of(key_of(host_in(0) + "/"))) == host_in(0) + "/"
    assert run(there.horizon()) == run(here.horizon())


def test_leases_are_not_asked_of_a_partition_elsewhere() -> None:
    assert not {"lease", "settle", "settling", "renew", "release", "close", "forgetting"} & CALLS


# -- leases that outlive their owner


def test_a_lease_is_settled_with_the_partitions_next_owner(tmp_path: Path) -> None:
    disk = LogDisk(tmp_path / "one")
    clock, settings = FakeClock(), ANY
    first = disk.open(settings.frontier)
    frontier = open_on(first, disk.folder, settings, clock, partition=Partition(0, 1))
    asyncio.run(frontier.admit([seed("http://h.test/")]))
    (lease,) = asyncio.run(frontier.lease(REMOTE + "w", 1, 60.0))
    disk.outlive(first)
    elsewhere = LogDisk(tmp_path / "two", MemoryDisk(tmp_path / "two"), disk.url)
    release(disk)
    clock.advance(1_800)  # another machine's clock
    taken = open_on(
        elsewhere.open(settings.frontier), elsewhere.folder, settings, clock, partition=Partition(0, 1)
    )
    assert asyncio.run(taken.lease(REMOTE + "other", 1, 60.0)) == []
    outcome = Outcome(
        host=lease.host,
        token=lease.token,
        kind=TaskKind.ROBOTS,
        key=lease.tasks[0].key,
        sent_at=clock.now(),
        ended_at=clock.now(),
        result=NO_RULES,
    )
    (settled,) = asyncio.run(taken.settle([outcome]))
    assert settled.settled == "accepted"
    asyncio.run(taken.close())


def release(disk: LogDisk) -> None:
    """As if the owner had been silent for long enough."""
    link = Link(disk.url, None)
    link.lasting(lambda found: found.execute("UPDATE skitter_fence SET heard = NULL"))
    link.close()
