"""Questions about traps: the verdicts with their figures, and the words for a URL that one of them refused."""

from __future__ import annotations

import itertools

from skitter.frontier.base import TrapView
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.trap_tables import TrapRow, evidence, trap_row


def trap_views(cache: RowCache, limit: int) -> list[TrapView]:
    """The latest first."""
    numbers = range(cache.tally.traps, 0, -1)
    rows = ((number, row) for number in numbers if (row := trap_row(cache, number)) is not None)
    return [_view(cache, number, row) for number, row in itertools.islice(rows, limit)]


def _view(cache: RowCache, number: int, row: TrapRow) -> TrapView:
    seen = evidence(cache, row.subject)
    in_force = seen is not None and seen.trap == number
    refused = seen.refused if seen is not None and in_force else 0
    fetched = seen.fetched if seen is not None and in_force else row.fetched
    return TrapView(
        id=number,
        kind=row.kind,
        level=row.level,
        host=row.host,
        skeleton=row.name,
        members=fetched + refused + row.released,
        fetched=fetched,
        novel=seen.novel if seen is not None and in_force else row.novel,
        refused=refused,
        bytes=seen.received if seen is not None and in_force else row.received,
        deepest=row.deepest,
        at=row.at,
        why=row.why,
        examples=tuple(row.examples),
        ended=row.ended,
        released=row.released,
    )


def trap_words(cache: RowCache, number: int) -> str:
    """Why a URL was refused, with the figures and how to undo it."""
    row = trap_row(cache, number)
    if row is None:
        return f"trap: verdict {number}"
    view = _view(cache, number, row)
    example = f", such as {view.examples[0]}" if view.examples else ""
    return (
        f"trap: verdict {number} ({view.kind.replace('_', ' ')}) on {view.skeleton}: {view.why}{example}; "
        f"{view.refused:,} URLs are refused by it (skitter traps DIR --undo {number})"
    )
