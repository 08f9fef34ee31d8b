"""The whole path of one URL on one screen: fetch, archive, read, and the outcome that settles it.

A step holds nothing between two URLs. It makes exactly one request, writes at most one record, and returns one
outcome; what becomes of it is the frontier's decision.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import NamedTuple

from skitter.archive.store import Archive
from skitter.clock import Clock
from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.fetch.curl import Fetcher
from skitter.frontier.base import Frontier
from skitter.model import (
    Copy,
    Discovered,
    Exchange,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    NotModified,
    Outcome,
    RecordAt,
    Redirected,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.parse.media import is_wanted, parse_content_type
from skitter.parse.page import read_page
from skitter.robots.rules import MAX_BYTES as MAX_ROBOTS_BYTES
from skitter.settings import Settings
from skitter.urls.canonical import host_of, key_of, normalise
from skitter.urls.links import LinkReader

_REDIRECTS = (301, 302, 303, 307, 308)
_THROTTLED = (429, 503)
_LONGEST_RETRY_AFTER = 7 * 86_400


class _Reading(NamedTuple):
    title: str = ""
    directives: str = ""
    links: tuple[Discovered, ...] = ()
    truncated: bool = False
    note: str = ""


class Step:
    def __init__(
        self, fetcher: Fetcher, archive: Archive, frontier: Frontier, clock: Clock, settings: Settings
    ) -> None:
        self._fetcher = fetcher
        self._archive = archive
        self._frontier = frontier
        self._clock = clock
        self._settings = settings
        self._links = LinkReader()
        # Bodies archived since the last commit: the frontier cannot know them yet.
        self._fresh_copies: dict[bytes, Copy] = {}

    async def run(self, lease: HostLease, task: Task) -> tuple[Outcome, Exchange | None]:
        answer = await self._fetcher.fetch(
            task.url, etag=task.etag, last_modified=task.last_modified, wanted=_wanted_for(task)
        )
        if isinstance(answer, Failed):
            now = self._clock.now()
            return _outcome(lease, task, now, now, answer), None
        digest = sha256(answer.body).digest()
        (known,) = await self._frontier.first_copies((digest,)) if answer.body else (None,)
        # Nothing is awaited from here on: a record and its outcome are never separated by a commit.
        record, copy = self._store(answer, digest, known)
        result = self._read(task, answer, digest, record, copy)
        return _outcome(lease, task, answer.sent_at, answer.ended_at, result, answer.address), answer

    def quiet(self) -> int:
        """Requests under way that hardly move."""
        return self._fetcher.lulls.quiet

    def committed(self) -> None:
        self._fresh_copies.clear()

    # -- archive

    def _store(self, exchange: Exchange, digest: bytes, known: Copy | None) -> tuple[RecordAt, Copy | None]:
        original = known or self._fresh_copies.get(digest) if exchange.body else None
        media_type = parse_content_type(exchange.header("content-type")).essence
        archived = self._archive.append(exchange, digest=digest, media_type=media_type, original=original)
        if original is not None or not exchange.body:
            return archived.record, None
        copy = Copy(exchange.url, exchange.sent_at, archived.record_id)
        self._fresh_copies[digest] = copy
        return archived.record, copy

    # -- what the answer means

    def _read(
        self, task: Task, exchange: Exchange, digest: bytes, record: RecordAt, copy: Copy | None
    ) -> Result:
        status = exchange.status
        if status in _REDIRECTS:
            return self._redirected(task, exchange, record)
        if status in _THROTTLED:
            wait = retry_after(exchange.header("retry-after"), exchange.ended_at)
            return Failed(
                kind=FailureKind.THROTTLED,
                detail=f"status {status}",
                status=status,
                retry_after=wait,
                size=len(exchange.body),
                record=record,
            )
        if status >= 500:
            return Failed(
                kind=FailureKind.SERVER_ERROR,
                detail=f"status {status}",
                status=status,
                size=len(exchange.body),
                record=record,
            )
        if task.kind is TaskKind.ROBOTS:
            return self._robots_read(exchange, record)
        if status == 304 and not (task.etag or task.last_modified):
            # it would pass for a page that was seen before and never was
            return Failed(kind=FailureKind.PROTOCOL, detail="304, unasked", status=status, record=record)
        if status == 304:
            return NotModified(record=record)
        return self._fetched(task, exchange, digest, record, copy)

    def _redirected(self, task: Task, exchange: Exchange, record: RecordAt) -> Result:
        location = exchange.header("location")
        target = normalise(_escaped(location), exchange.url) if location else None
        if target is None:
            return Failed(
                kind=FailureKind.BAD_REDIRECT,
                detail=location[:200] or "no Location",
                status=exchange.status,
                size=len(exchange.body),
                record=record,
            )
        found = Discovered(
            url=target,
            key=key_of(target),
            host=host_of(target),
            depth=task.depth,
            via=Via.REDIRECT,
            parent=task.key,
            hops=task.hops + 1,
        )
        return Redirected(
            status=exchange.status, location=target, target=found, size=len(exchange.body), record=record
        )

    def _robots_read(self, exchange: Exchange, record: RecordAt) -> Result:
        """RFC 9309 2.3.1: rules, or none where the host says there are none; anything else is no permission."""
        status, body = exchange.status, b""
        if not 200 <= status < 300 and not 400 <= status < 500:
            return Failed(
                kind=FailureKind.PROTOCOL,
                detail=f"robots.txt answered {status}",
                status=status,
                record=record,
            )
        if status < 300:
            coding = exchange.header("content-encoding")
            decoded = decode_body(exchange.body, coding, limit=MAX_ROBOTS_BYTES)
            if isinstance(decoded, Undecodable):
                return Failed(
                    kind=FailureKind.BAD_CODING, detail=decoded.reason, status=status, record=record
                )
            body = decoded.body
        return RobotsRead(status=status, body=body, size=len(exchange.body), record=record)

    def _fetched(
        self, task: Task, exchange: Exchange, digest: bytes, record: RecordAt, copy: Copy | None
    ) -> Result:
        content_type = ", ".join(value for name, value in exchange.headers if name == "content-type")
        found = _Reading()
        if exchange.status == 200 and exchange.body:
            found = self._page(task, exchange, content_type)
        return Fetched(
            status=exchange.status,
            content_type=content_type[:200],
            digest=digest,
            size=len(exchange.body),
            truncated=exchange.truncated or found.truncated,
            record=record,
            copy=copy,
            etag=exchange.header("etag")[:500],
            last_modified=exchange.header("last-modified")[:100],
            title=found.title,
            directives=found.directives,
            links=found.links,
            note="cut at fetch.max_body" if exchange.truncated else found.note,
        )

    def _page(self, task: Task, exchange: Exchange, content_type: str) -> _Reading:
        limits = self._settings.fetch
        coding = ",".join(value for name, value in exchange.headers if name == "content-encoding")
        decoded = decode_body(exchange.body, coding, limit=limits.max_decoded, max_ratio=limits.max_ratio)
        if isinstance(decoded, Undecodable):
            return _Reading(note=f"not decoded: {decoded.reason}")
        page = read_page(
            decoded.body,
            url=exchange.url,
            content_type=content_type,
            robots_tags=tuple(value for name, value in exchange.headers if name == "x-robots-tag"),
            product=self._settings.identity.product,
            with_anchors=False,
        )
        links = () if page.directives.nofollow else page.links
        found = self._links.discover(task.key, task.url, task.depth, page.base, links)
        return _Reading(page.title, page.directives.text, found, decoded.truncated, _note(decoded))


def _note(decoded: Decoded) -> str:
    if decoded.truncated:
        return f"read to {len(decoded.body):,} bytes: inflates beyond fetch.max_decoded or fetch.max_ratio"
    if decoded.mislabelled:
        return "not coded, although its headers say so"
    return "" if decoded.complete else "the coded body breaks off or is damaged"


def _escaped(location: str) -> str:
    """With the bytes that the server sent, as browsers do; header text is decoded byte by byte, and most
    servers mean UTF-8."""
    if location.isascii():
        return location
    return "".join(char if char < "\x80" else f"%{ord(char):02X}" for char in location)


def _wanted_for(task: Task) -> Callable[[int, str], bool]:
    return _any_type if task.kind is TaskKind.ROBOTS else _wanted_page


def _any_type(status: int, content_type: str) -> bool:
    return True


def _wanted_page(status: int, content_type: str) -> bool:
    """Error pages are kept whatever they claim to be; they are small and say what happened."""
    return status != 200 or is_wanted(parse_content_type(content_type).essence)


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
