"""Walls: answers that stand where a page should be. Block pages, challenges, gates and parked domains. Pure.

Asked after a page was read, with what it says. Evidence adds up: words that only such pages have, parts that only
their makers use, and that there is hardly anything else. A page of some length is never a wall, whatever it is
about: an article on captchas has paragraphs, a page with a cookie banner has a page behind it. A wall is never
solved, evaded or answered here: it is told by its name, with what gave it away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from html import unescape

import msgspec


class WallKind(StrEnum):
    BLOCK = "block page"
    CAPTCHA = "captcha"
    CHALLENGE = "browser challenge"
    RATE_LIMIT = "rate limit"
    CONSENT = "consent wall"
    AGE = "age gate"
    LOGIN = "login wall"
    SUBSCRIPTION = "subscription wall"
    PARKED = "parked domain"
    PLACEHOLDER = "placeholder"


# The host itself turns us away; the others stand before single pages.
TURNS_AWAY = frozenset((WallKind.BLOCK, WallKind.CAPTCHA, WallKind.CHALLENGE, WallKind.RATE_LIMIT))


class Wall(msgspec.Struct, frozen=True):
    """`evidence` is what gave it away; `NEEDED` points or more make a wall."""

    kind: WallKind
    points: int
    evidence: tuple[str, ...]

    def words(self) -> str:
        return f"{self.kind}, {self.points} points: {'; '.join(self.evidence)}"[:300]


NEEDED = 5
# Beyond this a page has something to say, whatever its words.
_LONGEST_TEXT, _MOST_LINKS, _LARGEST_BODY = 1_400, 40, 200_000
_SHORT_TEXT, _FEW_LINKS = 700, 12
# A page with more links than this is looked at only if it has a part that walls have. Of the documentation of a
# JDK, whose pages are short, every one has a menu of 15 links at least.
_SOME_LINKS = 14
_TELLING = (b"<form", b"<iframe", b"captcha", b"parking")
# As many letters of a word as its stem has.
_STEM = 6
_WORD = re.compile(r"[^\W_]{2,}")
_HIDDEN = re.compile(rb"<(script|style|template|noscript)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
# Who writes of such pages quotes them: these words are not the page's own.
_QUOTED = re.compile(rb"<(pre|code|samp|blockquote)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(rb"<[^>]*>")
_LOGIN_PATH = re.compile(
    r"log-?in|sign-?in|auth|sso|account|session|anmeld|connexion|register|wp-admin", re.IGNORECASE
)
_PASSWORD = re.compile(rb"<input\b[^>]*\btype\s*=\s*[\"']?password", re.IGNORECASE)


class _Sign(msgspec.Struct, frozen=True):
    """`stems`: beginnings of words, one of which must be there for the pattern to match."""

    kind: WallKind
    points: int
    stems: frozenset[str]
    pattern: re.Pattern[str]


class _Part(msgspec.Struct, frozen=True):
    """Of the markup, in small letters."""

    kind: WallKind
    points: int
    needles: tuple[bytes, ...]


def _signs(kind: WallKind, points: int, *told: tuple[str, str]) -> list[_Sign]:
    return [_Sign(kind, points, frozenset(stems.split()), re.compile(pattern)) for stems, pattern in told]


_K = WallKind
_SIGNS: tuple[_Sign, ...] = (
    *_signs(
        _K.BLOCK,
        3,
        (
            "denied blocke forbid",
            r"\b(?:access|request|permission) (?:denied|blocked|forbidden)\b|\b(?:denied|blocked) access\b",
        ),
        ("blocke denied banned", r"you (?:have been|are|were) (?:temporarily )?(?:blocked|denied|banned)"),
        ("permis", r"you (?:don.?t|do not) have permission to (?:access|view)"),
        (
            "blocke reject",
            r"(?:blocked|rejected) (?:by|for) (?:our |the )?(?:security|firewall|waf|administrator|policy)",
        ),
        (
            "verwei gesper refusé interd denega prohib",
            r"zugriff (?:verweigert|gesperrt)|accès (?:refusé|interdit)|acceso (?:denegado|prohibido)",
        ),
        ("securi", r"security (?:service|solution|policy|system) (?:to protect|has|triggered|that protects)"),
    ),
    *_signs(
        _K.BLOCK,
        2,
        (
            "id refere code",
            r"\b(?:ray id|incident id|support id|reference (?:id|#|number)|event id|request id|error code)\b",
        ),
        ("ip", r"\b(?:your|client) ip\b(?: address)?|\bip address:"),
        ("1020 403 18", r"\berror 1020\b|\b403 forbidden\b|#18\.[0-9a-f]+"),
        (
            "contac firewa waf",
            r"contact the (?:site owner|webmaster|administrator)|web application firewall|\bwaf\b",
        ),
    ),
    *_signs(
        _K.CAPTCHA,
        3,
        (
            "robot human bot",
            r"(?:are you|not|(?:confirm|verify) (?:that )?you are|prove you.re) (?:an? )?(?:robot|human|bot)\b",
        ),
        (
            "securi captch puzzle challe",
            r"(?:complete|solve) the (?:security check|captcha|puzzle|challenge)",
        ),
        ("charac letter code", r"(?:enter|type) the (?:characters|letters|code)(?: that)? you see"),
        ("robote robot mensch", r"kein roboter|pas un robot|no soy un robot|ich bin ein mensch"),
        ("hold square images", r"press (?:&|and) hold|select all (?:squares|images)"),
    ),
    *_signs(
        _K.CHALLENGE,
        3,
        ("checki moment", r"checking (?:your browser|if the site connection is secure)|just a moment"),
        (
            "javasc cookie",
            r"(?:enable|turn on) (?:javascript|cookies)(?: and cookies)? (?:to continue|and reload|to proceed)",
        ),
        ("ddos verify", r"ddos protection by|verifying (?:your browser|you are human|your connection)"),
        (
            "browse moment redire",
            r"browser (?:check|verification|integrity check)|one moment, please|redirected automatically",
        ),
        (
            "automa redire wait",
            r"this process is automatic|redirect to your requested content|please wait while we (?:verify|check)",
        ),
    ),
    *_signs(
        _K.RATE_LIMIT,
        3,
        ("reques rate limit", r"too many requests|rate limit(?:ed)?\b|request limit (?:reached|exceeded)"),
        (
            "unusua automa",
            r"unusual (?:traffic|activity) (?:from|on|in)|automated (?:queries|requests|traffic)",
        ),
        ("anfrag requêt solici", r"zu viele anfragen|trop de requêtes|demasiadas solicitudes"),
    ),
    *_signs(
        _K.RATE_LIMIT,
        2,
        ("slow again wait", r"slow down|try again (?:later|in (?:a few|\d+))|wait \d+ (?:seconds|minutes)"),
    ),
    *_signs(
        _K.CONSENT,
        3,
        (
            "contin privac",
            r"before you continue|we (?:value|respect|care about) your privacy|your privacy (?:choices|matters)",
        ),
        (
            "partne vendor device",
            r"(?:we and|us and) our (?:\d+ )?(?:partners|vendors)|store and/or access information on a device",
        ),
        (
            "accept agree akzept acepta",
            r"(?:accept|agree to) (?:all )?(?:cookies|and continue)|alle akzeptieren|tout accepter|aceptar todo",
        ),
        (
            "consen cookie zustim einwil",
            r"(?:to (?:continue|access|read|visit)).{0,60}(?:consent|cookies)"
            r"|cookies? (?:zustimmen|einwilligung)",
        ),
    ),
    *_signs(
        _K.AGE,
        3,
        (
            "18 21 legal age",
            r"(?:are you|you must be|i am|that you are) (?:at least |over |of legal "
            r"|aged )?(?:18|21|legal|age)\b",
        ),
        ("age birth", r"(?:enter|confirm|verify) your (?:age|date of birth)|age (?:verification|gate|check)"),
        (
            "18 21 age legal",
            r"(?:yes, i am|i am (?:over|under)) (?:18|21)|of legal (?:drinking )?age|bist du (?:über )?18|ab 18",
        ),
    ),
    *_signs(
        _K.LOGIN,
        3,
        (
            "log login logon sign signin regist",
            r"(?:log ?in|sign ?in|log ?on|register)(?: or \w+)? to (?:continue|view|see|access|read|proceed)",
        ),
        (
            "logged log login sign signin",
            r"you (?:must|need to|have to) (?:be logged in|log ?in|sign ?in)|please (?:log ?in|sign ?in)",
        ),
        (
            "member regist logged",
            r"members? only"
            r"|this (?:content|page) is (?:only )?(?:for|available to) (?:members|registered|logged)",
        ),
        ("melden connec inicia", r"(?:bitte )?melden sie sich an|connectez-vous pour|inicia sesión para"),
    ),
    *_signs(
        _K.SUBSCRIPTION,
        3,
        (
            "subscr readin",
            r"subscribe (?:now )?to (?:continue|read|unlock|keep)|(?:continue|keep) reading (?:with|by)",
        ),
        (
            "reache used hit",
            r"(?:reached|used|hit) (?:your|the) (?:limit of )?(?:free|monthly) ?(?:article|stor|limit)?",
        ),
        (
            "subscr",
            r"(?:this (?:article|story) is|exclusively) (?:for|reserved for|available to) (?:our )?subscribers",
        ),
        (
            "subscr unlock abonne",
            r"already a subscriber|unlock (?:this|unlimited|full) (?:article|access|story)|nur für abonnenten",
        ),
    ),
    *_signs(
        _K.PARKED,
        3,
        (
            "domain web webadd",
            r"(?:domain|web ?address)(?: name)?.{0,60}(?:is|may be) (?:for sale|available for purchase|parked)",
        ),
        (
            "domain offer",
            r"buy this domain|make an offer|inquire about this domain"
            r"|domain (?:parking|broker|expired|has expired)",
        ),
        (
            "relate sponso domain",
            r"related (?:searches|links)|sponsored listings|diese domain steht zum verkauf|domaine est à vendre",
        ),
        (
            "regist parked renew",
            r"(?:registered|parked) (?:with|at|by|free,? courtesy of)|renew(?: it)? (?:now|your domain)",
        ),
    ),
    *_signs(
        _K.PLACEHOLDER,
        3,
        (
            "welcom apache apach works",
            r"welcome to (?:nginx|caddy|openresty|iis)|apache2? .{0,20}default page|\bit works!",
        ),
        (
            "suspen defaul",
            r"(?:account|website|site|hosting) (?:has been |is )?suspended"
            r"|default (?:web ?site|web ?server) page",
        ),
        (
            "constr coming config publis",
            r"(?:site|website|page|domain) (?:is )?(?:under construction|coming soon"
            r"|not configured|not published)",
        ),
        (
            "instal config",
            r"(?:successfully|correctly) installed|further configuration is required"
            r"|no website (?:is )?configured",
        ),
    ),
    *_signs(
        _K.PLACEHOLDER, 2, ("hostin replac", r"contact your hosting provider|replace this (?:page|file)")
    ),
)
_ALL_STEMS = frozenset(stem for sign in _SIGNS for stem in sign.stems)
_PARTS: tuple[_Part, ...] = (
    _Part(_K.CHALLENGE, 4, (b"/cdn-cgi/challenge-platform/", b"cf-browser-verification", b"_cf_chl_opt")),
    _Part(_K.CHALLENGE, 3, (b"jschl", b"awswafintegration", b"challenge.js", b"__ddg", b"challenge-form")),
    _Part(
        _K.CAPTCHA, 3, (b"g-recaptcha", b"h-captcha", b"cf-turnstile", b"captcha-delivery.com", b"px-captcha")
    ),
    _Part(_K.CAPTCHA, 2, (b"captcha",)),
    _Part(_K.BLOCK, 3, (b"_incapsula_resource", b"sucuri", b"errors.edgesuite.net", b"cf.errors.css")),
    _Part(_K.CONSENT, 2, (b"consent", b"cookiewall", b"cmp.", b"onetrust", b"didomi", b"sp_message")),
    _Part(_K.AGE, 2, (b"age-gate", b"agegate", b"age_verification", b"birth")),
    _Part(_K.PARKED, 4, (b"parkingcrew", b"sedoparking", b"bodis.com", b"parking-lander", b"buy-domain")),
    _Part(_K.PARKED, 2, (b"parking", b"caf.js", b"domain-for-sale")),
    _Part(_K.SUBSCRIPTION, 2, (b"paywall", b"piano.io", b"metered", b"subscribe")),
)


def find_wall(
    body: bytes, *, url: str, title: str, text: str, links: int, headers: Sequence[tuple[str, str]] = ()
) -> Wall | None:
    """`text` is the page's main text, `links` how many it has. A page of some length is none, at once."""
    if len(text) > _LONGEST_TEXT or links > _MOST_LINKS or len(body) > _LARGEST_BODY:
        return None
    if links > _SOME_LINKS and not any(part in body for part in _TELLING):
        return None
    said = _visible(body)
    if len(said) > _LONGEST_TEXT:
        return None
    found = _read_signs(f"{title}\n{said}".lower())
    if not found:
        return None
    _add_parts(found, body)
    if any(name == "cf-mitigated" for name, _ in headers):
        found.setdefault(_K.CHALLENGE, []).append((4, "has the header cf-mitigated"))
    return _best(found, body, url, said, links)


def _read_signs(words: str) -> dict[WallKind, list[tuple[int, str]]]:
    """A set of stems tells which patterns can match at all: 50 searches would take 300 us."""
    found: dict[WallKind, list[tuple[int, str]]] = {}
    stems = {word[:_STEM] for word in _WORD.findall(words)}
    if _ALL_STEMS.isdisjoint(stems):
        return found
    for sign in _SIGNS:
        if not sign.stems.isdisjoint(stems) and (match := sign.pattern.search(words)):
            found.setdefault(sign.kind, []).append((sign.points, f"says {match[0]!r}"))
    return found


def _visible(body: bytes) -> str:
    """What a reader sees, without the parser's idea of what matters: a wall is all furniture."""
    text = _TAG.sub(b" ", _QUOTED.sub(b" ", _HIDDEN.sub(b" ", body))).decode("utf-8", "replace")
    return " ".join(unescape(text).split())


def _add_parts(found: dict[WallKind, list[tuple[int, str]]], body: bytes) -> None:
    markup = body.lower()
    for part in _PARTS:
        if part.kind in found or part.points > 3:
            needle = next((one for one in part.needles if one in markup), None)
            if needle is not None:
                found.setdefault(part.kind, []).append((part.points, f"has {needle.decode()}"))


def _best(
    found: dict[WallKind, list[tuple[int, str]]], body: bytes, url: str, said: str, links: int
) -> Wall | None:
    if _PASSWORD.search(body) is not None:
        if _LOGIN_PATH.search(url):
            return None
        if WallKind.LOGIN in found:
            found[WallKind.LOGIN].append((3, "asks for a password"))
    is_bare = len(said) <= _SHORT_TEXT and links <= _FEW_LINKS
    bonus = (2 if is_bare else 0) - (2 if _QUOTED.search(body) else 0)
    points, kind = max((sum(points for points, _ in some), kind) for kind, some in found.items())
    points += bonus
    told = [words for _, words in found[kind]]
    if points < NEEDED or len(told) + is_bare < 2:
        return None
    if is_bare:
        told.append(f"says no more than {len(said)} characters, {links} links")
    return Wall(kind, points, tuple(told))
