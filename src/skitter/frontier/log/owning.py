"""Opens a folder's tables as the owner of its log: claimed, caught up, ready to commit.

Above the log and the stores, below `opening.py`. The tables' own lock is taken first: to claim the log of a crawl
that is being worked on in this very folder would end that crawl.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from skitter.errors import LogFailed, SkitterError
from skitter.frontier.log.base import Checkpoint, Claim, Log, Owner
from skitter.frontier.log.catching_up import TooOld, adopt, catch_up, check_whole, is_empty
from skitter.frontier.log.heartbeat import Beating, Heartbeat
from skitter.frontier.log.position import position_of
from skitter.frontier.stores.base import Store
from skitter.frontier.stores.logged import LoggedStore

OpenTables = Callable[[], Store]
Beat = Callable[[Claim], Beating]
"""Begins to say that the owner is alive."""
Fetch = Callable[[str, Path], None]
"""Brings an object with this name to a file."""


def own(
    folder: Path,
    open_tables: OpenTables,
    log: Log,
    lapse: float,
    fetch: Fetch | None = None,
    *,
    owner: Owner | None = None,
    beat: Beat | None = None,
) -> LoggedStore:
    """`fetch` brings files of checkpoints; without it the whole log is replayed into a new folder. A node of a
    cluster owns as itself, and says for all its partitions at once that it is alive (`beat`)."""
    inner = open_tables()
    beating: Beating | None = None
    try:
        claim = log.claim(owner or owner_of(folder))
        beating = Heartbeat(log, lapse) if beat is None else beat(claim)
        inner, claim = _caught_up(folder, inner, open_tables, log, claim, fetch)
        return LoggedStore(inner, log, claim, beating)
    except BaseException:
        with contextlib.suppress(SkitterError):
            inner.close()
        if beating is not None:
            beating.stop()
            log.release()
        log.close()
        raise


def _caught_up(
    folder: Path, inner: Store, open_tables: OpenTables, log: Log, claim: Claim, fetch: Fetch | None
) -> tuple[Store, Claim]:
    if position_of(inner) is None and not is_empty(inner) and not (claim.sequence and claim.has_moved):
        last = adopt(inner, log, claim)
        return inner, Claim(crawl=claim.crawl, epoch=claim.epoch, sequence=last, has_moved=False)
    inner = follow(folder, inner, open_tables, log, claim.crawl, claim.sequence, fetch)
    check_whole(inner)
    return inner, claim


def follow(
    folder: Path,
    inner: Store,
    open_tables: OpenTables,
    log: Log,
    crawl: str,
    up_to: int,
    fetch: Fetch | None,
) -> Store:
    """The tables with all commits up to this one: opened anew where a checkpoint took their place."""
    if position_of(inner) is None and is_empty(inner) and up_to:
        inner = _from_checkpoint(folder, inner, open_tables, log, fetch) or inner
    try:
        catch_up(inner, log, crawl, up_to)
    except TooOld as error:
        fresh = _from_checkpoint(folder, inner, open_tables, log, fetch)
        if fresh is None:
            raise LogFailed(
                f"{error}, and there is no checkpoint to go on from: see docs/cluster.md"
            ) from error
        inner = fresh
        catch_up(inner, log, crawl, up_to)
    return inner


def _from_checkpoint(
    folder: Path, inner: Store, open_tables: OpenTables, log: Log, fetch: Fetch | None
) -> Store | None:
    """The newest checkpoint's files instead of the folder's; None where there is none."""
    newest = next(iter(log.checkpoints()), None)
    if newest is None or fetch is None:
        return None
    fetched = folder.with_name(f"{folder.name}.fetched")
    shutil.rmtree(fetched, ignore_errors=True)
    _fetch_all(newest, fetched, fetch)
    inner.close()
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(fetched, folder)
    return open_tables()


def _fetch_all(checkpoint: Checkpoint, into: Path, fetch: Fetch) -> None:
    into.mkdir(parents=True)
    for name, object_name in checkpoint.files.items():
        if name != os.path.basename(name) or name.startswith("."):
            raise LogFailed(f"a checkpoint names a file outside its folder: {name!r}")
        fetch(object_name, into / name)


def owner_of(folder: Path) -> Owner:
    """One folder on one machine: a copy of it elsewhere is another owner."""
    file = folder.with_name(f"{folder.name}.owner")
    try:
        ident = file.read_text().strip()
    except FileNotFoundError:
        ident = secrets.token_hex(8)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ident + "\n")
    machine = socket.gethostname()
    return Owner(
        ident=f"{machine}:{folder.absolute()}:{ident}", place=f"{machine}:{folder.parent.absolute()}"
    )
