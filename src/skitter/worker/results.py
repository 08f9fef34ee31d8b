"""The result of a task, made of its answer and of what the page says: for each kind of task one way.

Between reading a page and packing it, in `step.py`. What a status means is in `status_rules.py`. Makes no request
and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from skitter.archive.digests import Digests
from skitter.archive.facts import Item
from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.fetch.response_head import Fields
from skitter.frontier.link_batches import keys_of, pack, urls_of
from skitter.model import (
    Discovered,
    Exchange,
    Extracted,
    Failed,
    FailureKind,
    Fetched,
    LinkBatch,
    LinkColumns,
    NotModified,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    UrlKey,
    Via,
)
from skitter.parse.caching import promised_seconds
from skitter.parse.fingerprints.figures import figures
from skitter.parse.page import PageContent
from skitter.parse.walls import TURNS_AWAY, Wall
from skitter.robots.rules import MAX_BYTES as MAX_ROBOTS_BYTES
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys, form_key
from skitter.urls.links import LinkReader, Resolved, discover_resolved
from skitter.worker.named_files import list_files
from skitter.worker.status_rules import StatusLine, result_by_status, retry_after, robots_refusal

CUT = "read to"
CUT_AT = "cut at"
"""Followed by the setting that limited the bytes on the wire."""


class Answer(msgspec.Struct, frozen=True):
    """What came, what its headers say (`first` and `joined`: see `fields_of`), the type that they declare, the
    digests of its body."""

    exchange: Exchange
    first: Fields
    joined: Fields
    declared: str
    digests: Digests


class LinkChoice(msgspec.Struct, frozen=True):
    """What users' code says of a page's links: which are followed (None: all of them), with which priorities, and
    which others; and which forms are posted (URL, priority, body, whether it is safe, by whom). In a focused
    crawl `promising` links have a priority of their own, and `off` pages off the topic in a row lead to all."""

    kept: Mapping[str, int | None] | None = None
    followed: Sequence[tuple[str, int | None, str]] = ()
    priority: int | None = None
    promising: Mapping[str, int] = {}
    off: int = 0
    posted: Sequence[tuple[str, int | None, str, bool, str]] = ()


class Reading(msgspec.Struct, frozen=True):
    """What a page says, what was wrong with its body, and what each of its links resolves to: once, for what is
    followed and for what is told."""

    page: PageContent | None = None
    note: str = ""
    targets: Sequence[Resolved | None] = ()
    listed: tuple[LinkBatch, ...] = ()
    """What a sitemap or feed names."""
    title: str = ""
    """Of a sitemap or feed: what it is."""
    directives: str = ""
    """Of a declaration: its rules."""
    wall: Wall | None = None
    """What stands in place of the page."""
    body: bytes = b""
    """Without content coding, for users' code."""
    choice: LinkChoice | None = None
    items: Mapping[str, Sequence[Item]] | None = None
    extracted: tuple[Extracted, ...] = ()
    score: float | None = None
    """How much it is about the topic of a focused crawl."""
    cpu: float = 0.0
    """Seconds that reading it took, if they were too many."""


class ResultMaker:
    """`fingerprint` is None where near-duplicates are of no interest. `follows_links` is False where only
    sitemaps say what is fetched. `reads_promises` where it matters for how long pages say that they stay."""

    def __init__(
        self,
        keys: Keys,
        links: LinkReader,
        fingerprint: Callable[[str], int | None] | None,
        *,
        follows_links: bool = True,
        reads_promises: bool = False,
    ) -> None:
        self._follows_links = follows_links
        self._reads_promises = reads_promises
        self._keys = keys
        self._links = links
        self._fingerprint = fingerprint

    def by_status(self, task: Task, answer: Answer) -> Result | None:
        """The result that the status alone decides; None where the body does."""
        exchange, first = answer.exchange, answer.first
        wait = first.get("retry-after", "")
        line = StatusLine(
            status=exchange.status,
            size=len(exchange.body),
            location=_escaped(first.get("location", "")),
            retry_after=retry_after(wait, exchange.ended_at) if wait else None,
            is_conditional=bool(task.etag or task.last_modified),
        )
        result = result_by_status(task, line, self._keys)
        if self._reads_promises and isinstance(result, NotModified):
            return NotModified(promised=_promised(answer))
        return result

    def robots_read(self, task: Task, answer: Answer, reading: Reading) -> Result:
        exchange, first = answer.exchange, answer.first
        status, body = exchange.status, b""
        if (refusal := robots_refusal(status)) is not None:
            return refusal
        if status < 300:
            coding = answer.joined.get("content-encoding", "")
            # One byte more than is read: the parser must see that the last line is cut, and leave it out.
            decoded = decode_body(exchange.body, coding, limit=MAX_ROBOTS_BYTES + 1)
            reason = decoded.reason if isinstance(decoded, Undecodable) else _breaks_off(decoded)
            if isinstance(decoded, Undecodable) or reason:
                return Failed(kind=FailureKind.BAD_CODING, detail=reason, status=status)
            body = decoded.body
        return RobotsRead(
            status=status,
            body=body,
            digest=answer.digests.payload,
            size=len(exchange.body),
            etag=first.get("etag", "")[:500],
            last_modified=first.get("last-modified", "")[:100],
        )

    def walled(self, answer: Answer, wall: Wall) -> Failed:
        kind = FailureKind.TURNED_AWAY if wall.kind in TURNS_AWAY else FailureKind.GATED
        exchange = answer.exchange
        return Failed(kind=kind, detail=wall.words(), status=exchange.status, size=len(exchange.body))

    def fetched(self, task: Task, answer: Answer, reading: Reading) -> Result:
        exchange, first = answer.exchange, answer.first
        page, note = reading.page, reading.note
        canonical = self._canonical(task, page)
        return Fetched(
            status=exchange.status,
            content_type=answer.joined.get("content-type", "")[:200],
            digest=answer.digests.payload,
            size=len(exchange.body),
            truncated=exchange.truncated or note.startswith(CUT),
            etag=first.get("etag", "")[:500],
            last_modified=first.get("last-modified", "")[:100],
            title=page.title if page else reading.title,
            directives=page.directives.text if page else reading.directives,
            link_batches=self._links_of(task, page, reading, canonical) if page else reading.listed,
            note="cut at fetch.max_body" if exchange.truncated and not note.startswith(CUT_AT) else note,
            simhash=self._fingerprint(page.text) if page and self._fingerprint else None,
            canonical=canonical.url if canonical is not None else "",
            figures=figures(page.text, task.url, page.title) if page and self._fingerprint else b"",
            score=reading.score,
            promised=_promised(answer) if self._reads_promises else 0.0,
        )

    def _links_of(
        self, task: Task, page: PageContent, reading: Reading, canonical: Discovered | None
    ) -> tuple[LinkBatch, ...]:
        links: tuple[LinkBatch, ...] = ()
        if not page.directives.nofollow:
            if self._follows_links:
                links = discover_resolved(task.key, task.url, task.depth, page.links, reading.targets)
            if reading.choice is not None:
                links = (*self._posted(task, reading.choice), *self._chosen(task, links, reading.choice))
            if page.sitemaps or page.feeds:
                # first: what is also linked is read as what it is
                links = (*list_files(self._links, task, page), *links)
            if canonical is not None:
                links = (*pack([canonical]), *links)
        if page.requisites:
            # a page's own nesting counts pages, not files
            level = 1 if task.kind is TaskKind.PAGE else task.nesting + 1
            # after the links: what is both is a page
            links += self._links.discover_requisites(
                task.key, task.url, task.depth, page.base, page.requisites, level
            )
        return links

    def _chosen(self, task: Task, links: tuple[LinkBatch, ...], choice: LinkChoice) -> tuple[LinkBatch, ...]:
        """A batch for each priority, the most urgent first; of what users' code follows, with its name."""
        by_priority: dict[int | None, dict[str, UrlKey]] = {}
        told: dict[str, str] = {}
        for url, priority, who in choice.followed:
            if url not in told and (found := normalise(url)) is not None and found != task.url:
                told[found] = who
                by_priority.setdefault(priority, {})[found] = self._keys.key_of(found)
        for link_batch in links:
            for url, key in zip(urls_of(link_batch), keys_of(link_batch), strict=True):
                if url in told or (choice.kept is not None and url not in choice.kept):
                    continue
                priority = choice.kept.get(url) if choice.kept is not None else None
                if priority is None:
                    priority = choice.promising.get(url, choice.priority)
                by_priority.setdefault(priority, {})[url] = key
        ranked = sorted(by_priority, key=lambda priority: -1 if priority is None else -priority - 2)
        return tuple(
            LinkBatch(
                b"".join(by_priority[priority].values()),
                "\n".join(by_priority[priority]),
                task.depth + 1,
                parent=task.key,
                priority=priority,
                nesting=choice.off,
                columns=_who_follows(by_priority[priority], told),
            )
            for priority in ranked
        )

    def _posted(self, task: Task, choice: LinkChoice) -> tuple[LinkBatch, ...]:
        return pack(
            Discovered(
                url=url,
                key=form_key(self._keys.key_of(url), body),
                host=host_of(url),
                depth=task.depth + 1,
                parent=task.key,
                priority=priority,
                kind=TaskKind.SAFE_FORM if safe else TaskKind.FORM,
                nesting=choice.off,
                rel=who,
                form=body,
            )
            for url, priority, body, safe, who in choice.posted
        )

    def _canonical(self, task: Task, page: PageContent | None) -> Discovered | None:
        """The page that this one says it is a form of, as deep as itself; most name themselves."""
        if page is None or page.canonical in ("", task.url):
            return None
        url = normalise(page.canonical)
        if url is None or (key := self._keys.key_of(url)) == task.key:
            return None
        return Discovered(
            url=url, key=key, host=host_of(url), depth=task.depth, via=Via.CANONICAL, parent=task.key
        )


def _who_follows(urls: Iterable[str], told: Mapping[str, str]) -> LinkColumns | None:
    """The extractors that follow these links, for `explain`; None where the page alone does."""
    names = tuple(told.get(url, "") for url in urls) if told else ()
    return LinkColumns(rel=names) if any(names) else None


def _promised(answer: Answer) -> float:
    fields = answer.joined
    return promised_seconds(
        fields.get("cache-control", ""), fields.get("expires", ""), answer.exchange.ended_at
    )


def _breaks_off(decoded: Decoded) -> str:
    """Rules may be missing then; a page would be read as far as it goes."""
    return "" if decoded.complete or decoded.truncated else "the coded robots.txt breaks off"


def _escaped(location: str) -> str:
    """With the bytes that the server sent, as browsers do; header text is decoded byte by byte, and most
    servers mean UTF-8."""
    if location.isascii():
        return location
    return "".join(char if char < "\x80" else f"%{ord(char):02X}" for char in location)
