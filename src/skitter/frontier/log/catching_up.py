"""A folder's tables brought to the end of the log, before anybody uses them.

Called at opening, and again and again by a standby. Tables that have a part of the log get the rest of it;
those of a crawl that had no log are put into it whole. What does not belong together is refused, and nothing is
written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from skitter.errors import LogFailed
from skitter.frontier.log.base import Claim, Log
from skitter.frontier.log.packing import NUMBERS, Change, pack, replay
from skitter.frontier.log.position import Position, position_of, put_position
from skitter.frontier.stores.base import Store
from skitter.frontier.tables.layout import TABLES

_END = b"\xff" * 64
# Rows of an entry, when a crawl that had no log is put into one: some 300 KB.
_AT_ONCE = 5_000
# A row that is there while that is under way: what is in the log until then is not a crawl.
_ADOPTING = ("meta", b"log adopting")


class TooOld(LogFailed):
    """The log no longer has what these tables lack: a checkpoint must be fetched."""


def catch_up(store: Store, log: Log, crawl: str, up_to: int) -> int:
    """Replay what the tables lack; returns how many commits that were. Raises `TooOld` where the log does not
    reach back far enough."""
    position = position_of(store)
    if position is None:
        if not is_empty(store):
            raise LogFailed(
                "this folder holds a crawl of its own, and the log holds another: give this crawl a log of its "
                "own (another database), or bring the log's crawl into a new folder (skitter standby)"
            )
        position = Position(crawl, 0, 0)
    _check(position, crawl, up_to)
    behind, number = position.sequence, 0
    # the commit that the tables have is read once more: it must be the one that the log has
    for entry in log.read_from(max(1, behind)):
        if entry.sequence == behind:
            _check_same(position, entry.epoch)
            continue
        if entry.sequence != behind + 1:
            raise TooOld(f"the log begins with commit {entry.sequence}, and {behind + 1} is missing")
        changes = store.changes()
        replay(entry.body, changes)
        put_position(changes, Position(crawl, entry.sequence, entry.epoch))
        store.commit(changes)
        behind, number = entry.sequence, number + 1
    if behind < up_to:
        raise TooOld(f"the log lacks commits {behind + 1} to {up_to}")
    return number


def check_whole(store: Store) -> None:
    """Whether the tables are a crawl, after all that the log has was replayed."""
    if store.get(*_ADOPTING) is not None:
        raise LogFailed(
            "the log does not hold the whole crawl: the machine that began to put it there has not finished. "
            "Start the crawl there once more"
        )


def adopt(store: Store, log: Log, claim: Claim) -> int:
    """Put a crawl that had no log into it, row by row; returns the last commit. If this is interrupted it begins
    anew: only the last step notes in the tables that they have a log."""
    sequence = claim.sequence
    for changes in _adopting(store):
        sequence += 1
        log.append(sequence, pack(changes))
    noted = store.changes()
    put_position(noted, Position(claim.crawl, sequence, claim.epoch))
    store.commit(noted)
    return sequence


def _adopting(store: Store) -> Iterator[list[Change]]:
    table, key = _ADOPTING
    # whatever an interrupted attempt has left in the log goes first
    emptied: list[Change] = [(NUMBERS[name], b"", _END, True) for name in TABLES]
    yield [*emptied, (NUMBERS[table], key, b"")]
    for name in TABLES:
        rows = store.scan(name, b"", _END)
        while some := list(itertools.islice(rows, _AT_ONCE)):
            yield [(NUMBERS[name], found, value) for found, value in some]
    yield [(NUMBERS[table], key)]


def is_empty(store: Store) -> bool:
    return not any(store.first(table, b"", _END, 1) for table in TABLES)


def _check(position: Position, crawl: str, up_to: int) -> None:
    if position.crawl != crawl:
        raise LogFailed("this folder belongs to another log: name the one it was made with in frontier.log")
    if position.sequence > up_to:
        raise LogFailed(
            f"this folder has commit {position.sequence}, and the log ends with {up_to}: was the database put "
            f"back to an earlier state, or did a standby without all commits take over? See docs/cluster.md"
        )


def _check_same(position: Position, epoch: int) -> None:
    if epoch != position.epoch:
        raise LogFailed(
            f"commit {position.sequence} of this folder is not the one that the log has: the database has lost "
            f"commits that were answered. Bring the crawl into a new folder (skitter standby): docs/cluster.md"
        )
