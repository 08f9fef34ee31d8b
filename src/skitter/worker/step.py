"""The whole path of one URL on one screen: fetch, read, pack, and the delivery that settles it.

A step holds nothing between two URLs. It makes exactly one request, packs at most one record, and returns one
delivery; what becomes of it is the desk's decision.
"""

from __future__ import annotations

from collections.abc import Callable

from skitter.archive.digests import digests_of
from skitter.archive.packing import Packer, Parcel
from skitter.archive.rows import Said
from skitter.clock import Clock
from skitter.desk.brain import Delivery
from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.fetch.curl import Fetcher
from skitter.fetch.head import Fields, Headers, fields_of
from skitter.model import (
    Exchange,
    Failed,
    Fetched,
    HostLease,
    Outcome,
    Redirected,
    Result,
    Task,
    TaskKind,
)
from skitter.parse.css import CSS
from skitter.parse.media import PDF, parse_content_type
from skitter.parse.page import read_page
from skitter.parse.pdf import PdfReading, with_pdf
from skitter.settings import Settings
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader, told
from skitter.worker.meaning import CUT, Answer, Meaning, Reading
from skitter.worker.pdf import PdfReader
from skitter.worker.turns import Turns
from skitter.worker.wanted import judge_for

# A page's own stylesheet is at level 1; three levels of sheets that it imports are read for what they need.
_DEEPEST_SHEET = 4
_UNREAD = Reading()


class Step:
    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        settings: Settings,
        pdfs: PdfReader,
        keys: Keys | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._settings = settings
        self._pdfs = pdfs
        self._packer = Packer(settings.archive)
        keys = keys or Keys(settings.keys)
        self._links = LinkReader(keys)
        self._turns = Turns(clock)
        self._keeps_links = "links" in settings.archive.tables
        self._tells_links = self._keeps_links or settings.archive.metadata
        fingerprint = _simhash() if settings.crawl.near_duplicates else None
        self._needs_text = fingerprint is not None or "text" in settings.archive.tables
        self._meaning = Meaning(keys, self._links, fingerprint)

    def prepare(self, lease: HostLease) -> None:
        """The lease will be served soon: what can be found out without asking the host, is."""
        self._fetcher.prepare(lease.tasks[0].url)

    async def run(
        self, lease: HostLease, task: Task, may_start: Callable[[], bool] = lambda: True
    ) -> Delivery:
        """`may_start` is asked right before the request goes out; raises `TooLate` when it says no."""
        came = await self._fetcher.fetch(
            task.url,
            etag=task.etag,
            last_modified=task.last_modified,
            verify_tls=lease.verify_tls,
            unwanted=judge_for(task),
            may_start=may_start,
        )
        if isinstance(came, Failed):
            now = self._clock.now()
            return Delivery(_outcome(lease, task, now, now, came))
        try:
            answer = _answer(came)
            is_document = _is_document(task, answer)
            pdf = await self._read_pdf(answer) if is_document and _is_pdf(task, answer) else None
            # Last: a turn that was taken before a wait would be over when the page is read.
            if not self._turns.try_take():
                await self._turns.take()
            reading = self._page(answer, pdf) if is_document else _UNREAD
            result, parcel = self._packed(task, answer, reading)
        finally:
            self._fetcher.let_go(came)
        outcome = _outcome(lease, task, came.sent_at, came.ended_at, result, came.address)
        return Delivery(outcome, parcel, came.reused_connection)

    def _packed(self, task: Task, answer: Answer, reading: Reading) -> tuple[Result, Parcel]:
        result = self._meaning.of(task, answer, reading)
        parcel = self._packer.pack(
            answer.exchange,
            answer.digests,
            media_type=answer.declared if answer.first is answer.joined else _essence(answer.first),
            said=self._said(task, result, reading),
            stands_for=task.digest if answer.exchange.status == 304 else b"",
        )
        return result, parcel

    def quiet(self) -> int:
        """Requests under way that hardly move."""
        return self._fetcher.lulls.quiet

    # -- what is told of it

    def _said(self, task: Task, result: Result, reading: Reading) -> Said:
        """What the archive's tables and metadata records tell beside the exchange itself."""
        kind = "requisite" if task.requisite else task.kind
        page = reading.page
        if page is None:
            return Said(
                kind=kind,
                depth=task.depth,
                redirect=result.location if isinstance(result, Redirected) else "",
                failure=result.kind if isinstance(result, Failed) else "",
            )
        return Said(
            kind=kind,
            depth=task.depth,
            media_type=page.media_type,
            charset=page.charset.lower(),
            language=page.language,
            title=page.title,
            directives=page.directives.text,
            text=page.text,
            links=told(page.links, reading.targets) if self._tells_links else (),
            simhash=result.simhash if isinstance(result, Fetched) else None,
        )

    def _page(self, answer: Answer, pdf: PdfReading | None) -> Reading:
        exchange, first, joined = answer.exchange, answer.first, answer.joined
        decoded = self._decoded(answer)
        if isinstance(decoded, Undecodable):
            return Reading(note=f"not decoded: {decoded.reason}")
        # a PDF was read elsewhere, and whole
        most = self._settings.fetch.max_parsed if pdf is None else len(decoded.body)
        page = read_page(
            decoded.body[:most],
            url=exchange.url,
            content_type=joined.get("content-type", ""),
            content_language=first.get("content-language", ""),
            robots_tags=_values(exchange.headers, "x-robots-tag") if "x-robots-tag" in first else (),
            content_signal=joined.get("content-signal", ""),
            link_header=joined.get("link", ""),
            product=self._settings.identity.product,
            with_text=self._needs_text,
            with_anchors=self._keeps_links,
            with_requisites=self._settings.crawl.requisites,
        )
        note = _note(decoded, most)
        if pdf is not None:
            page, note = with_pdf(page, pdf), pdf.reason or note
        return Reading(page, note, self._links.resolve(page.base, page.links))

    def _decoded(self, answer: Answer) -> Decoded | Undecodable:
        limits = self._settings.fetch
        coding = answer.joined.get("content-encoding", "")
        return decode_body(answer.exchange.body, coding, limit=limits.max_decoded, max_ratio=limits.max_ratio)

    async def _read_pdf(self, answer: Answer) -> PdfReading | None:
        decoded = self._decoded(answer)
        return None if isinstance(decoded, Undecodable) else await self._pdfs.read(decoded.body)


def _simhash() -> Callable[[str], int | None]:
    # without the kernel numpy comes with it, in 0.1 s: commands that only look on do without
    from skitter.parse.fingerprint import simhash

    return simhash


def _note(decoded: Decoded, most: int) -> str:
    read = min(len(decoded.body), most)
    if decoded.truncated:
        return f"{CUT} {read:,} bytes: inflates beyond fetch.max_decoded or fetch.max_ratio"
    if read < len(decoded.body):
        return f"{CUT} {read:,} bytes: longer than fetch.max_parsed"
    if decoded.mislabelled:
        return "not coded, although its headers say so"
    return "" if decoded.complete else "the coded body breaks off or is damaged"


def _answer(exchange: Exchange) -> Answer:
    digests = digests_of(exchange)
    first, joined = fields_of(exchange.headers)
    return Answer(exchange, first, joined, _essence(joined), digests)


def _is_document(task: Task, answer: Answer) -> bool:
    exchange = answer.exchange
    if task.kind is not TaskKind.PAGE or exchange.status != 200 or not exchange.body:
        return False
    return not task.requisite or (answer.declared == CSS and task.requisite <= _DEEPEST_SHEET)


def _is_pdf(task: Task, answer: Answer) -> bool:
    return not task.requisite and (answer.declared == PDF or answer.exchange.body.startswith(b"%PDF-"))


def _essence(fields: Fields) -> str:
    return parse_content_type(fields.get("content-type", "")).essence


def _values(headers: Headers, name: str) -> tuple[str, ...]:
    return tuple(value for key, value in headers if key == name)


def _outcome(
    lease: HostLease, task: Task, sent_at: float, ended_at: float, result: Result, address: str = ""
) -> Outcome:
    return Outcome(
        host=lease.host,
        token=lease.token,
        kind=task.kind,
        key=task.key,
        sent_at=sent_at,
        ended_at=ended_at,
        result=result,
        address=address,
        requisite=bool(task.requisite),
    )
