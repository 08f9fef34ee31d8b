"""Renders pages that a crawl has archived: nothing is fetched, and nothing is written into the crawl's folder.

What `skitter render` runs. Answers come from the archive, by URL; what is not there is missing, and is named.
What came of a page goes to whoever asked, and if wanted into a WARC file of its own (`rendered_file.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from skitter.archive.warc.records import digest_field
from skitter.clock import Clock
from skitter.collection.collection import Collection
from skitter.collection.record import Record
from skitter.errors import ArchiveFailed, UsageError
from skitter.parse.content import PageContent
from skitter.parse.page import read_page
from skitter.parse.shell import score_shell
from skitter.render.base import Answer, Asked, PageToRender, Rendered
from skitter.render.renderer import Renderer
from skitter.settings import Settings
from skitter.urls.canonical import normalise

PAGES = "kind = 'page' and status = 200 and mime in ('text/html', 'application/xhtml+xml')"
_CONTENT_TYPE = "text/html; charset=utf-8"
# Bytes of answers: every page of an app asks for its bundles.
_MOST_REMEMBERED = 64_000_000


class ArchiveAnswers:
    """The newest answer to each URL, as the archive has it; redirects are for the browser to follow."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._remembered: dict[str, Answer] = {}
        self._size = 0

    async def find(self, asked: Asked) -> Answer | None:
        url = normalise(asked.url)
        if url is None:
            return None
        answer = self._remembered.pop(url, None)
        if answer is None and (answer := self._read(url)) is not None:
            self._size += len(answer.body)
        if answer is not None:
            self._remembered[url] = answer  # last: what was used long ago is forgotten first
            while self._size > _MOST_REMEMBERED:
                self._size -= len(self._remembered.pop(next(iter(self._remembered))).body)
        return answer

    def _read(self, url: str) -> Answer | None:
        for capture in reversed(self._collection.captures(url)):
            if capture.url == url and 200 <= capture.status < 500:
                try:
                    return answer_of(self._collection, self._collection.record(capture.at))
                except ArchiveFailed:
                    continue
        return None


def answer_of(collection: Collection, record: Record) -> Answer:
    whole = collection.whole(record)
    return Answer(status=whole.status or record.status, headers=tuple(whole.headers()), body=whole.decoded())


class RenderedPage(msgspec.Struct, kw_only=True):
    """One page, for people and programs. `links` are what the rendered page leads to, `new_links` those of them
    that the page without its scripts does not have."""

    url: str
    fetched_at: str
    ending: str
    digest: str
    title: str
    text: str
    links: list[str]
    new_links: list[str]
    plain_text: int
    """Characters of text without scripts."""
    signs: list[str]
    """Why the page was taken for one that needs a browser."""
    requests: int
    missing: list[str]
    refused: dict[str, str]
    leads_to: list[str]
    seconds: float


class Done(msgspec.Struct, kw_only=True):
    """`left_out` are pages that do not look as if they needed a browser."""

    pages: int = 0
    left_out: int = 0
    changed: int = 0
    """Pages to which their scripts added links or text."""
    incomplete: int = 0
    failed: int = 0
    browsers: int = 0


class ArchiveRendering:
    def __init__(
        self, collection: Collection, settings: Settings, clock: Clock, *, screenshots: bool = False
    ) -> None:
        self._collection = collection
        self._settings = settings
        self._clock = clock
        self._screenshots = screenshots
        self._answers = ArchiveAnswers(collection)
        self.done = Done()

    async def run(
        self,
        urls: Iterator[str],
        tell: Callable[[RenderedPage, Rendered, Record], None],
        *,
        only_shells: bool,
    ) -> Done:
        """Tells of each page when it is rendered. Raises RenderFailed or UsageError where there is no browser
        that can be used."""
        renderer = Renderer(
            self._settings.render,
            self._clock,
            contact=self._settings.identity.contact,
            pictures=self._screenshots,
        )
        try:
            await renderer.start()
            workers = (
                self._work(renderer, urls, tell, only_shells) for _ in range(self._settings.render.tabs)
            )
            await asyncio.gather(*workers)
        finally:
            self.done.browsers = renderer.figures.browsers
            await renderer.close()
        return self.done

    async def _work(
        self,
        renderer: Renderer,
        urls: Iterator[str],
        tell: Callable[[RenderedPage, Rendered, Record], None],
        only_shells: bool,
    ) -> None:
        for url in urls:
            record = self._collection.record(self._collection.capture(url).at)
            answer = answer_of(self._collection, record)
            plain = self._collection.read(record)
            score = score_shell(answer.body, plain)
            if only_shells and not score.is_shell:
                self.done.left_out += 1
                continue
            page = PageToRender(
                url=record.url, answer=answer, fetched_at=_seconds(record.date), screenshots=self._screenshots
            )
            rendered = await renderer.render(page, self._answers)
            told = _describe(rendered, record, plain, score.signs)
            self._count(told, rendered)
            tell(told, rendered, record)

    def _count(self, told: RenderedPage, rendered: Rendered) -> None:
        self.done.pages += 1
        self.done.failed += not rendered.has_content
        self.done.incomplete += bool(told.missing)
        self.done.changed += bool(told.new_links) or len(told.text) > 1.5 * told.plain_text + 100


def chosen_urls(collection: Collection, url: str, where: str) -> Iterator[str]:
    """The page asked for, or the pages that the condition lets through, each once."""
    if not url:
        condition = f"{PAGES} and (\n{where}\n)" if where else PAGES
        for page in collection.pages(condition, newest=True):
            yield page.url
        return
    capture = collection.capture(url)
    if capture.status != 200 or "html" not in capture.mime:
        raise UsageError(f"{url} is no page to render: {capture.status} {capture.mime}")
    yield capture.url


def _describe(rendered: Rendered, record: Record, plain: PageContent, signs: tuple[str, ...]) -> RenderedPage:
    html = rendered.html.encode()
    page = read_page(html, url=record.url, content_type=_CONTENT_TYPE, with_text=True)
    links, before = _targets(page), set(_targets(plain))
    return RenderedPage(
        url=record.url,
        fetched_at=record.date,
        ending=rendered.ending,
        digest=digest_field(sha256(html).digest()) if rendered.has_content else "",
        title=page.title,
        text=page.text,
        links=links,
        new_links=[link for link in links if link not in before],
        plain_text=len(plain.text),
        signs=list(signs),
        requests=rendered.requests,
        missing=[asked.url for asked in rendered.missing],
        refused={one.url: one.why for one in rendered.refused},
        leads_to=list(rendered.leads_to),
        seconds=round(rendered.seconds, 3),
    )


def _targets(page: PageContent) -> list[str]:
    found = (normalise(link.href, page.base) for link in page.links)
    return list(dict.fromkeys(target for target in found if target))


def _seconds(date: str) -> float:
    try:
        return datetime.fromisoformat(date).astimezone(UTC).timestamp()
    except ValueError:
        return 0.0
