"""What the synthetic web can do to a crawler, and on how many hosts it does it.

The vocabulary of `plan.py`: features of pages, kinds of robots.txt with the paths that each admits and
refuses, and the usual shares. Values only; which host gets what is the plan's decision.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Feature(StrEnum):
    """Something a host may have, each on a settable share of the hosts."""

    REDIRECT = "redirect"
    REDIRECT_ACROSS = "redirect_across"
    CHAIN = "chain"
    LOOP = "loop"
    LONG_CHAIN = "long_chain"
    MISSING = "missing"
    GONE = "gone"
    FLAKY = "flaky"
    BROKEN = "broken"
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"
    UNTYPED = "untyped"
    DUPLICATE = "duplicate"
    NOFOLLOW_LINK = "nofollow_link"
    NOFOLLOW_META = "nofollow_meta"
    NOFOLLOW_HEADER = "nofollow_header"
    FRAMESET = "frameset"
    AREA = "area"
    IFRAME = "iframe"
    GUEST = "guest"
    BASE = "base"
    LATIN1 = "latin1"
    CHUNKED = "chunked"
    GZIP = "gzip"
    ODD_LINKS = "odd_links"
    URL_FORMS = "url_forms"


class RobotsKind(StrEnum):
    """How a host answers for its robots.txt."""

    ABSENT = "absent"
    EMPTY = "empty"
    ALLOW_ALL = "allow_all"
    DISALLOW = "disallow"
    NAMED = "named"
    DELAY = "delay"
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"
    MOVED = "moved"
    ELSEWHERE = "elsewhere"
    BOM_CRLF = "bom_crlf"
    LONGER_ALLOW = "longer_allow"
    WILDCARD = "wildcard"


class Kind(StrEnum):
    """What a URL turns out to be when it is requested."""

    PAGE = "page"
    REDIRECT = "redirect"
    MISSING = "missing"
    GONE = "gone"
    FLAKY = "flaky"
    BROKEN = "broken"
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"
    UNTYPED = "untyped"
    DUPLICATE = "duplicate"
    NOFOLLOW_META = "nofollow_meta"
    NOFOLLOW_HEADER = "nofollow_header"
    FRAMESET = "frameset"
    SITEMAP = "sitemap"


class RuledPath(msgspec.Struct, frozen=True):
    """A path on which a robots.txt rules: may the crawler that it names fetch it, and may any other?"""

    path: str
    named: bool
    others: bool


class Rules(msgspec.Struct, frozen=True):
    """One robots.txt: its bytes, the paths under it that are linked, and whether it asks for a delay."""

    body: bytes
    ruled_paths: tuple[RuledPath, ...] = ()
    delays: bool = False


NAMED_PRODUCT = "skitter"
MOVED_ROBOTS = "/rules/robots.txt"

_OPEN = (RuledPath("/private/a.html", True, True),)
_CLOSED = (
    RuledPath("/private/a.html", False, False),
    RuledPath("/private/", False, False),
    RuledPath("/privately.html", True, True),
)
_DISALLOW = Rules(b"User-agent: *\nDisallow: /private/\n", _CLOSED)

# UNAVAILABLE and ELSEWHERE have no row: the one refuses every path, the other is the row of another host.
RULES = {
    RobotsKind.ABSENT: Rules(b""),
    RobotsKind.FORBIDDEN: Rules(b"", _OPEN),
    RobotsKind.EMPTY: Rules(b"", _OPEN),
    RobotsKind.ALLOW_ALL: Rules(b"User-agent: *\nDisallow:\n", _OPEN),
    RobotsKind.DISALLOW: _DISALLOW,
    RobotsKind.MOVED: _DISALLOW,
    RobotsKind.DELAY: Rules(b"User-agent: *\nCrawl-delay: %s\nDisallow: /private/\n", _CLOSED, delays=True),
    RobotsKind.BOM_CRLF: Rules(b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /private/\r\n", _CLOSED),
    RobotsKind.NAMED: Rules(
        b"User-agent: *\nDisallow: /lounge/\n\nUser-agent: Skitter\nDisallow: /staff/\n",
        (RuledPath("/staff/a.html", False, True), RuledPath("/lounge/a.html", True, False)),
    ),
    RobotsKind.LONGER_ALLOW: Rules(
        b"User-agent: *\nDisallow: /docs/\nAllow: /docs/public/\n",
        (RuledPath("/docs/a.html", False, False), RuledPath("/docs/public/a.html", True, True)),
    ),
    RobotsKind.WILDCARD: Rules(
        b"User-agent: *\nDisallow: /*.cgi$\nDisallow: /*/print/\n",
        (
            RuledPath("/run.cgi", False, False),
            RuledPath("/run.cgi.html", True, True),
            RuledPath("/x/print/a.html", False, False),
            RuledPath("/print/a.html", True, True),
        ),
    ),
}

FEATURE_SHARES: dict[Feature, float] = dict.fromkeys(Feature, 0.2) | {
    Feature.URL_FORMS: 1.0,
    Feature.ODD_LINKS: 0.5,
    Feature.GZIP: 0.5,
    Feature.CHUNKED: 0.5,
    Feature.LONG_CHAIN: 0.1,
    Feature.LOOP: 0.1,
    Feature.FLAKY: 0.1,
    Feature.BROKEN: 0.05,
}
ROBOTS_SHARES: dict[RobotsKind, float] = dict.fromkeys(RobotsKind, 0.05) | {
    RobotsKind.ABSENT: 0.3,
    RobotsKind.DISALLOW: 0.1,
    RobotsKind.UNAVAILABLE: 0.03,
}
GENTLE_SHARES: dict[Feature, float] = dict.fromkeys(Feature, 0.08) | {
    Feature.URL_FORMS: 1.0,
    Feature.ODD_LINKS: 0.3,
    Feature.GZIP: 0.3,
    Feature.CHUNKED: 0.3,
}
