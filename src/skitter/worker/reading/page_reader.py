"""From the body of an answer to what a page says: decoded within limits, read, its links resolved.

Between the fetch and the result, in `step.py`. Keeps nothing between two pages but which sites cost too much, and
makes no request.
"""

from __future__ import annotations

from time import thread_time

from msgspec.structs import replace

from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.fetch.response_head import Headers
from skitter.parse.declarations import TDMREP, read_tdmrep
from skitter.parse.page import PageContent, read_page
from skitter.parse.pdf import PdfReading, with_pdf
from skitter.parse.readers import Readers
from skitter.settings import Settings
from skitter.urls.canonical import target_of
from skitter.urls.links import LinkReader
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.reading.reading_costs import ReadingCosts
from skitter.worker.results import CUT, Answer, Reading


class PageReader:
    """`needs_text` and `needs_anchors` say what of a page is of use later."""

    def __init__(
        self,
        settings: Settings,
        links: LinkReader,
        pdfs: PdfReader,
        readers: Readers,
        *,
        needs_text: bool,
        needs_anchors: bool,
    ) -> None:
        self._readers = readers
        self._settings = settings
        self._links = links
        self._pdfs = pdfs
        self._costs = ReadingCosts(settings.fetch.reading_seconds)
        self._with_sitemaps = settings.sitemaps.use != "off"
        self._needs_text = needs_text
        self._needs_anchors = needs_anchors

    def read(self, answer: Answer, pdf: PdfReading | None) -> Reading:
        """Any page, stylesheet or PDF; `pdf` is what the process that reads PDFs found."""
        exchange, first, joined = answer.exchange, answer.first, answer.joined
        decoded = self._decoded(answer)
        if isinstance(decoded, Undecodable):
            return Reading(note=f"not decoded: {decoded.reason}")
        # a PDF was read elsewhere, and whole
        most = len(decoded.body)
        if pdf is None:
            most = self._costs.most(exchange.url, decoded.body, self._settings.fetch.max_parsed)
        is_timed = self._costs.may_be_dear(decoded.body)
        began = thread_time() if is_timed else 0.0
        page = read_page(
            decoded.body[:most],
            url=exchange.url,
            content_type=joined.get("content-type", ""),
            content_language=first.get("content-language", ""),
            robots_tags=_values(exchange.headers, "x-robots-tag") if "x-robots-tag" in first else (),
            content_signal=joined.get("content-signal", ""),
            tdm=first.get("tdm-reservation", ""),
            tdm_policy=first.get("tdm-policy", ""),
            link_header=joined.get("link", ""),
            product=self._settings.identity.product,
            with_text=self._needs_text,
            with_anchors=self._needs_anchors,
            with_requisites=self._settings.crawl.requisites,
            with_sitemaps=self._with_sitemaps,
            with_feeds=self._with_sitemaps and self._settings.sitemaps.feeds,
            readers=self._readers,
        )
        note = _note(decoded, most, self._settings.fetch.max_parsed)
        if pdf is not None:
            page, note = with_pdf(page, pdf), pdf.reason or note
        targets = self._links.resolve(page.base, page.links)
        seconds = thread_time() - began if is_timed else 0.0
        cost = self._costs.charge(exchange.url, min(most, len(decoded.body)), seconds)
        return Reading(page, note, targets, body=decoded.body, cpu=cost)

    def read_declaration(self, answer: Answer, pdf: PdfReading | None) -> Reading:
        """A file in which a site says what may be done with its content: of one kind the rules are read."""
        decoded = self._decoded(answer)
        if isinstance(decoded, Undecodable):
            return Reading(note=f"not decoded: {decoded.reason}")
        is_tdmrep = target_of(answer.exchange.url) == TDMREP
        rules = read_tdmrep(decoded.body[: self._settings.fetch.max_parsed]) if is_tdmrep else ""
        return Reading(note=_note(decoded, len(decoded.body), 0), directives=rules)

    def with_content(self, reading: Reading, page: PageContent) -> Reading:
        """The same answer, read by users' code."""
        return replace(reading, page=page, targets=self._links.resolve(page.base, page.links))

    def _decoded(self, answer: Answer) -> Decoded | Undecodable:
        limits = self._settings.fetch
        coding = answer.joined.get("content-encoding", "")
        return decode_body(answer.exchange.body, coding, limit=limits.max_decoded, max_ratio=limits.max_ratio)

    async def read_pdf(self, answer: Answer) -> PdfReading | None:
        decoded = self._decoded(answer)
        return None if isinstance(decoded, Undecodable) else await self._pdfs.read(decoded.body)


def _note(decoded: Decoded, most: int, longest: int) -> str:
    read = min(len(decoded.body), most)
    if decoded.truncated:
        return f"{CUT} {read:,} bytes: inflates beyond fetch.max_decoded or fetch.max_ratio"
    if read < len(decoded.body):
        why = "longer than fetch.max_parsed" if most >= longest else "its site takes too long to read"
        return f"{CUT} {read:,} bytes: {why}"
    if decoded.mislabelled:
        return "not coded, although its headers say so"
    return "" if decoded.complete else "the coded body breaks off or is damaged"


def _values(headers: Headers, name: str) -> tuple[str, ...]:
    return tuple(value for key, value in headers if key == name)
