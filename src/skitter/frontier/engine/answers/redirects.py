"""Redirects that lead nowhere: a loop, or more hops in a row than the crawl follows.

Asked when a redirect is settled, with the chain as the rows have it: backwards by how each URL was found,
forwards by where each was sent. Never fetches and never writes.
"""

from __future__ import annotations

from skitter.frontier.rows import UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, UrlState, Via
from skitter.urls.canonical import normalise

REDIRECTS_TO = "redirects to "
# A loop of hosts that all knew each other as links can be any size; a longer one is left to end by itself, as
# it does: every URL of it is asked once.
_LONGEST_LOOP = 20
_SHOWN = 100


def why_endless(tx: Transaction, key: bytes, row: UrlRow, target: Discovered, most: int) -> str:
    """The chain in words when following `target` makes no sense; empty when it does."""
    if target.key == key and target.url != row.url and target.hops <= most:
        # the same page by its key: asked there from now on, which `target.hops` bounds
        return ""
    loop = _way_back(tx, key, target)
    if loop:
        return "a loop: " + _words([row.url, *loop])
    if target.hops > most:
        return f"{target.hops} in a row: " + _words([*_came_by(tx, row), target.url])
    return ""


def _way_back(tx: Transaction, key: bytes, target: Discovered) -> list[str]:
    """The URLs from `target` on that lead back to `key`; none when they do not."""
    way, at = [target.url], bytes(target.key)
    while at != key and len(way) < _LONGEST_LOOP:
        row = tx.url(at)
        following = leads_to(row) if row is not None else ""
        if row is None or not following or row.url != way[-1]:
            return []
        way.append(following)
        at = bytes(tx.cache.keys.key_of(following))
    return way if at == key else []


def leads_to(row: UrlRow) -> str:
    """Where a URL that is a redirect leads to; empty when it is none."""
    moved = row.state == UrlState.COMPLETED and 300 <= row.answer.status < 400
    if not moved or not row.rule.startswith(REDIRECTS_TO):
        return ""
    return normalise(row.rule.removeprefix(REDIRECTS_TO)) or ""


def _came_by(tx: Transaction, row: UrlRow) -> list[str]:
    """The hops that led here, first one first."""
    urls = [row.url]
    while row.found.via is Via.REDIRECT and row.found.parent and len(urls) < _LONGEST_LOOP:
        above = tx.url(row.found.parent)
        if above is None:
            break
        row = above
        urls.append(row.url)
    return urls[::-1]


def _words(urls: list[str]) -> str:
    return " -> ".join(url if len(url) <= _SHOWN else url[: _SHOWN - 3] + "..." for url in urls)
