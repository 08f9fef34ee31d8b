"""A host or a URL removed from a crawl: archive, tables, indexes, frontier, logs and its future. With a receipt.

What `skitter forget` runs, alone in the crawl's folder. In this order: it is refused from now on; what grows is
finished; segments are written anew without it; its rows go; rows and log lines of others lose its name; the
store is compacted, so that no file holds what was deleted. Every step may be made twice: after a kill the same
command finishes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from skitter.archive.schema import ITEMS, Table, choose_tables
from skitter.archive.store import MERGED_INDEX
from skitter.archive.tables.parts import table_folders
from skitter.clock import Clock, SystemClock
from skitter.errors import SkitterError, UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import Forgetting, Frontier
from skitter.model import Host
from skitter.runtime.forgetting.segments import Removed, Rewriting
from skitter.seeds import hosts_named
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.wiring import archive_of, close_archive, open_frontier

RECEIPTS = "forgotten.jsonl"


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed. In the crawl's folder it is kept with `digest` in place of the name."""

    forgotten: str
    digest: str
    at: float
    captures: int
    bytes: int
    segments_rewritten: int
    captures_of_others_kept: int
    bodies_given_to_others: int
    extracted_parts_removed: int
    urls: int
    rows_of_others_changed: int
    log_lines: int
    settings_lines: int
    """Of crawl.toml, which is the operator's own: lines that name it."""
    refused_from_now_on: bool = True


Tell = Callable[[str], None]


async def forget(folder: CrawlFolder, settings: Settings, what: str, tell: Tell) -> Receipt:
    """`what` is a URL with a path, or a host."""
    if settings.archive.url:
        raise UsageError(
            "archive.url is set: what is in an object store is not rewritten yet; fetch the segments into a "
            "folder of their own, forget there, and put them back"
        )
    hosts, url = named(what)
    clock = SystemClock()
    async with open_frontier(folder, settings, read_only=False) as frontier:
        forgetting = frontier.forgetting(hosts, url)
        forgetting.begin()
        await _finish_growing(folder, settings, frontier, clock)
        removed = await _rewrite(folder, settings, frontier, clock, forgetting, tell)
        tell("frontier")
        urls = forgetting.forget_rows()
        scrubbed = forgetting.scrub()
        log_lines = sum(_clean_log(path, forgetting.is_named) for path in _logs(folder))
        tell("compacting the store")
        forgetting.compact()
        if left := forgetting.left():
            raise SkitterError(
                f"{left} rows of the frontier still name {what}: report this, and run it again"
            )
    # The store's list of files names the first and the last key of files that are gone; opening begins a new
    # list.
    async with open_frontier(folder, settings, read_only=False) as frontier:
        await frontier.sync()
    receipt = _receipt(
        what, clock.now(), removed, urls, scrubbed, log_lines, _named_lines(folder, forgetting.is_named)
    )
    _keep_receipt(folder.path / RECEIPTS, receipt)
    return receipt


def named(what: str) -> tuple[list[Host], str]:
    """A URL that has more than a host is forgotten alone."""
    if "://" in what:
        url = normalise(what)
        if url is None:
            raise UsageError(f"{what!r} is not an http or https URL")
        rest = url[len(host_of(url)) :]
        has_path = what.rstrip("/").count("/") > 2 or rest != "/"
        return ([host_of(url)], url) if has_path else ([host_of(url)], "")
    return hosts_named(what), ""


async def _finish_growing(folder: CrawlFolder, settings: Settings, frontier: Frontier, clock: Clock) -> None:
    archive = await archive_of(folder, settings, frontier, clock)
    await close_archive(archive, frontier)


async def _rewrite(
    folder: CrawlFolder,
    settings: Settings,
    frontier: Frontier,
    clock: Clock,
    forgetting: Forgetting,
    tell: Tell,
) -> Removed:
    rewriting = Rewriting(folder.archive, forgetting, _tables(folder, settings))
    for segment in forgetting.spent_segments():
        rewriting.remove(segment)
        forgetting.segment_is_gone(segment)
    affected = rewriting.affected()
    if not affected:
        return rewriting.removed
    (folder.archive / MERGED_INDEX).unlink(missing_ok=True)
    for segment in affected:
        tell(segment)
        archive = await archive_of(folder, settings, frontier, clock, _added(folder))
        try:
            rewriting.rewrite(archive, segment)
        finally:
            await close_archive(archive, frontier)
        forgetting.drop_segment(segment)
        await frontier.sync()
        rewriting.remove(segment)
        forgetting.segment_is_gone(segment)
    archive = await archive_of(folder, settings, frontier, clock)
    await close_archive(archive, frontier)
    return rewriting.removed


def _added(folder: CrawlFolder) -> tuple[Table, ...]:
    return (ITEMS,) if any(table.name == ITEMS.name for table in table_folders(folder.archive)) else ()


def _tables(folder: CrawlFolder, settings: Settings) -> tuple[Table, ...]:
    return choose_tables(settings.archive.tables, _added(folder))


# -- logs, settings, the receipt


def _logs(folder: CrawlFolder) -> list[Path]:
    return sorted(folder.path.glob(f"{folder.log.name}*"))


def _clean_log(path: Path, is_named: Callable[[str], bool]) -> int:
    """Whole lines go: each is an object of its own."""
    temporary = path.with_name(path.name + ".new")
    dropped = 0
    with path.open("rb") as log, temporary.open("wb") as kept:
        for line in log:
            if is_named(line.decode("utf-8", "replace")):
                dropped += 1
            else:
                kept.write(line)
        kept.flush()
        os.fsync(kept.fileno())
    temporary.replace(path)
    return dropped


def _named_lines(folder: CrawlFolder, is_named: Callable[[str], bool]) -> int:
    with contextlib.suppress(OSError):
        return sum(map(is_named, folder.settings_file.read_text().splitlines()))
    return 0


def _receipt(
    what: str, at: float, removed: Removed, urls: int, scrubbed: int, log_lines: int, settings_lines: int
) -> Receipt:
    return Receipt(
        forgotten=what,
        digest=blake2b(what.encode(), digest_size=16).hexdigest(),
        at=at,
        captures=removed.captures,
        bytes=removed.bytes,
        segments_rewritten=removed.segments,
        captures_of_others_kept=removed.carried,
        bodies_given_to_others=removed.given_a_body,
        extracted_parts_removed=removed.extracted_parts,
        urls=urls,
        rows_of_others_changed=scrubbed,
        log_lines=log_lines,
        settings_lines=settings_lines,
    )


def _keep_receipt(path: Path, receipt: Receipt) -> None:
    kept = msgspec.structs.replace(receipt, forgotten="")
    with path.open("ab") as receipts:
        receipts.write(msgspec.json.encode(kept) + b"\n")
        receipts.flush()
        os.fsync(receipts.fileno())


def receipts_in(folder: CrawlFolder) -> Iterator[Receipt]:
    path = folder.path / RECEIPTS
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Receipt)
