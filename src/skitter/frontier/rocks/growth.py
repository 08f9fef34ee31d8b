"""Sections of a host that grow: what their pages led to, and the lines that look for their end.

Runs in the turn that settles a page, after its links were admitted, for one page in four; while a host is being
sounded for every one, and its leases are short, so that a line costs no more pages than it is long. A line is a
URL of the section that goes to the head of its host's queue. On a section with an end that changes nothing
but the order. Never fetches, and never admits.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.bundles import keys_of, urls_of
from skitter.frontier.rocks import verdicts
from skitter.frontier.rocks.kinds import subject_key
from skitter.frontier.rocks.rows import HostRow, UrlRow
from skitter.frontier.rocks.subjects import evidence, evidence_of, write
from skitter.frontier.rocks.turn import Turn
from skitter.model import Bundle, Discovered, UrlKey, UrlState
from skitter.schedule.priority import SEED_PRIORITY, tier_of
from skitter.schedule.soundings import (
    LINES,
    ONE_IN,
    SELDOM,
    account_growth,
    forget,
    has_an_end,
    is_endless,
    is_growing,
    leads_on,
    lower,
    met_again,
    wants_line,
)
from skitter.schedule.traps import MARK, Evidence, Level, is_contradicted
from skitter.urls.canonical import host_id
from skitter.urls.skeleton import section

# A host with fewer pages is small, whatever it leads to.
_GROWN_UP = 16
# Pages of a host after which a line that has not come up is lost: denied, refused or failed.
_LOST = 32
# As many URLs are leased at once of a host that is being sounded, those of this tier first.
SOUNDED = LINES
LINE_TIER = tier_of(SEED_PRIORITY)


def is_looked_at(host: HostRow, row: UrlRow) -> bool:
    """Samples of what was stopped always are: they may contradict the verdict."""
    if row.requisite:
        return False
    return bool(host.sounding or row.trap) or (host.pages >= _GROWN_UP and host.pages % ONE_IN == 0)


def section_key(ident: bytes, name: str) -> bytes:
    return subject_key(ident, "section " + name)


def learn(
    turn: Turn,
    host: HostRow,
    key: bytes,
    row: UrlRow,
    bundles: Sequence[Bundle],
    fresh: Sequence[Discovered],
    told_inside: bytes,
) -> None:
    """`bundles` are all its links, `fresh` those that nobody knew before; `told_inside` is what a worker left out
    (`Fetched`)."""
    is_sounded = host.sounding > 0
    host.sounding -= is_sounded
    name = section(row.url)
    subject = section_key(host_id(host.host), name)
    new = _inside(fresh, name)
    seen = evidence(turn.book, subject)
    if seen is None:
        # a section begins with a page that leads on: most pages right under the root never do
        if not new:
            return
        seen = evidence_of(turn.book, subject, name[len(host.host) :] + "**", Level.SECTION)
    if has_an_end(seen):
        if host.pages % SELDOM:
            return
        forget(seen)
    if seen.lines and not is_sounded:
        seen.lines.clear()
    is_line = key in seen.lines
    if row.status < 300 or is_line:
        elsewhere = not is_line and is_growing(seen) and _is_from_elsewhere(turn, row, name)
        met = met_again(seen, _known(bundles, new, name, row, told_inside)) if leads_on(seen) else None
        account_growth(seen, len(new), met, from_elsewhere=elsewhere)
        _sound(turn, host, key, seen, new)
        write(turn, subject, seen)
    _judge(turn, host, subject, seen, row.url)


def _inside(links: Sequence[Discovered], name: str) -> list[Discovered]:
    return [link for link in links if not link.requisite and link.url.startswith(name)]


def _known(
    bundles: Sequence[Bundle], new: Sequence[Discovered], name: str, row: UrlRow, told_inside: bytes
) -> list[bytes]:
    """Marks of the pages of the section that it links and that were known, but not because it was found through
    them: its parent, and the folders it lies in."""
    others = {row.parent, *[link.key for link in new]}
    known = [
        key[-MARK:]
        for bundle in bundles
        if not bundle.requisite
        for key, url in zip(keys_of(bundle), urls_of(bundle), strict=True)
        if url.startswith(name) and key not in others and not row.url.startswith(url)
    ]
    told = [told_inside[at : at + MARK] for at in range(0, len(told_inside), MARK)]
    return known + [mark for mark in told if not row.parent or mark != row.parent[-MARK:]]


def _is_from_elsewhere(turn: Turn, row: UrlRow, name: str) -> bool:
    """Whether it was found in another section, on another host or in a sitemap."""
    above = turn.url(row.parent) if row.parent else None
    return above is None or not above.url.startswith(name)


def _sound(turn: Turn, host: HostRow, key: bytes, seen: Evidence, new: list[Discovered]) -> None:
    if key in seen.lines:
        below = _next(turn, new)
        lower(seen, key, len(new), below)
        host.sounding = _LOST if seen.lines else 0
    elif new and wants_line(seen) and (below := _next(turn, new)) is not None:
        seen.lines[below] = 0
        host.sounding = _LOST
    else:
        return
    if below is not None and below in seen.lines and (row := turn.url(below)) is not None:
        turn.reprioritise(below, row, SEED_PRIORITY)


def _next(turn: Turn, new: list[Discovered]) -> UrlKey | None:
    """The one that goes on with a line: by its key, so any; the limit of depth may have refused all."""
    for key in sorted(link.key for link in new):
        row = turn.url(key)
        if row is not None and row.state == UrlState.QUEUED:
            return key
    return None


def _judge(turn: Turn, host: HostRow, subject: bytes, seen: Evidence, url: str) -> None:
    if is_contradicted(seen):
        verdicts.end(turn, seen.trap, verdicts.CONTRADICTED)
    if not is_endless(seen):
        return
    why = (
        f"{seen.grown} of {seen.fetched} pages looked at led to more of the same, {seen.brought:,} in all, "
        f"with {seen.again:,} links to what was known of it; {seen.bottomless} ways down found no end"
    )
    seen.lines.clear()
    verdicts.fall(turn, subject, seen, host.host, url, why)
