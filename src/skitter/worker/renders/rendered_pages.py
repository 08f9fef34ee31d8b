"""From a rendered page to its delivery: read like any page, seen by users' code, packed as a resource record.

What `step.py` is for fetched pages. The record is called `urn:rendered:URL` and refers to the response that it
was made of; rows of the tables are of the page's own URL, of the kind `rendered`. Makes no request.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from skitter.archive.facts import Facts
from skitter.archive.packing import THUMBNAIL, VIEW, Packer, Parcel
from skitter.archive.warc.records import made_of
from skitter.committer.work_source import Delivery
from skitter.frontier.link_batches import pack
from skitter.model import (
    Discovered,
    Exchange,
    Fetched,
    LinkBatch,
    Outcome,
    Rendered,
    RenderTask,
    Task,
    TaskKind,
)
from skitter.parse.fingerprints.figures import figures
from skitter.render.base import Rendered as Taken
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.urls.links import list_targets
from skitter.worker.kinds import KINDS
from skitter.worker.reading.page_reader import PageReader
from skitter.worker.renders.archived_answers import Origin
from skitter.worker.results import Answer, Reading, ResultMaker

if TYPE_CHECKING:
    from skitter.worker.extractors import Extraction
    from skitter.worker.focusing import Focus
    from skitter.worker.page_rules import PageRules
    from skitter.worker.renders.shown_page import ShownPage

_CONTENT_TYPE = "text/html; charset=utf-8"
# What a server says of a page in its headers holds for the rendered one too.
_KEPT_HEADERS = ("x-robots-tag", "content-language")
_LITTLE_TEXT = 100
_ROW = KINDS[TaskKind.RENDER]


class RenderedPages:
    def __init__(
        self,
        reader: PageReader,
        results: ResultMaker,
        packer: Packer,
        keys: Keys,
        *,
        tells_links: bool,
        extraction: Extraction | None,
        focus: Focus | None,
        rules: PageRules | None,
    ) -> None:
        self._reader = reader
        self._results = results
        self._packer = packer
        self._keys = keys
        self._tells_links = tells_links
        self._extraction = extraction
        self._focus = focus
        self._rules = rules

    async def read(self, task: RenderTask, shown: ShownPage, now: float) -> Delivery:
        taken, origin = shown.rendered, shown.origin
        assert taken is not None
        if origin is None or not taken.has_content:
            note = "" if origin is not None else "the record of the page is not at hand"
            lost = Rendered(ending=taken.ending, seconds=taken.seconds, requests=taken.requests, note=note)
            return Delivery(outcome_of(task, now, lost))
        answer = _answer(task, taken, origin, now)
        reading, page_task = _as_seen(self._reader.read(answer, None), taken), _page_task(task)
        if self._extraction is not None:
            reading = await self._extraction.extract(page_task, answer, reading)
        if self._focus is not None:
            reading = self._focus.rank(page_task, reading)
        if self._rules is not None:
            reading = self._rules.followed(page_task, reading)
        result = self._result(page_task, answer, reading, taken, origin)
        parcel = None
        if result.digest != task.digest:
            parcel = self._packed(task, answer, reading, result, taken, origin)
        return Delivery(outcome_of(task, now, result), parcel, extracted=reading.extracted)

    def _result(self, task: Task, answer: Answer, reading: Reading, taken: Taken, origin: Origin) -> Rendered:
        made = self._results.fetched(task, answer, reading)
        assert isinstance(made, Fetched)
        page = reading.page
        text = page.text if page is not None else ""
        return Rendered(
            ending=taken.ending,
            link_batches=(*made.link_batches, *self._led_to(task, taken)),
            digest=sha256(answer.exchange.body).digest(),
            size=len(answer.exchange.body),
            title=made.title,
            simhash=made.simhash,
            figures=figures(text, task.url, made.title) if made.simhash is not None else b"",
            text=len(text),
            plain_text=self._plain_text(task, origin),
            requests=taken.requests,
            lacking=len(taken.missing),
            seconds=taken.seconds,
        )

    def _plain_text(self, task: Task, origin: Origin) -> int:
        plain = self._reader.read(_as_answer(task.url, origin.answer.headers, origin.answer.body, 0.0), None)
        return len(plain.page.text) if plain.page is not None else 0

    def _led_to(self, task: Task, taken: Taken) -> tuple[LinkBatch, ...]:
        """Where a script wanted to go is a link."""
        urls = {found for url in taken.leads_to if (found := normalise(url)) is not None} - {task.url}
        return pack(
            [
                Discovered(
                    url=url,
                    key=self._keys.key_of(url),
                    host=host_of(url),
                    depth=task.depth + 1,
                    parent=task.key,
                )
                for url in sorted(urls)
            ]
        )

    def _packed(
        self,
        task: RenderTask,
        answer: Answer,
        reading: Reading,
        result: Rendered,
        taken: Taken,
        origin: Origin,
    ) -> Parcel:
        page, record = reading.page, origin.record
        facts = Facts(kind=_ROW.name, depth=task.depth, items=reading.items, rendered=True)
        if page is not None:
            facts = replace(
                facts,
                media_type=page.media_type,
                charset=page.charset.lower(),
                language=page.language,
                title=page.title,
                directives=page.directives.text,
                said=page.directives,
                text=page.text,
                links=list_targets(page.links, reading.targets) if self._tells_links else (),
                simhash=result.simhash,
                score=reading.score,
            )
        views = []
        if (shots := taken.screenshots) is not None:
            views = [(VIEW, shots.media_type, shots.whole), (THUMBNAIL, shots.media_type, shots.thumbnail)]
        origin_fields = made_of(record.id, record.url, record.date)
        return self._packer.pack_rendered(answer.exchange, origin_fields, facts, views)


def _as_seen(reading: Reading, taken: Taken) -> Reading:
    """With the text that a reader sees, where the HTML has hardly any: shadow roots have no paragraphs there."""
    page = reading.page
    if page is None or len(page.text) >= _LITTLE_TEXT or len(taken.text) <= len(page.text):
        return reading
    return replace(reading, page=replace(page, text=taken.text))


def _answer(task: RenderTask, taken: Taken, origin: Origin, now: float) -> Answer:
    kept = tuple((name, value) for name, value in origin.answer.headers if name in _KEPT_HEADERS)
    headers = (("content-type", _CONTENT_TYPE), *kept)
    return _as_answer(task.url, headers, taken.html.encode("utf-8", "replace"), now)


def _as_answer(url: str, headers: tuple[tuple[str, str], ...], body: bytes, at: float) -> Answer:
    """As if a server had sent it, without a coding."""
    from skitter.worker.step import answer_of

    plain = tuple((name, value) for name, value in headers if name != "content-encoding")
    return answer_of(Exchange(url, b"", b"", 200, plain, body, sent_at=at, ended_at=at))


def _page_task(task: RenderTask) -> Task:
    return Task(
        kind=TaskKind.PAGE,
        key=task.key,
        url=task.url,
        depth=task.depth,
        nesting=task.nesting,
        digest=task.digest,
    )


def outcome_of(task: RenderTask, now: float, result: Rendered) -> Outcome:
    return Outcome(
        host=host_of(task.url),
        token=task.token,
        kind=TaskKind.RENDER,
        key=task.key,
        sent_at=now,
        ended_at=now,
        result=result,
    )
