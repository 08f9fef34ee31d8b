"""Pages that name another as canonical: which page stands for which, as far as it does.

Asked when somebody wants to know, of the rows as they are; nothing is kept but what each page said. So no order
of fetches, no loop and no failure can lose a page: every one has its own row and its own record, and one whose
canonical cannot stand for it stands for itself. Never writes.
"""

from __future__ import annotations

from skitter.frontier.engine.answers.redirects import leads_to
from skitter.frontier.rows import UrlRow
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import UrlState

_LONGEST_CHAIN = 10


def name_canonical(tx: Transaction, row: UrlRow, canonical: str) -> None:
    """What the page says now; empty when it names none but itself."""
    tx.tally.aliases += bool(canonical) - bool(row.answer.canonical)
    row.answer.canonical = canonical


def stands_for(cache: RowCache, key: bytes, row: UrlRow) -> tuple[str, str]:
    """The page that stands for this one; or why it stands for itself. Both empty when it names no other."""
    if not row.answer.canonical:
        return "", ""
    seen, at = {bytes(key)}, row
    while following := at.answer.canonical or leads_to(at):
        key = bytes(cache.keys.key_of(following))
        if key in seen:
            return "", "which leads back to it"
        if len(seen) > _LONGEST_CHAIN:
            return "", f"which is one of more than {_LONGEST_CHAIN} in a row"
        seen.add(key)
        above = cache.url(key)
        if above is None:
            return "", f"{following} is not known"
        if why := _why_not(above):
            return "", f"{above.url} is {why}"
        at = above
    return at.url, ""


def _why_not(row: UrlRow) -> str:
    if row.state != UrlState.COMPLETED:
        why = row.reason or row.answer.failure
        return UrlState(row.state).name.lower().replace("_", " ") + (f" ({why})" if why else "")
    return "" if 200 <= row.answer.status < 400 else f"answered with {row.answer.status}"
