"""From a page of the plan to the bytes that the synthetic web answers with.

Pure. Bodies are put together from paragraphs that are written once per process, because a crawl asks for
each page once and no cache would help it. Links are written in the forms of the wild, every one of which a
WHATWG parser folds to the URL that the plan means.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache, lru_cache
from html import escape
from http import HTTPStatus
from random import Random
from urllib.parse import unquote

from skitter.testing.features import MOVED_ROBOTS, Feature, Kind, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.sites import SITEMAP, Link, Page, Site, mix

LAST_MODIFIED = "Sun, 01 Feb 2026 08:00:00 GMT"
CHUNK = 4096
_XMLNS = "http://www.sitemaps.org/schemas/sitemap/0.9"
WORDS = """about above acre after air along amber anchor answer arrow ash autumn bank barley basin beacon bell
birch boat border bramble branch bread bridge brook cabin candle canvas carry cedar chalk channel chart cliff
cloud coast copper corner cotton county creek crossing current dawn delta distance door drift early earth
eastern ember engine evening fair falcon farm feather ferry field finch flint flood forest ford garden gate
glass grain granite gravel green grove gull harbour harvest hazel heath hedge heron hill hollow horizon inlet
iron island ivory journey juniper keel kettle lantern larch lark ledge letter light linen lock maple market
marsh meadow merchant mill mist moor morning moss narrow north oak oar orchard otter paper passage path pebble
pier pine plain plough pond quarry quiet rail rain raven reed ridge river road robin root rope saddle salt
sand season shelter shore signal silver slate slope snow south spring steady stone storm stream summer tide
timber tower trail valley village walnut water weather western wheat willow wind winter wood yard""".split()

ODD_LINKS = """<p><a href="mailto:office@web.test">mail</a> <a href="tel:+000">call</a>
<a href="javascript:void(0)">menu</a> <a href="data:text/html,hello">inline</a> <a name="here">no href</a>
<a href="http://">broken</a> <a href="http://[::1">broken</a> <a href="http://h00000.web.test:99999/">broken</a>
<a href="http://exa mple.test/">broken</a> <a href="ftp://files.web.test/a">files</a></p>
<!-- <a href="/trap/comment.html">not a link</a> -->
<script>document.write("<a href='/trap/script.html'>not a link<\\/a>")</script>
<form action="/trap/search"><input name="q"></form><img src="/trap/logo.png" alt="">
"""


class Answer:
    """A response without its Date: status, header lines after it, and the body as it goes over the wire."""

    __slots__ = ("body", "etag", "head", "status")

    def __init__(
        self, status: int, headers: list[tuple[str, str]], body: bytes, *, etag: str = "", bare: bool = False
    ) -> None:
        self.status = status
        self.body = body
        self.etag = etag.encode()
        if not bare and not any(name == "Transfer-Encoding" for name, _ in headers):
            headers = [*headers, ("Content-Length", str(len(body)))]
        if etag:
            headers = [*headers, ("ETag", etag), ("Last-Modified", LAST_MODIFIED)]
        self.head = "".join(f"{name}: {value}\r\n" for name, value in headers).encode() + b"\r\n"

    def on_wire(self, date: bytes, *, close: bool = False) -> bytes:
        ending = b"Connection: close\r\n" if close else b""
        return b"%sDate: %s\r\n%s%s%s" % (status_line(self.status), date, ending, self.head, self.body)


@cache
def status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: synthetic-web\r\n".encode()


def plain_answer(status: int, text: str = "") -> Answer:
    body = (text or f"{status} {HTTPStatus(status).phrase}\n").encode()
    return Answer(status, [("Content-Type", "text/plain; charset=utf-8")], body)


def error_answer(status: int) -> Answer:
    """An error page has links too; a crawler follows none of them."""
    phrase = HTTPStatus(status).phrase
    body = f'<html><body><h1>{status} {phrase}</h1><a href="/trap/error.html">back</a></body></html>'.encode()
    return Answer(status, [("Content-Type", "text/html; charset=utf-8")], body)


class Renderer:
    def __init__(self, plan: WebPlan) -> None:
        self.plan = plan

    def robots(self, host: int, path: str) -> Answer:
        """The answer for /robots.txt, or for the place that it was moved to."""
        plan, kind = self.plan, self.plan.robots_kind(host)
        if kind is RobotsKind.MOVED and path != MOVED_ROBOTS:
            return self._redirect(301, MOVED_ROBOTS)
        if kind is RobotsKind.ELSEWHERE:
            return self._redirect(302, plan.url(plan.hub(host), "/robots.txt"))
        statuses = {RobotsKind.ABSENT: 404, RobotsKind.FORBIDDEN: 403, RobotsKind.UNAVAILABLE: 500}
        rules = plan.rules(host)
        if kind in statuses or rules is None:
            return plain_answer(statuses.get(kind, 500))
        body = rules.body % str(plan.crawl_delay).encode() if rules.delays else rules.body
        if plan.robots_names_sitemap(host):
            body += f"\nSitemap: {plan.url(host, SITEMAP)}\n".encode()
        return Answer(200, [("Content-Type", "text/plain")], body)

    def page(self, host: int, page: Page, *, gzipped: bool) -> Answer:
        """The page when it succeeds; `gzipped` when the client accepts that coding."""
        match page.kind:
            case Kind.REDIRECT:
                return self._redirect(page.status, self._location(host, page))
            case Kind.MISSING | Kind.GONE | Kind.BROKEN:
                return error_answer(page.status)
            case Kind.TEXT:
                text = f"Notes of {self.plan.url(host, page.path)}\n\nSee http://h00000.web.test/trap/text.html\n"
                return plain_answer(200, text + _prose(mix(host, page.number), 3000))
            case Kind.PDF:
                return Answer(200, [("Content-Type", "application/pdf")], b"%PDF-1.4\n" + _noise()[:60_000])
            case Kind.SITEMAP:
                return self._sitemap(host, page)
            case Kind.IMAGE:
                return Answer(200, [("Content-Type", "image/png")], b"\x89PNG\r\n\x1a\n" + _noise())
        return self._html(host, page, gzipped)

    def _redirect(self, status: int, location: str) -> Answer:
        body = f'<html><body>Moved to <a href="{escape(location)}">there</a></body></html>'.encode()
        return Answer(status, [("Content-Type", "text/html"), ("Location", location)], body)

    def _location(self, host: int, page: Page) -> str:
        assert page.target is not None
        if page.target.host != host or page.number % 3 == 0:
            return self.plan.url(page.target.host, page.target.path)
        return page.target.path if page.number % 3 == 1 else relative(page.path, page.target.path)

    def _sitemap(self, host: int, page: Page) -> Answer:
        """Dates are of the server's own Last-Modified, except for those that lie."""
        links = self.plan.site(host).links(page)
        root, item = ("sitemapindex", "sitemap") if links[0].tag == "sitemap" else ("urlset", "url")
        entries = "".join(
            f"<{item}><loc>{escape(self.plan.url(host, link.path))}</loc>"
            f"<lastmod>{self._lastmod(host, link.path)}</lastmod></{item}>\n"
            for link in links
        )
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_XMLNS}">\n{entries}</{root}>\n'.encode()
        if page.path.endswith(".gz"):
            return Answer(200, [("Content-Type", "application/gzip")], gzip.compress(body, 1, mtime=0))
        return Answer(200, [("Content-Type", "application/xml")], body)

    def _lastmod(self, host: int, path: str) -> str:
        chance = mix(self.plan.seed, host, *path.encode())
        if chance < self.plan.lies * 2**32:
            return f"2026-{1 + chance % 10:02d}-{1 + chance % 28:02d}"
        return "2026-02-01T08:00:00Z"

    def _html(self, host: int, page: Page, gzipped: bool) -> Answer:
        site = self.plan.site(host)
        body, charset = Document(self.plan, site, page).encoded()
        wants = site.traits.features
        headers = [] if page.kind is Kind.UNTYPED else [("Content-Type", f"text/html; charset={charset}")]
        if page.kind is Kind.NOFOLLOW_HEADER:
            headers.append(("X-Robots-Tag", "nofollow"))
        etag = f"{mix(self.plan.seed, host, page.number):08x}"
        if Feature.GZIP in wants and page.number % 2 == 0:
            headers.append(("Vary", "Accept-Encoding"))
            if gzipped:
                headers.append(("Content-Encoding", "gzip"))
                body, etag = gzip.compress(body, 1, mtime=0), etag + "-gz"
        if Feature.CHUNKED in wants and page.number % 3 == 0:
            headers.append(("Transfer-Encoding", "chunked"))
            body = b"".join(_chunks(body))
        return Answer(200, headers, body, etag=f'"{etag}"')


class Document:
    """The HTML of one page. A duplicate is its original, byte for byte, so neither names a canonical URL."""

    def __init__(self, plan: WebPlan, site: Site, page: Page) -> None:
        original = site.pages[page.original] if page.original else page
        self.plan, self.site, self.page = plan, site, original
        self.host = site.traits.index
        self.name = plan.name(self.host)
        self.chance = mix(plan.seed, self.host, original.number)
        wants = site.traits.features
        self.latin1 = Feature.LATIN1 in wants and original.number % 4 == 1
        self.based = Feature.BASE in wants and original.number % 4 == 2
        self.forms = Feature.URL_FORMS in wants
        self.odd = Feature.ODD_LINKS in wants and original.number % 2 == 0
        self.canonical = Feature.DUPLICATE not in wants
        self.base = "/base/of/" if self.based else original.path

    def encoded(self) -> tuple[bytes, str]:
        """Encoded part by part: long parts are ASCII, which is much faster to encode by itself."""
        charset = "iso-8859-1" if self.latin1 else "utf-8"
        return b"".join([part.encode(charset) for part in self._parts()]), charset

    def _parts(self) -> list[str]:
        title = f"{_words(self.chance, 3).title()} {self.page.number} at {self.name}, café"
        head = f'<!doctype html>\n<html lang="en">\n<head>\n{self._meta(title)}</head>\n'
        links = self._anchors()
        if self.page.kind is Kind.FRAMESET:
            return [head, '<frameset cols="20%,80%">\n', *links[1:], "</frameset>\n</html>\n"]
        return [
            f"{head}<body>\n<header><h1>{title}</h1></header>\n<nav><ul>{_items(links[:9])}</ul></nav>\n<main>\n",
            self._prose(),
            self._oddities(),
            f"<ul>{_items(links[9:])}</ul>\n</main>\n",
            f"<footer><p>{_words(self.chance >> 7, 8)}</p></footer>\n</body>\n</html>\n",
        ]

    def _meta(self, title: str) -> str:
        lines = [f"<title>{title}</title>", f'<meta name="description" content="{_words(self.chance, 12)}">']
        if not self.latin1:
            lines.insert(0, '<meta charset="utf-8">')
        if self.based:
            lines.insert(1, f'<base href="{self.plan.origin(self.host)}{self.base}">')
        if self.canonical:
            url = escape(self.plan.url(self.host, self.page.path))
            lines.append(f'<link rel="canonical" href="{url}">')
        if self.page.kind is Kind.NOFOLLOW_META:
            lines.append('<meta name="robots" content="noarchive, nofollow">')
        return "\n".join(lines) + "\n"

    def _prose(self) -> str:
        return f"<h2>{_words(self.chance >> 3, 4)}</h2>\n{_paragraphs(self.chance, _size(self.chance))}"

    def _oddities(self) -> str:
        # An empty or fragment-only href means the page itself, but under <base> it would mean the base.
        itself = "" if self.based else '<a href="#main">down</a> <a href="">again</a>\n'
        return ODD_LINKS + itself if self.odd else ""

    def _anchors(self) -> list[str]:
        """A third of the cost of a page, so random numbers are drawn without a call."""
        chance, anchors, forms, count = self.chance, [], self.forms, len(WORDS)
        for link in self.site.links(self.page):
            chance = (chance * 1664525 + 1013904223) & 0xFFFFFFFF
            href = self._href(link, chance >> 8)
            if "&" in href:
                href = href.replace("&", "&amp;")
            text = WORDS[(chance >> 16) % count]
            if link.nofollow or link.tag != "a":
                anchors.append(_special_anchor(link, href, text))
            elif forms and text < "b":
                anchors.append(f"<A CLASS=x HREF='{href}'>{text}</A>")
            else:
                anchors.append(f'<a href="{href}">{text}</a>')
        return anchors

    def _href(self, link: Link, chance: int) -> str:
        """One of the ways to write the link; forms that need the same host fall back to an absolute URL."""
        path = link.path
        form = chance % 12 if self.forms else chance % 3
        if link.host == self.host:
            match form:
                case 0 | 3 | 4:
                    return path
                case 1 | 5:
                    return relative(self.base, path)
                case 6:
                    return f"/x/./y/../..{path}"
        origin = self.plan.origin(link.host)
        if not self.forms:
            return f"{origin}{path}"
        match form:
            case 7:
                return f"{origin.upper()}{path}"
            case 8:
                return f"{origin}:{443 if self.plan.is_secure(link.host) else 80}{path}#part-{chance % 9}"
            case 9 if self.plan.is_secure(link.host) == self.plan.is_secure(self.host):
                return f"{origin[origin.index('//') :]}{path}"
            case 10:
                return f"  {origin}/z/%2e%2e{path}\n"
            case 11:
                return unquote(f"{origin}{path}#top")
        return f"{origin}{path}"


def _special_anchor(link: Link, href: str, text: str) -> str:
    match link.tag:
        case "area":
            return f'<map name="m"><area shape="default" href="{href}" alt="{text}"></map>'
        case "iframe":
            return f'<iframe src="{href}"></iframe>'
        case "frame":
            return f'<frame src="{href}">'
        case "sitemap":
            return f'<link rel="sitemap" type="application/xml" href="{href}">'
    return f'<a rel="noopener nofollow" href="{href}">{text}</a>'


@lru_cache(maxsize=16_384)
def relative(base: str, path: str) -> str:
    """The path as seen from the folder of `base`; begins with `./` where a bare query could be misread."""
    folder = base.partition("?")[0].split("/")[1:-1]
    parts = path.split("?")[0].split("/")[1:]
    query = path[path.index("?") :] if "?" in path else ""
    shared = 0
    while shared < min(len(folder), len(parts) - 1) and folder[shared] == parts[shared]:
        shared += 1
    return "../" * (len(folder) - shared) + "/".join(parts[shared:]) + query or "./"


def _items(anchors: list[str]) -> str:
    return "<li>" + "</li>\n<li>".join(anchors) + "</li>\n" if anchors else ""


def _chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), CHUNK):
        piece = body[start : start + CHUNK]
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@cache
def _noise() -> bytes:
    return Random(7).randbytes(250_000)


@cache
def _sizes() -> list[int]:
    """1,024 sizes with the median at 12 KB and tails cut at 2 and 60 KB, as pages of the wild have them."""
    rng = Random(5)
    return [int(min(60_000, max(2_000, rng.lognormvariate(9.4, 0.75)))) for _ in range(1024)]


def _size(chance: int) -> int:
    # The frame and the links are about 3 KB of a page; the prose fills the rest.
    return max(1_200, _sizes()[chance % 1024] - 3_000)


@cache
def _stock() -> list[str]:
    rng = Random(3)
    return [
        " ".join(rng.choice(WORDS) for _ in range(rng.randrange(30, 140))).capitalize() + "."
        for _ in range(997)
    ]


def _prose(chance: int, size: int, join: str = "\n\n") -> str:
    """Paragraphs of the stock in a stride of their own per page, so that no two pages read alike."""
    stock, parts, length = _stock(), [], 0
    place, stride = chance % 997, 1 + (chance >> 10) % 996
    while length < size:
        parts.append(stock[place])
        length += len(stock[place]) + len(join)
        place = (place + stride) % 997
    return join.join(parts)


def _paragraphs(chance: int, size: int) -> str:
    return "<p>" + _prose(chance, size, "</p>\n<p>") + "</p>\n"


def _words(chance: int, count: int) -> str:
    return " ".join([WORDS[(chance >> shift) % len(WORDS)] for shift in range(count)])
