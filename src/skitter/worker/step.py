"""The whole path of one URL on one screen: fetch, read, make its result, pack, and the delivery that settles it.

A step holds nothing between two URLs. It makes exactly one request, packs at most one record, and returns one
delivery; the committer decides what becomes of it. What differs between kinds of tasks is in `kinds.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from skitter.archive.digests import digests_of
from skitter.archive.facts import Facts
from skitter.archive.packing import Packer, Parcel
from skitter.archive.schema import ITEMS
from skitter.clock import Clock
from skitter.committer.work_source import Delivery
from skitter.fetch.base import Fetcher, Sending
from skitter.fetch.response_head import Fields, fields_of
from skitter.model import (
    Exchange,
    Failed,
    Fetched,
    HostLease,
    Outcome,
    Redirected,
    Result,
    Task,
)
from skitter.parse.media import HTML, parse_content_type
from skitter.parse.readers import STANDARD, Readers
from skitter.parse.walls import find_wall
from skitter.schedule.rendering import SCRIPTED, SHELL, STATIC
from skitter.settings import OptOutSettings, Settings
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader, list_targets
from skitter.worker.cpu_turns import CpuTurns
from skitter.worker.kinds import KINDS, Document, KindRow, make_result
from skitter.worker.opt_outs import OBEY, OptOuts, is_withheld
from skitter.worker.reading.body_filter import PageFilter, take_any_body
from skitter.worker.reading.page_reader import PageReader
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.reading.sitemap_files import SitemapFiles
from skitter.worker.results import Answer, Reading, ResultMaker

if TYPE_CHECKING:
    from skitter.committer.render_source import RenderSource
    from skitter.identities.session import Sessions
    from skitter.urls.rewriting import Rewriting
    from skitter.worker.extractors import Extractors
    from skitter.worker.focusing import Focus
    from skitter.worker.page_rules import PageRules
    from skitter.worker.renders.rendering import Rendering

_NOTHING_READ = Reading()
_UNREAD, _READ_AS_PDF = Document.UNREAD, Document.READ_AS_PDF
_READ_AS_SITEMAP = Document.READ_AS_SITEMAP


class Step:
    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        settings: Settings,
        pdfs: PdfReader,
        keys: Keys | None = None,
        readers: Readers = STANDARD,
        extractors: Extractors | None = None,
        sessions: Sessions | None = None,
        focus: Focus | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._sessions = sessions
        self._focus = focus
        self._clock = clock
        # of a crawl without users' code nothing of it is loaded
        self._packer = Packer(settings.archive, (ITEMS,) if extractors is not None else ())
        readers = readers if extractors is None else extractors.readers
        self._settings = settings
        self._keys = keys = keys or Keys(settings.keys)
        rewrite = settings.rules.rewrite
        links = LinkReader(keys, _rewriting(rewrite) if rewrite else None)
        self._rules = _page_rules(settings)
        self._cpu_turns = CpuTurns(clock)
        self._pages = PageFilter(readers)
        keeps_links = "links" in settings.archive.tables
        self._tells_links = keeps_links or settings.archive.metadata
        fingerprint = _simhash() if settings.crawl.near_duplicates else None
        needs_text = fingerprint is not None or "text" in settings.archive.tables or focus is not None
        self._reader = PageReader(
            settings,
            links,
            pdfs,
            readers,
            needs_text=needs_text,
            needs_anchors=keeps_links or focus is not None,
        )
        rank = None if focus is None else focus.rank_named
        self._sitemaps = SitemapFiles(settings.sitemaps, keys, clock, self._cpu_turns, rank)
        self._longest = settings.sitemaps.max_body
        follows_links = settings.sitemaps.use != "only"
        self._results = ResultMaker(
            keys,
            links,
            fingerprint,
            follows_links=follows_links,
            reads_promises=settings.revisit.keep_fresh,
        )
        self._extraction = extractors.joined_by(self._reader) if extractors is not None else None
        self._opt_outs = OptOuts(settings.opt_outs)
        self._looks_for_walls = settings.walls.mode != "off"
        self._refuses_walls = settings.walls.mode == "on"
        self._obeys = any(
            getattr(settings.opt_outs, name) == OBEY for name in OptOutSettings.__struct_fields__
        )

    def prepare(self, lease: HostLease) -> None:
        """The lease will be served soon: what can be found out without asking the host, is."""
        self._fetcher.prepare(lease.tasks[0].url)

    async def run(
        self, lease: HostLease, task: Task, may_start: Callable[[], bool] = lambda: True
    ) -> Delivery:
        """`may_start` is asked right before the request goes out; raises `TooLate` when it says no."""
        row = KINDS[task.kind]
        session = None if self._sessions is None else self._sessions.of(lease)
        form = task.form.encode() if task.form else None
        fetch: Callable[..., Awaitable[Exchange | Failed]] = self._fetcher.fetch
        if session is not None:
            fetch = partial(session.fetch, is_robots=row.is_rules, form=form)
        elif form is not None:
            fetch = partial(fetch, sending=_posting(form))
        came = await fetch(
            task.url,
            etag=task.etag,
            last_modified=task.last_modified,
            verify_tls=lease.verify_tls,
            unwanted=take_any_body if row.takes_any_body else self._pages.judge,
            may_start=may_start,
            max_body=self._longest if row.is_long else 0,
        )
        if isinstance(came, Failed):
            now = self._clock.now()
            left = None if session is None else session.changes()
            return Delivery(_outcome(lease, task, now, now, came, session=left))
        try:
            answer = answer_of(came)
            document = row.document(task, answer)
            pdf = await self._reader.read_pdf(answer) if document is _READ_AS_PDF else None
            listed = await self._sitemaps.read(task, answer) if document is _READ_AS_SITEMAP else None
            # Last: a turn that was taken before a wait would be over when the page is read.
            if not self._cpu_turns.try_take():
                await self._cpu_turns.take()
            reading = listed or (
                _NOTHING_READ if document is _UNREAD else row.read(self._reader, answer, pdf)
            )
            if self._looks_for_walls and row.is_extracted and not lease.ignore_walls:
                reading = self._unless_walled(task, answer, reading)
            if lease.signal or lease.tdm:
                reading = self._opt_outs.said(lease, task, reading)
            kept = answer
            if self._obeys:
                kept, reading = self._opt_outs.obeyed(answer, reading)
            if self._extraction is not None and row.is_extracted and not is_withheld(reading):
                reading = await self._extraction.extract(task, answer, reading)
                if not self._cpu_turns.try_take():
                    await self._cpu_turns.take()
            if self._focus is not None and row.is_extracted:
                reading = self._focus.rank(task, reading)
            if self._rules is not None and row.is_extracted:
                reading, kept = self._rules.followed(task, reading), self._rules.kept(task, kept, reading)
            identity = "" if session is None else session.name_for(is_robots=row.is_rules)
            result, parcel = self._packed(row, task, answer, kept, reading, identity)
            if lease.weighs_rendering and row.is_extracted and kept is answer:
                result = _with_looks(result, reading)
        finally:
            self._fetcher.release(came)
        left = None if session is None else session.changes()
        outcome = _outcome(lease, task, came.sent_at, came.ended_at, result, came.address, left, reading.cpu)
        return Delivery(outcome, parcel, came.reused_connection, reading.extracted)

    def _packed(
        self, row: KindRow, task: Task, answer: Answer, kept: Answer, reading: Reading, identity: str
    ) -> tuple[Result, Parcel]:
        """`kept` is as much of the answer as is archived."""
        result = make_result(row, self._results, task, answer, reading)
        parcel = self._packer.pack(
            kept.exchange,
            kept.digests,
            media_type=answer.declared if answer.first is answer.joined else _essence(answer.first),
            facts=self._facts(row.name, task, result, _as_kept(reading, answer, kept), identity),
            stands_for=task.digest if answer.exchange.status == 304 else b"",
            headers=answer.first,
        )
        # an absent body is no copy of any other
        return result, parcel if kept is answer else replace(parcel, digest=b"")

    def _unless_walled(self, task: Task, answer: Answer, reading: Reading) -> Reading:
        """What stands in place of a page is no page: it brings no links, no text and no fingerprint."""
        page = reading.page
        if page is None or page.media_type != HTML:
            return reading
        found = find_wall(
            reading.body,
            url=task.url,
            title=page.title,
            text=page.text,
            links=len(page.links),
            headers=answer.exchange.headers,
        )
        if found is None:
            return reading
        note = f"looks like a {found.words()}"
        return Reading(note=note, wall=found) if self._refuses_walls else replace(reading, note=note)

    def open_rendering(
        self, source: RenderSource, name: str, deliver: Callable[[Delivery], None]
    ) -> Rendering:
        """What renders pages; a crawl of which none is to be rendered loads nothing of it."""
        from skitter.worker.renders.rendered_pages import RenderedPages
        from skitter.worker.renders.rendering import Rendering

        pages = RenderedPages(
            self._reader,
            self._results,
            self._packer,
            self._keys,
            tells_links=self._tells_links,
            extraction=self._extraction,
            focus=self._focus,
            rules=self._rules,
        )
        return Rendering(source, pages, self._settings, self._clock, name, deliver)

    def quiet(self) -> int:
        """Requests under way that hardly move."""
        return self._fetcher.idle

    # -- what is told of it

    def _facts(self, kind: str, task: Task, result: Result, reading: Reading, identity: str) -> Facts:
        """What the archive's tables and metadata records tell beside the exchange itself."""
        page = reading.page
        if page is None:
            return Facts(
                kind=kind,
                depth=task.depth,
                redirect=result.location if isinstance(result, Redirected) else "",
                failure=result.kind if isinstance(result, Failed) else "",
                identity=identity,
            )
        return Facts(
            kind=kind,
            depth=task.depth,
            media_type=page.media_type,
            charset=page.charset.lower(),
            language=page.language,
            title=page.title,
            directives=page.directives.text,
            said=page.directives,
            text=page.text,
            links=list_targets(page.links, reading.targets) if self._tells_links else (),
            simhash=result.simhash if isinstance(result, Fetched) else None,
            items=reading.items,
            identity=identity,
            score=reading.score,
        )


def _with_looks(result: Result, reading: Reading) -> Result:
    """Whether its scripts may bring more than there is."""
    page = reading.page
    if not isinstance(result, Fetched) or page is None or page.media_type != HTML or is_withheld(reading):
        return result
    if b"<script" not in reading.body and b"<SCRIPT" not in reading.body:
        return replace(result, looks=STATIC)
    from skitter.parse.shell import score_shell

    found = score_shell(reading.body, page)
    return replace(result, looks=f"{SHELL}: {', '.join(found.signs)}" if found.is_shell else SCRIPTED)


def _posting(form: bytes) -> Sending:
    """On a connection of its own: one that another request left open may be dead, and libcurl would send the form
    a second time by itself."""
    return Sending(form=form, is_once=True)


def _rewriting(rules: tuple[str, ...]) -> Rewriting:
    from skitter.urls.rewriting import Rewriting

    return Rewriting(rules)


def _page_rules(settings: Settings) -> PageRules | None:
    if not (settings.rules.follow or settings.rules.keep):
        return None
    from skitter.worker.page_rules import PageRules

    return PageRules(settings.rules)


def _as_kept(reading: Reading, answer: Answer, kept: Answer) -> Reading:
    """What the tables have of it: of a page without its body no text."""
    if kept is answer or reading.page is None:
        return reading
    return replace(reading, page=replace(reading.page, text=""))


def _simhash() -> Callable[[str], int | None]:
    # without the kernel numpy comes with it, in 0.1 s: commands that only look on do without
    from skitter.parse.fingerprints.fingerprint import simhash

    return simhash


def answer_of(exchange: Exchange) -> Answer:
    digests = digests_of(exchange)
    first, joined = fields_of(exchange.headers)
    return Answer(exchange, first, joined, _essence(joined), digests)


def _essence(fields: Fields) -> str:
    return parse_content_type(fields.get("content-type", "")).essence


def _outcome(
    lease: HostLease,
    task: Task,
    sent_at: float,
    ended_at: float,
    result: Result,
    address: str = "",
    session: bytes | None = None,
    cpu: float = 0.0,
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
        session=session,
        cpu=cpu,
    )
