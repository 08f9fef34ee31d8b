"""The whole path of one URL on one screen: fetch, read, pack, and the delivery that settles it.

A step holds nothing between two URLs. It makes exactly one request, packs at most one record, and returns one
delivery; what becomes of it is the desk's decision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime

import msgspec

from skitter.archive.digests import Digests, digests_of
from skitter.archive.packing import Packer, Parcel
from skitter.archive.rows import Said
from skitter.clock import Clock
from skitter.desk.brain import Delivery
from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.fetch.curl import Fetcher
from skitter.fetch.head import Fields, Headers, fields_of
from skitter.frontier.bundles import bundled
from skitter.model import (
    Bundle,
    Discovered,
    Exchange,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    NotModified,
    Outcome,
    Redirected,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.parse.css import CSS
from skitter.parse.media import PDF, parse_content_type
from skitter.parse.page import PageContent, read_page
from skitter.parse.pdf import PdfReading, with_pdf
from skitter.robots.rules import MAX_BYTES as MAX_ROBOTS_BYTES
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader, Resolved, discovered, told
from skitter.worker.pdf import PdfReader
from skitter.worker.turns import Turns
from skitter.worker.wanted import judge_for

_REDIRECTS = (301, 302, 303, 307, 308)
_THROTTLED = (429, 503)
_CUT = "read to"
_LONGEST_RETRY_AFTER = 7 * 86_400
# A page's own stylesheet is at level 1; three levels of sheets that it imports are read for what they need.
_DEEPEST_SHEET = 4


class Answer(msgspec.Struct, frozen=True):
    """What came, what its headers say (`first` and `joined`: see `fields_of`), the type that they declare, the
    digests of its body."""

    exchange: Exchange
    first: Fields
    joined: Fields
    declared: str
    digests: Digests


class Reading(msgspec.Struct, frozen=True):
    """What a page says, what was wrong with its body, and what each of its links resolves to: once, for what is
    followed and for what is told."""

    page: PageContent | None = None
    note: str = ""
    targets: Sequence[Resolved | None] = ()


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
        self._keys = keys or Keys(settings.keys)
        self._links = LinkReader(self._keys)
        self._turns = Turns(clock)
        self._keeps_links = "links" in settings.archive.tables
        self._tells_links = self._keeps_links or settings.archive.metadata
        self._fingerprint = _simhash() if settings.crawl.near_duplicates else None
        self._needs_text = self._fingerprint is not None or "text" in settings.archive.tables

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
        result = self._read(task, answer, reading)
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

    # -- what the answer means

    def _read(self, task: Task, answer: Answer, reading: Reading) -> Result:
        exchange, status = answer.exchange, answer.exchange.status
        if reading.page is not None:
            return self._fetched(task, answer, reading)
        if status in _REDIRECTS:
            return self._redirected(task, answer)
        if status in _THROTTLED:
            wait = retry_after(answer.first.get("retry-after", ""), exchange.ended_at)
            return Failed(
                kind=FailureKind.THROTTLED,
                detail=f"status {status}",
                status=status,
                retry_after=wait,
                size=len(exchange.body),
            )
        if status >= 500:
            return Failed(
                kind=FailureKind.SERVER_ERROR,
                detail=f"status {status}",
                status=status,
                size=len(exchange.body),
            )
        if status == 304 and (task.etag or task.last_modified):
            return NotModified()
        if status == 304:
            # a page would pass for one that was seen before and never was
            return Failed(kind=FailureKind.PROTOCOL, detail="304, unasked", status=status)
        if task.kind is TaskKind.ROBOTS:
            return self._robots_read(answer)
        return self._fetched(task, answer, reading)

    def _redirected(self, task: Task, answer: Answer) -> Result:
        exchange, location = answer.exchange, answer.first.get("location", "")
        target = normalise(_escaped(location), exchange.url) if location else None
        if target is None:
            return Failed(
                kind=FailureKind.BAD_REDIRECT,
                detail=location[:200] or "no Location",
                status=exchange.status,
                size=len(exchange.body),
            )
        found = Discovered(
            url=target,
            key=self._keys.key_of(target),
            host=host_of(target),
            depth=task.depth,
            via=Via.REDIRECT,
            parent=task.key,
            hops=task.hops + 1,
            requisite=task.requisite,
        )
        return Redirected(status=exchange.status, location=target, target=found, size=len(exchange.body))

    def _robots_read(self, answer: Answer) -> Result:
        """RFC 9309 2.3.1: rules, or none where the host says there are none; anything else is no permission."""
        exchange, first = answer.exchange, answer.first
        status, body = exchange.status, b""
        if not 200 <= status < 300 and not 400 <= status < 500:
            return Failed(kind=FailureKind.PROTOCOL, detail=f"robots.txt answered {status}", status=status)
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

    def _fetched(self, task: Task, answer: Answer, reading: Reading) -> Result:
        exchange, first = answer.exchange, answer.first
        page, note = reading.page, reading.note
        canonical = self._canonical(task, page)
        return Fetched(
            status=exchange.status,
            content_type=answer.joined.get("content-type", "")[:200],
            digest=answer.digests.payload,
            size=len(exchange.body),
            truncated=exchange.truncated or note.startswith(_CUT),
            etag=first.get("etag", "")[:500],
            last_modified=first.get("last-modified", "")[:100],
            title=page.title if page else "",
            directives=page.directives.text if page else "",
            bundles=self._bundles(task, page, reading.targets, canonical) if page is not None else (),
            note="cut at fetch.max_body" if exchange.truncated else note,
            simhash=self._fingerprint(page.text) if page and self._fingerprint else None,
            canonical=canonical.url if canonical is not None else "",
        )

    def _bundles(
        self, task: Task, page: PageContent, targets: Sequence[Resolved | None], canonical: Discovered | None
    ) -> tuple[Bundle, ...]:
        links: tuple[Bundle, ...] = ()
        if not page.directives.nofollow:
            links = discovered(task.key, task.url, task.depth, page.links, targets)
            if canonical is not None:
                links = (*bundled([canonical]), *links)
        if page.requisites:
            # after the links: what is both is a page
            links += self._links.needed(
                task.key, task.url, task.depth, page.base, page.requisites, task.requisite + 1
            )
        return links

    def _canonical(self, task: Task, page: PageContent | None) -> Discovered | None:
        """The page that this one says it is a form of, as deep as itself; most name themselves, for 5 us."""
        if page is None or page.canonical in ("", task.url):
            return None
        url = normalise(page.canonical)
        if url is None or (key := self._keys.key_of(url)) == task.key:
            return None
        return Discovered(
            url=url, key=key, host=host_of(url), depth=task.depth, via=Via.CANONICAL, parent=task.key
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
        return f"{_CUT} {read:,} bytes: inflates beyond fetch.max_decoded or fetch.max_ratio"
    if read < len(decoded.body):
        return f"{_CUT} {read:,} bytes: longer than fetch.max_parsed"
    if decoded.mislabelled:
        return "not coded, although its headers say so"
    return "" if decoded.complete else "the coded body breaks off or is damaged"


def _breaks_off(decoded: Decoded) -> str:
    """Rules may be missing then; a page would be read as far as it goes."""
    return "" if decoded.complete or decoded.truncated else "the coded robots.txt breaks off"


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


def _escaped(location: str) -> str:
    """With the bytes that the server sent, as browsers do; header text is decoded byte by byte, and most
    servers mean UTF-8."""
    if location.isascii():
        return location
    return "".join(char if char < "\x80" else f"%{ord(char):02X}" for char in location)


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


def retry_after(value: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After header in either form (RFC 9110 10.2.3); None when it says nothing."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(min(int(value[:9]), _LONGEST_RETRY_AFTER))
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(0.0, at - now), _LONGEST_RETRY_AFTER)
