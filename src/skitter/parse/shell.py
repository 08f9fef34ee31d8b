"""Is a page an empty shell that only its scripts fill? A guess from its HTML, by signs that add up. Pure.

Between the reading of a page and the wish to render it. A gate of two comparisons on what was read anyway lets
most pages through at no cost; the others are looked at as a tree, 256 KB of them. Names its signs, so that every
guess can be explained. It cannot know pages that look whole without their scripts and are not.
"""

from __future__ import annotations

import re

import msgspec
import turbohtml
from turbohtml import Comment, Document, Element, Text

from skitter.parse.content import PageContent

THRESHOLD = 4
_LITTLE_TEXT, _FEW_LINKS = 400, 2
_MOST_BYTES = 256 * 1024
_MOST_INLINE = 20_000
_ALMOST_EMPTY = 20
_MOUNTS = frozenset(
    """root app __next __nuxt ___gatsby __svelte svelte app-root react-root reactroot q-app application
    app-container app-mount mount main-app ember-app ng-app vue-app spa redoc-container swagger-ui
    graphiql""".split()
)
_FURNITURE = frozenset("script noscript style template link meta svg".split())
_SCRIPT_TYPES = frozenset(("", "module", "text/javascript", "application/javascript", "text/babel"))
_TRACKERS = re.compile(
    r"googletagmanager|google-analytics|gtag/|/analytics\.js|/ga\.js|/gtm\.js|matomo|piwik|plausible|hotjar"
    r"|segment\.(?:io|com)|facebook\.net|doubleclick|googlesyndication|adsbygoogle|cloudflareinsights|cdn-cgi/|newrelic|clarity\.ms|umami"
    r"|goatcounter|statcounter|addthis|cookiebot|onetrust|recaptcha|challenges\.cloudflare|stripe\.com",
    re.IGNORECASE,
)
_TRACKS = re.compile(r"\b(?:gtag|dataLayer|_gaq|_paq|fbq|GoogleAnalyticsObject|adsbygoogle|_satellite|ym)\b")
_ASKS = re.compile(r"\bfetch\s*\(|XMLHttpRequest|\baxios\b|\$\.(?:ajax|get|getJSON)\b")
_LEAVES = re.compile(r"location(?:\.href)?\s*=[^=]|location\.(?:replace|assign)\s*\(")
_WANTS_SCRIPTS = re.compile(r"javascript|enable\s+js|\bscripts?\b", re.IGNORECASE)


class ShellScore(msgspec.Struct, frozen=True):
    """`points` of all `signs`; a shell has THRESHOLD of them."""

    points: int = 0
    signs: tuple[str, ...] = ()

    @property
    def is_shell(self) -> bool:
        return self.points >= THRESHOLD


_NONE = ShellScore()


def score_shell(body: bytes, page: PageContent) -> ShellScore:
    """`page` was read with its text. Never raises on what the web sent."""
    text, links = len(page.text), len(page.links)
    if (text >= _LITTLE_TEXT and links > _FEW_LINKS) or page.refresh:
        return _NONE
    document = turbohtml.parse(body[:_MOST_BYTES], positions=False)
    inline = _own_scripts(document)
    if inline is None:
        return _NONE
    signs = [(4, "an empty mount node")] if _has_mount(document) else []
    signs += _by_amount(text, links)
    if any(_WANTS_SCRIPTS.search(each.text[:1000]) for each in document.find_all("noscript")):
        signs.append((1, "noscript asks for scripts"))
    if any((each.attr("type") or "").lower() == "module" for each in document.find_all("script")):
        signs.append((1, "a module"))
    if _ASKS.search(inline):
        signs.append((1, "it asks for data"))
    if document.find("iframe") is not None or document.find("frame") is not None:
        signs.append((-2, "frames"))
    if document.find("form") is not None:
        signs.append((-2, "a form"))  # a page to log in, or to search, is short and whole
    return ShellScore(sum(points for points, _ in signs), tuple(sign for _, sign in signs))


def _by_amount(text: int, links: int) -> list[tuple[int, str]]:
    signs = []
    if text < 200:
        signs.append((3, "hardly any text") if text < 50 else (2, "little text"))
    if links <= _FEW_LINKS:
        signs.append((1, "few links") if links else (2, "no link"))
    return signs


def _own_scripts(document: Document) -> str | None:
    """What its scripts say in the page itself; None when it has only such as count visitors, or lead away."""
    inline = []
    has_own = False
    for script in document.find_all("script"):
        if (script.attr("type") or "").strip().lower() not in _SCRIPT_TYPES:
            continue
        source = script.attr("src")
        if source is not None:
            has_own = has_own or _TRACKERS.search(source) is None
            continue
        text = script.text[:_MOST_INLINE]
        if text.strip() and not _TRACKS.search(text) and not (_LEAVES.search(text) and len(text) < 500):
            has_own = True
        inline.append(text)
    return "\n".join(inline)[:_MOST_INLINE] if has_own else None


def _has_mount(document: Document) -> bool:
    body = document.find("body")
    if body is None:
        return False
    shown = [each for each in body.children if isinstance(each, Element) and each.tag not in _FURNITURE]
    if len(shown) == 1 and "-" in shown[0].tag and _is_empty(shown[0]):
        return True
    found = (each for each in shown[:50] if _is_mount(each) and _is_empty(each))
    return next(found, None) is not None or any(
        _is_mount(each) and _is_empty(each)
        for outer in shown[:3]
        for each in list(outer.children)[:20]
        if isinstance(each, Element)
    )


def _is_mount(element: Element) -> bool:
    named = (element.attr("id") or "").lower()
    return named in _MOUNTS or element.tag in _MOUNTS or element.attr("ng-app") is not None


def _is_empty(element: Element) -> bool:
    """But for what tells to wait: a line of text, a spinner."""
    elements = 0
    characters = 0
    for node in element.descendants:
        if isinstance(node, Text):
            parent = node.parent
            if not (isinstance(parent, Element) and parent.tag in _FURNITURE):
                characters += len(node.data.strip())
        elif isinstance(node, Element) and not isinstance(node, Comment):
            if node.tag == "a" and node.attr("href"):
                return False
            elements += node.tag not in _FURNITURE
        if characters > _ALMOST_EMPTY or elements > 8:
            return False
    return True
