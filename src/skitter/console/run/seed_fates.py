"""What became of the seeds, when none of them could be fetched: the first thing its operator has to know.

Asked once, at the end of `skitter crawl`. Never looks at all of many seeds: the first tell enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.console.display.summary import SeedFate
from skitter.console.display.wording import moment
from skitter.fetch.guard import METADATA
from skitter.frontier.base import Explanation, Frontier
from skitter.model import Discovered

_SHOWN = 10
_MOST_LOOKED_AT = 1_000
_MOST_HOPS = 5
_ANSWERED = ("fetched", "unchanged", "notmodified")


async def seed_fates(
    frontier: Frontier, given: Sequence[Discovered], pages: int, now: float
) -> tuple[SeedFate, ...]:
    """The seeds of this run, or those of the whole crawl if it was given none; empty if one was ever fetched.
    `pages` are those of the whole crawl."""
    if pages and (not given or len(given) > _MOST_LOOKED_AT):
        return ()
    urls = [seed.url for seed in given] or await frontier.seeds(limit=_SHOWN)
    fates = []
    for url in urls if pages else urls[:_SHOWN]:
        found = await _end_of_the_way(frontier, url)
        if _was_fetched(found[-1]):
            return ()
        fates.append(SeedFate(url=url, why=_words(found, now)))
    return tuple(fates[:_SHOWN])


async def _end_of_the_way(frontier: Frontier, url: str) -> list[Explanation]:
    """A seed, and where its redirects lead, or its http form where there is no https."""
    way = [await frontier.explain(url)]
    while len(way) <= _MOST_HOPS and way[-1].leads_to:
        found = await frontier.explain(way[-1].leads_to)
        if found.url in (before.url for before in way):
            break
        way.append(found)
    return way


def _was_fetched(found: Explanation) -> bool:
    return any(fetch.result in _ANSWERED and fetch.status < 400 for fetch in found.fetches)


def _words(way: Sequence[Explanation], now: float) -> str:
    last = way[-1]
    led = f"leads to {last.url}, " if len(way) > 1 else ""
    why = last.waits if last.state in ("queued", "failed") and last.waits else last.reason
    if last.state == "gone":
        why = f"the host says {last.fetches[-1].status}" if last.fetches else "the host says 404 or 410"
    if last.state == "completed" and last.fetches:
        why = why or f"the host says {last.fetches[-1].status}"
    if "address_refused" in why and "never dialled" not in why and METADATA not in why:
        why += " (--allow-private lets it be asked)"
    when = f"; next {moment(last.next_at, now)}" if last.next_at is not None and last.next_at > now else ""
    state = {"queued": "waits", "failed": "waits"}.get(last.state, last.state.replace("_", " "))
    return f"{led}{state}: {why}{when}" if why else f"{led}{state}{when}"
