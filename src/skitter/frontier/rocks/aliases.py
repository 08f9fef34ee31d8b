"""Pages that name another as canonical: which page stands for which, as far as it does.

Asked when somebody wants to know, of the rows as they are; nothing is kept but what each page said. So no order
of fetches, no loop and no failure can lose a page: every one has its own row and its own record, and one whose
canonical cannot stand for it stands for itself. Never writes.
"""

from __future__ import annotations

from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.redirects import leads_to
from skitter.frontier.rocks.rows import UrlRow
from skitter.frontier.rocks.turn import Turn
from skitter.model import UrlState

_LONGEST_CHAIN = 10


def name_canonical(turn: Turn, row: UrlRow, canonical: str) -> None:
    """What the page says now; empty when it names none but itself."""
    turn.tally.aliases += bool(canonical) - bool(row.canonical)
    row.canonical = canonical


def stands_for(book: Book, key: bytes, row: UrlRow) -> tuple[str, str]:
    """The page that stands for this one; or why it stands for itself. Both empty when it names no other."""
    if not row.canonical:
        return "", ""
    seen, at = {bytes(key)}, row
    while following := at.canonical or leads_to(at):
        key = bytes(book.keys.key_of(following))
        if key in seen:
            return "", "which leads back to it"
        if len(seen) > _LONGEST_CHAIN:
            return "", f"which is one of more than {_LONGEST_CHAIN} in a row"
        seen.add(key)
        above = book.url(key)
        if above is None:
            return "", f"{following} is not known"
        if why := _why_not(above):
            return "", f"{above.url} is {why}"
        at = above
    return at.url, ""


def _why_not(row: UrlRow) -> str:
    if row.state != UrlState.COMPLETED:
        why = row.reason or row.failure
        return UrlState(row.state).name.lower().replace("_", " ") + (f" ({why})" if why else "")
    return "" if 200 <= row.status < 400 else f"answered with {row.status}"
