"""What an answer means: which result of its task it is, and the links that it leads to.

Between reading a page and packing it, in `step.py`. Every answer of the web means something: what it does wrong
is a `Failed` with its kind. Makes no request and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime

import msgspec

from skitter.archive.digests import Digests
from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.fetch.head import Fields
from skitter.frontier.bundles import bundled
from skitter.model import (
    Bundle,
    Discovered,
    Exchange,
    Failed,
    FailureKind,
    Fetched,
    NotModified,
    Redirected,
    Result,
    RobotsRead,
    Task,
    TaskKind,
    Via,
)
from skitter.parse.page import PageContent
from skitter.robots.rules import MAX_BYTES as MAX_ROBOTS_BYTES
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader, Resolved, discovered

CUT = "read to"
_REDIRECTS = (301, 302, 303, 307, 308)
_THROTTLED = (429, 503)
_LONGEST_RETRY_AFTER = 7 * 86_400


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


class Meaning:
    """`fingerprint` is None where near-duplicates are of no interest."""

    def __init__(
        self, keys: Keys, links: LinkReader, fingerprint: Callable[[str], int | None] | None
    ) -> None:
        self._keys = keys
        self._links = links
        self._fingerprint = fingerprint

    def of(self, task: Task, answer: Answer, reading: Reading) -> Result:
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
            truncated=exchange.truncated or note.startswith(CUT),
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


def _breaks_off(decoded: Decoded) -> str:
    """Rules may be missing then; a page would be read as far as it goes."""
    return "" if decoded.complete or decoded.truncated else "the coded robots.txt breaks off"


def _escaped(location: str) -> str:
    """With the bytes that the server sent, as browsers do; header text is decoded byte by byte, and most
    servers mean UTF-8."""
    if location.isascii():
        return location
    return "".join(char if char < "\x80" else f"%{ord(char):02X}" for char in location)


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
