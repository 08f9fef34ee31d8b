"""The kinds of tasks, as a frontier treats them: one row for each. A new kind is a new row here, one in
`worker/kinds.py`, and whoever admits URLs of it.

Looked up by admission, leasing and settling; nothing else in a frontier compares kinds. Every kind but two is a
URL with a row of its own, which waits in its host's queue by its priority. A host's robots.txt belongs to the
host and is asked for before everything else. A rendering asks no host: it waits in a queue of its own. Pure.
"""

from __future__ import annotations

import msgspec

from skitter.model import TaskKind, Via


class KindRules(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of task is admitted, leased and settled."""

    is_url: bool = True
    """It has a row and a place in a queue, and goes through admission."""
    asks_host: bool = True
    """It is a request to a host: paced, counted and entered in the ledger."""
    is_page: bool = False
    """A good answer counts as a page: in figures, under `crawl.max_pages`, and as evidence about traps."""
    is_scoped: bool = False
    """Scope, depth and patterns decide whether it is let in; else only what excludes it."""
    is_stoppable: bool = False
    """A verdict on a trap refuses it."""
    is_raised_by_links: bool = False
    """Each doubling of the hosts that link it raises its priority."""
    is_revisited: bool = False
    """It is visited again where a crawl is kept fresh."""
    brings_links: bool = False
    """What its answer leads to is admitted."""
    ranked_as: Via | None = None
    """How its priority is found, if not by how it was found."""
    lists_urls: bool = False
    """A host may have `sitemaps.max_files` of them."""
    is_sent_once: bool = False
    """It may change something at its host: it is asked for again only where nothing can have been sent."""
    let_in_because: str = ""
    """In words, where scope is not asked."""


KINDS: dict[TaskKind, KindRules] = {
    TaskKind.ROBOTS: KindRules(is_url=False),
    TaskKind.PAGE: KindRules(
        is_page=True,
        is_scoped=True,
        is_stoppable=True,
        is_raised_by_links=True,
        brings_links=True,
        is_revisited=True,
    ),
    TaskKind.REQUISITE: KindRules(
        brings_links=True,
        ranked_as=Via.REQUISITE,
        let_in_because="what a page needs to look as it does is fetched wherever it lies (crawl.requisites)",
    ),
    TaskKind.PROBE: KindRules(
        is_page=True, is_scoped=True, let_in_because="it was made up by the crawl itself"
    ),
    TaskKind.SITEMAP: KindRules(
        brings_links=True,
        ranked_as=Via.ROBOTS,
        is_revisited=True,
        lists_urls=True,
        let_in_because="sitemaps are read wherever they lie; scope decides what they name (sitemaps.use)",
    ),
    TaskKind.FEED: KindRules(
        brings_links=True,
        ranked_as=Via.ROBOTS,
        is_revisited=True,
        lists_urls=True,
        let_in_because="a page of the same host names it as its feed (sitemaps.feeds)",
    ),
    TaskKind.FORM: KindRules(
        is_page=True, is_scoped=True, is_stoppable=True, brings_links=True, is_sent_once=True
    ),
    TaskKind.SAFE_FORM: KindRules(is_page=True, is_scoped=True, is_stoppable=True, brings_links=True),
    TaskKind.DECLARATION: KindRules(
        ranked_as=Via.ROBOTS,
        let_in_because="each host is asked what may be done with its content (opt_outs.files)",
    ),
    TaskKind.RENDER: KindRules(is_url=False, asks_host=False),
}
