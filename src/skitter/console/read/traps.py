"""`skitter traps`: the kinds of pages that were stopped, with their figures, and how to revoke one.

Listing looks on while a crawl runs; undoing is done by whoever works in the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from skitter.console.display.table import table
from skitter.console.display.wording import size
from skitter.console.steer.carry_out import carry_out
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import TrapView
from skitter.service.steering.traps import undo_order
from skitter.settings import Settings
from skitter.wiring import open_frontier

_COLUMNS = "id kind host skeleton members fetched novel refused received example".split()


async def traps(folder: CrawlFolder, settings: Settings, *, limit: int, as_json: bool) -> str:
    async with open_frontier(folder, settings, read_only=True) as frontier:
        found = await frontier.traps(limit=limit)
    return _json(found) if as_json else "\n".join(_lines(found, folder))


async def undo(folder: CrawlFolder, settings: Settings, number: int, *, as_json: bool) -> str:
    done = await carry_out(folder, settings, undo_order(number))
    undone = done.answer
    if not undone.skeleton:
        raise UsageError(f"there is no verdict {number}: see skitter traps {folder.path}")
    if undone.ended:
        raise UsageError(f"verdict {number} is over already: {undone.ended}")
    if as_json:
        return _json({"undone": number, "released": undone.released})
    return (
        f"{undone.released:,} URLs of {undone.skeleton} are queued again, and no verdict will stop it any more: "
        f"{done.who_goes_on(folder)} fetches them"
    )


def _lines(found: Sequence[TrapView], folder: CrawlFolder) -> Iterator[str]:
    if not found:
        yield "no traps"
        return
    yield from table([_COLUMNS, *map(_row, found)], right=(0, 4, 5, 6, 7, 8))
    yield f"\nWhy a URL was refused: skitter explain URL --in {folder.path}"
    yield f"A verdict that is wrong: skitter traps {folder.path} --undo ID"


def _row(view: TrapView) -> tuple[str, ...]:
    kind = view.kind.replace("_", " ")
    return (
        f"{view.id}",
        f"{kind} ({view.ended})" if view.ended else kind,
        view.host,
        view.skeleton,
        f"{view.members:,}",
        f"{view.fetched:,}",
        f"{view.novel:,}",
        f"{view.refused:,}",
        size(view.bytes),
        view.examples[0] if view.examples else "",
    )


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
