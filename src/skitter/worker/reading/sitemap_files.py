"""From the answer of a sitemap or feed task to the links that it brings: in bounded batches, with their hints.

Between the fetch and the result, in `step.py`. A file is read piece by piece, and others have their turn in
between: 50,000 URLs take half a second. Nothing of it is kept but the links: URL, key, and what the file says of
each. Whether a sitemap may speak for what it names is the frontier's affair. Makes no request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from skitter.clock import Clock
from skitter.fetch.coding import Undecodable, decode_body
from skitter.model import Link, LinkBatch, LinkColumns, Task, TaskKind, UrlKey, Via
from skitter.parse.media import parse_content_type
from skitter.parse.sitemaps.sitemap import (
    FEEDS,
    GZIP,
    Entry,
    Format,
    Limits,
    SitemapReader,
    pieces_of,
    within_ratio,
)
from skitter.schedule.priority import hinted_priority
from skitter.settings import SitemapSettings
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader
from skitter.urls.sitemap_rules import absolute_loc
from skitter.worker.cpu_turns import CpuTurns
from skitter.worker.results import CUT_AT, Answer, Reading

LINKS_IN_A_BATCH = 2_500
"""The frontier takes one batch in one transaction: some 25 ms, if all are new."""
# The standard knows one level: an index names sitemaps. One more is common; beyond it lies nothing honest.
_DEEPEST_INDEX = 2
# Pages that only a sitemap names are one link from their host, however many indexes lie above it.
_DEPTH = 1
# Escapes make URLs longer than they were in the file, and what is delivered has to fit into a message.
_MOST_CHARACTERS = 24_000_000
_GZIPS = ("gzip", "x-gzip")
_NOTHING = "about:invalid"
# Clocks differ a little, and a date without a zone may be of one that is ahead of ours.
_SKEW = 14 * 3600.0


_Facts = tuple[str, float | None, int | None, str]
"""Of a URL that a file names: the URL, `lastmod`, a priority by its hint, `changefreq`."""


class SitemapFiles:
    def __init__(
        self,
        settings: SitemapSettings,
        keys: Keys,
        clock: Clock,
        turns: CpuTurns,
        rank: Callable[[str], int] | None = None,
    ) -> None:
        """`rank` says how urgent a URL is by its words alone, in a crawl about a topic."""
        self._rank = rank
        self._limits = Limits(bytes=settings.max_body, entries=settings.max_urls)
        # Its own: what it remembers of a sitemap's folders is of no use to pages.
        self._links = LinkReader(keys)
        self._clock = clock
        self._turns = turns

    async def read(self, task: Task, answer: Answer) -> Reading:
        body, note = self._without_coding(answer)
        charset = parse_content_type(answer.joined.get("content-type", "")).charset
        limits = within_ratio(self._limits, body)
        reader = SitemapReader(limits, charset)
        named = _Named(task, self._links, self._clock.now(), self._rank)
        for piece in pieces_of(body, limits.bytes):
            if not self._turns.try_take():
                await self._turns.take()
            entries = reader.feed(piece)
            named.add(reader.format, entries)
            if reader.problem:
                break
        entries = reader.close()
        named.add(reader.format, entries)
        kind, count = reader.format, len(named)
        note = named.note or note or reader.problem
        if answer.exchange.truncated:
            limit = "sitemaps.max_body" if task.kind is TaskKind.SITEMAP else "fetch.max_body"
            note = f"{CUT_AT} {limit}"
        title = f"{kind}, {count:,} URLs" if kind is not Format.UNKNOWN else ""
        return Reading(note=note, listed=tuple(named.batches()), title=title)

    def _without_coding(self, answer: Answer) -> tuple[bytes, str]:
        """Gzip is undone piece by piece later, whether it is of the file or of its transfer."""
        body, coding = answer.exchange.body, answer.joined.get("content-encoding", "")
        if not coding or (coding.strip().lower() in _GZIPS and body.startswith(GZIP)):
            return body, ""
        decoded = decode_body(body, coding, limit=self._limits.bytes)
        if isinstance(decoded, Undecodable):
            return b"", f"not decoded: {decoded.reason}"
        cut = "inflates beyond sitemaps.max_body or fetch.max_ratio" if decoded.truncated else ""
        return decoded.body, cut


class _Named(msgspec.Struct):
    """What one file names, each URL once."""

    task: Task
    links: LinkReader
    now: float
    rank: Callable[[str], int] | None = None
    format: Format = Format.UNKNOWN
    note: str = ""
    size: int = 0
    found: dict[UrlKey, _Facts] = {}

    def __len__(self) -> int:
        return len(self.found)

    def add(self, kind: Format, entries: Sequence[Entry]) -> None:
        if not entries or self.note:
            return
        self.format, task = kind, self.task
        if kind is Format.INDEX and task.nesting >= _DEEPEST_INDEX:
            self.note = f"an index within {task.nesting} others: what it names is not read"
            return
        hrefs = [Link(self._href(entry.loc)) for entry in entries]
        for entry, resolved in zip(entries, self.links.resolve(task.url, hrefs), strict=True):
            if resolved is not None and resolved[1] not in self.found:
                self._take(resolved[0], resolved[1], entry)

    def _href(self, loc: str) -> str:
        if loc.startswith(("http://", "https://")):
            return loc
        # what means nothing stays so: an empty href would be the sitemap itself
        return absolute_loc(loc, self.task.url) or _NOTHING

    def _take(self, url: str, key: UrlKey, entry: Entry) -> None:
        self.size += len(url)
        if self.size > _MOST_CHARACTERS:
            self.note = f"its URLs have more than {_MOST_CHARACTERS:,} characters: the rest is not read"
            return
        at = entry.lastmod if entry.lastmod is not None else entry.published
        if at is not None and at > self.now:
            # what lies in the future is no time of a change
            at = None if at > self.now + _SKEW else self.now
        # a topic's words say more than what its sitemap thinks of a page
        priority = hinted_priority(entry.priority) if self.rank is None else self.rank(url)
        self.found[key] = url, at, priority, entry.changefreq

    def batches(self) -> Iterator[LinkBatch]:
        # by priority: admission takes those of one priority together, in half the time
        found = sorted(self.found.items(), key=_urgency)
        for start in range(0, len(found), LINKS_IN_A_BATCH):
            yield self._batch(found[start : start + LINKS_IN_A_BATCH])

    def _batch(self, found: Sequence[tuple[UrlKey, tuple[str, float | None, int | None, str]]]) -> LinkBatch:
        task, is_index, is_feed = self.task, self.format is Format.INDEX, self.format in FEEDS
        urls, lastmods, priorities, frequencies = zip(*[facts for _, facts in found], strict=True)
        columns = LinkColumns(
            lastmod=lastmods if any(at is not None for at in lastmods) else (),
            priority=priorities if any(one is not None for one in priorities) and not is_index else (),
            changefreq=frequencies if any(frequencies) else (),
        )
        return LinkBatch(
            b"".join([key for key, _ in found]),
            "\n".join(urls),
            0 if is_index else task.depth + 1 if is_feed else _DEPTH,
            Via.FEED if is_feed else Via.SITEMAP,
            task.key,
            kind=TaskKind.SITEMAP if is_index else TaskKind.PAGE,
            nesting=task.nesting + 1 if is_index else 0,
            columns=columns if columns != LinkColumns() else None,
        )


def _urgency(item: tuple[UrlKey, _Facts]) -> int:
    priority = item[1][2]
    return 0 if priority is None else -priority
