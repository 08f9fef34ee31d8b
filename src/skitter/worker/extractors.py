"""Users' code beside a worker: which pages it sees, where it runs, and what becomes of what it made.

Between the reading of a page and its packing, in `step.py`. Most functions run in a process of their own
(`extend/process.py`); fast ones that say so run here, and go there when they turn out to be slow. A page is
settled whatever users' code does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from skitter.archive.facts import Item
from skitter.archive.schema import ITEMS
from skitter.clock import Clock
from skitter.extend.api import Content, HookKind
from skitter.extend.calling import call_extractors
from skitter.extend.extractor import Described, Extractor, PageResult, patterns_of
from skitter.extend.loading import load_extractors
from skitter.extend.messages import PageMessage
from skitter.extend.process import ExtractorProcess
from skitter.extend.versions import check_versions
from skitter.model import Extracted, Link, Task
from skitter.parse.content import PageContent
from skitter.parse.media import PDF
from skitter.parse.readers import STANDARD, HeadersReader, PlainReader, Readers
from skitter.settings import Settings
from skitter.worker.reading.page_reader import PageReader
from skitter.worker.results import Answer, LinkChoice, Reading

_SLOW = 0.02
_SLOW_TIMES = 3
_MICROS = 1e6


class Extractors:
    """Opened with the fetch stack. `described` are all extractors, by number."""

    def __init__(
        self,
        process: ExtractorProcess | None,
        described: Sequence[Described],
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._process = process
        self._clock = clock
        self._patterns = patterns_of(described)
        self._slow_calls: dict[int, int] = {}
        self._settings = settings
        self._inline = {number for number, each in enumerate(described) if each.hook.inline}
        self._code = _load_here(settings) if self._inline else []
        self.described = described

    @classmethod
    async def open(cls, settings: Settings, clock: Clock) -> Extractors:
        """Raises UsageError where users' code cannot be loaded, or is not that of the crawl."""
        if settings.plugins.with_:
            process = ExtractorProcess(settings.plugins, settings.extract)
            try:
                described = await process.start()
                check_versions(settings.plugins, described)
            except BaseException:
                await process.close()
                raise
            return cls(process, described, settings, clock)
        return cls(None, [each.described for each in _load_here(settings)], settings, clock)

    async def close(self) -> None:
        if self._process is not None:
            await self._process.close()

    @property
    def restarts(self) -> int:
        return 0 if self._process is None else self._process.restarts

    @property
    def scores_pages(self) -> bool:
        return any(each.hook.kind is HookKind.SCORE for each in self.described)

    def matching(self, url: str, media_type: str) -> tuple[int, ...]:
        return self._patterns.find(url, media_type)

    @property
    def readers(self) -> Readers:
        """Those of the crawl, and one for each type that a hook is for: so it is fetched."""
        return readers_for(self.described)

    async def run(self, message: PageMessage) -> PageResult:
        inline = tuple(number for number in message.numbers if number in self._inline)
        if not inline:
            assert self._process is not None
            return await self._process.run(message)
        result = PageResult()
        rest = tuple(number for number in message.numbers if number not in self._inline)
        if rest and self._process is not None:
            result = await self._process.run(msgspec.structs.replace(message, numbers=rest))
        result.add(self._run_here(message, inline))
        return result

    def _run_here(self, message: PageMessage, numbers: tuple[int, ...]) -> PageResult:
        page, result = message.page(), PageResult()
        for number in numbers:
            began = time.thread_time()
            result.add(call_extractors(page, self._code, (number,)))
            if time.thread_time() - began > _SLOW and self._process is not None:
                self._note_slow(number)
        return result

    def _note_slow(self, number: int) -> None:
        """Three times too slow: from now on it runs where it holds up nobody."""
        self._slow_calls[number] = self._slow_calls.get(number, 0) + 1
        if self._slow_calls[number] >= _SLOW_TIMES:
            self._inline.discard(number)

    def joined_by(self, reader: PageReader) -> Extraction:
        return Extraction(self, reader)

    def rows(self, result: PageResult) -> dict[str, list[Item]]:
        """Of the table `items`."""
        made_at = round(self._clock.now() * _MICROS)
        return {ITEMS.name: item_rows(result, self.described, made_at)}

    def account(self, result: PageResult) -> tuple[Extracted, ...]:
        counts: dict[int, int] = {}
        for number, _ in result.items:
            counts[number] = counts.get(number, 0) + 1
        made = [Extracted(self.described[number].name, count) for number, count in counts.items()]
        return (
            *made,
            *(
                Extracted(fault.name or self.described[fault.extractor].name, 0, fault.kind, fault.text)
                for fault in result.faults
            ),
        )


class Extraction:
    """The step's side: asks the extractors that a page matches, and joins what they made to what was read."""

    def __init__(self, extractors: Extractors, reader: PageReader) -> None:
        self._extractors = extractors
        self._reader = reader

    async def extract(self, task: Task, answer: Answer, reading: Reading) -> Reading:
        """Not of a body that this URL had before: its items are there."""
        page = reading.page
        if page is None or answer.digests.payload == task.digest:
            return reading
        numbers = self._extractors.matching(task.url, page.media_type)
        if not numbers:
            return reading
        exchange = answer.exchange
        is_pdf = page.media_type == PDF
        message = PageMessage(
            exchange.url,
            reading.body,
            exchange.status,
            exchange.headers,
            exchange.sent_at,
            task.depth,
            numbers,
            page.text if is_pdf else None,
            page.title if is_pdf else None,
        )
        return self._joined(reading, page, await self._extractors.run(message))

    def _joined(self, reading: Reading, page: PageContent, result: PageResult) -> Reading:
        if result.content is not None:
            reading = self._reader.with_content(reading, _with_content(page, result.content))
        return replace(
            reading,
            choice=_choice(result, self._extractors.described),
            score=result.score,
            items=self._extractors.rows(result),
            extracted=self._extractors.account(result),
        )


def _with_content(page: PageContent, content: Content) -> PageContent:
    return replace(
        page,
        title=content.title or page.title,
        text=content.text,
        language=content.language or page.language,
        links=tuple(Link(href) for href in content.links),
    )


def _choice(result: PageResult, described: Sequence[Described]) -> LinkChoice | None:
    if result.chosen is None and not result.followed and not result.posted:
        return None
    return LinkChoice(
        kept=None if result.chosen is None else dict(result.chosen),
        followed=[(url, priority, described[by].name) for url, priority, by in result.followed],
        posted=[
            (url, priority, body, safe, described[by].name) for url, priority, body, safe, by in result.posted
        ],
    )


def item_rows(result: PageResult, described: Sequence[Described], made_at: int) -> list[Item]:
    """Of one page: an item each, numbered by extractor, and a row for each fault."""
    rows: list[Item] = []
    places: dict[int, int] = {}
    for number, row in result.items:
        n = places[number] = places.get(number, -1) + 1
        about = described[number]
        rows.append(
            {
                "extractor": about.name,
                "version": about.version,
                "type": row.type,
                "key": row.key,
                "n": n,
                "item": row.json,
                "made_at": made_at,
            }
        )
    for fault in result.faults:
        about = described[fault.extractor]
        text = f"{fault.kind}: {fault.text}"
        rows.append(
            {
                "extractor": fault.name or about.name,
                "version": about.version,
                "n": 0,
                "fault": text,
                "made_at": made_at,
            }
        )
    return rows


def readers_for(described: Sequence[Described], readers: Readers = STANDARD) -> Readers:
    for each in described:
        for media_type in each.hook.types:
            if media_type != "*" and not readers.accepts(media_type):
                is_text = media_type.startswith("text/") or media_type.endswith("json")
                is_read = each.hook.kind is HookKind.READER
                reader = PlainReader() if is_text and not is_read else HeadersReader()
                readers = readers.with_reader(media_type, reader)
    return readers


def _load_here(settings: Settings) -> list[Extractor]:
    return load_extractors(settings.plugins.with_, settings.extract)
