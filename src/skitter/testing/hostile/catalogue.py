"""All misbehaviours there are, by name, and the page of the documentation that lists them.

python -m skitter.testing.hostile --page > docs/hostile-web.md
"""

from __future__ import annotations

from skitter.testing.hostile import codings, framing, heads, hosts, pages, redirects, sitemaps
from skitter.testing.hostile.case import Case

GROUPS: dict[str, tuple[Case, ...]] = {
    "Status lines": heads.STATUS_LINES,
    "Headers": heads.HEADERS,
    "Answers that should have no body": heads.BODILESS,
    "Connections": heads.CONNECTIONS,
    "Lengths": framing.LENGTHS,
    "Chunks": framing.CHUNKS,
    "Redirects": (*redirects.CASES, redirects.PONG),
    "Content codings": codings.CASES,
    "Pages": pages.CASES,
    "Retry-After": hosts.RETRY_AFTER,
    "robots.txt": hosts.ROBOTS,
    "Sitemaps": sitemaps.CASES,
    "Hosts that cannot be reached": hosts.UNREACHABLE,
}
CATALOGUE: dict[str, Case] = {case.name: case for group in GROUPS.values() for case in group}
FOUND_ONLY = frozenset({redirects.PONG.name})
"""Cases to which others lead; they are no seeds."""

_INTRO = """\
<!-- Written by `python -m skitter.testing.hostile --page`; change the code, not this page. -->

# The hostile web

What servers do to crawlers, and how a crawl of each ends. `python -m skitter.testing.hostile` serves all of it
on loopback, each misbehaviour as a host of its own (`http://NAME.hostile.test/`); a test crawls them and compares
every ending with this page.

- **ends as** is the result of the last fetch in the ledger, as `skitter explain` shows it: a status, or the kind
  of failure (docs/failures.md), with what the ledger says of the body.
- **state** is where the URL stands when the crawl is over (docs/url-lifecycle.md). A page whose host's robots.txt
  cannot be had stays queued: it is never asked for, and its host is asked again after its quarantine.
- **requests** is how often the page is asked for.

A body that a limit cuts is kept and read as far as it goes, and counts as a page: on the wire at `fetch.max_body`
(the record in the archive says `WARC-Truncated: length`), and decoded at `fetch.max_decoded` or `fetch.max_ratio`
(the record is whole, since it holds the coded bytes; the first megabyte is read, and the ledger says so). It
is not tried again: it would not get shorter. Of any page the first `fetch.max_parsed` bytes are read.
"""


def reference_page() -> str:
    parts = [_INTRO]
    for title, cases in GROUPS.items():
        parts.append(f"## {title}\n\n| host | what it does | ends as | state | requests |\n")
        parts.append("| --- | --- | --- | --- | --- |\n")
        parts += [_row(case) for case in cases]
        parts.append("\n")
    return "\n".join((parts[0], "".join(parts[1:]).rstrip("\n"))) + "\n"


def _row(case: Case) -> str:
    requests = "none" if case.ends.never else str(case.ends.requests or "`retry.attempts`")
    where = f"`{case.name}`" if case.watched == "/" else f"`{case.name}`, at `{case.watched}`"
    cells = (where, case.about, _ends_as(case), case.ends.state.replace("_", " "), requests)
    return f"| {' | '.join(cells)} |\n"


def _ends_as(case: Case) -> str:
    ends = case.ends
    if ends.never:
        return f"not asked; robots.txt fails as `{ends.detail}`"
    if ends.result == "failed":
        return f"`{ends.detail}`" + (f", status {ends.status}" if ends.status else "")
    words = "redirect" if ends.result == "redirected" else "page"
    return f"{words}, status {ends.status}" + (f"; {ends.detail}" if ends.detail else "")
