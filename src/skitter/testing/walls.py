"""Walls and honest look-alikes, made up by a seed: to measure what a crawler takes for a page.

    from skitter.testing.walls import walls, honest

Every seed gives other words, markup, makers and lengths. Honest pages are of the kinds that are mistaken most
easily: a page about captchas, a real login page, a short notice. Nothing here knows how walls are found.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NOUNS = """garden river bread lamp winter engine village music paper stone harbour orchard letter bridge clock
    market teacher window forest kitchen ticket holiday museum ladder blanket summer valley station colour
    journey""".split()
_VERBS = """opens finds carries mends follows keeps paints reads builds sells explains visits measures
    collects""".split()
_FORM = "<form method=post><input name=user><input type=password name=p><button>Log in</button></form>"
_PARKING = "<script src=//{parking}></script>"
_PLACE = re.compile(r"\{(\w+?)(\d*)\}")

# Title, body and head, with places: site, id, number, nav6 (links), prose30 (sentences), sentence, noun.
Template = tuple[str, str, str]
_WALLS: dict[str, tuple[Template, ...]] = {
    "block page": (
        (
            "Attention Required!",
            "<h1>Sorry, you have been blocked</h1><h2>You are unable to access {site}</h2><p>This website is "
            "using a security service to protect itself from online attacks.</p><p>Ray ID: {id} Your IP: "
            "192.0.2.{number}</p>",
            "",
        ),
        (
            "Access Denied",
            "<H1>Access Denied</H1>You don't have permission to access this page on this server.<P>Reference "
            "#18.{id}</P>",
            "",
        ),
        (
            "Request blocked",
            "<h2>Request blocked.</h2><p>Your request was rejected by our security policy. Support ID: {id}</p>",
            "",
        ),
        (
            "403",
            "<h1>403 Forbidden</h1><p>Access denied. Contact the site owner and give them the event ID {id}.</p>",
            "",
        ),
        (
            "Zugriff verweigert",
            "<h1>Zugriff verweigert</h1><p>Aus Sicherheitsgründen. Request ID {id}</p>",
            "",
        ),
    ),
    "captcha": (
        ("Security check", "<h1>Please verify you are human</h1><form><div class={widget}></div></form>", ""),
        ("{site}", "<h1>Are you a robot?</h1><p>{noun}</p><div class={widget} data-sitekey={id}></div>", ""),
        (
            "One more step",
            "<h1>Complete the security check to access {site}</h1><div class={widget}></div>",
            "",
        ),
        (
            "Robot check",
            "<p>Enter the characters you see below</p><img src=/captcha/{id}.jpg><input name=c>",
            "",
        ),
        ("{site}", "<p>Press &amp; hold to confirm you are a human.</p><div id=px-captcha></div>", ""),
    ),
    "browser challenge": (
        (
            "Just a moment...",
            "<h1>{site}</h1><p>Checking your browser before accessing the site. This process is automatic.</p>",
            "<script src=/cdn-cgi/challenge-platform/h/{id}.js></script>",
        ),
        (
            "{site}",
            "<p>Please wait while we verify your browser. You will be redirected automatically.</p>",
            "<script src=/{id}/challenge.js></script>",
        ),
        (
            "One moment, please...",
            "<h1>Please enable JavaScript and cookies to continue</h1>",
            "<script>window._cf_chl_opt=1</script>",
        ),
        ("{noun}", "<h1>Checking your browser</h1><p>DDoS protection by {noun}guard</p>", ""),
    ),
    "rate limit": (
        (
            "Sorry...",
            "<p>Our systems have detected unusual traffic from your network. Please try again later.</p>{id}",
            "",
        ),
        (
            "Too Many Requests",
            "<h1>Too many requests</h1><p>Please slow down. Wait {number} seconds.</p>",
            "",
        ),
        (
            "Error",
            "<h1>Rate limit exceeded</h1><p>Too many automated requests. Try again in a few minutes.</p>",
            "",
        ),
        ("Zu viele Anfragen", "<h1>Zu viele Anfragen</h1><p>Rate limited. Bitte warten.</p>", ""),
    ),
    "consent wall": (
        (
            "Before you continue to {site}",
            "<h1>Before you continue</h1><p>We use cookies to measure audiences.</p><button>Accept all "
            "cookies</button><button>Reject</button>",
            "",
        ),
        (
            "{site}",
            "<div id=consent><h2>We value your privacy</h2><p>We and our {number} partners store and/or access "
            "information on a device.</p><button>Accept all</button></div>",
            "",
        ),
        (
            "Privacy",
            "<div class=sp_message><p>To continue reading, we need your consent to cookies.</p><button>Agree and "
            "continue</button></div>",
            "",
        ),
        (
            "{site}",
            "<div id=onetrust><h1>Your privacy matters</h1><p>{sentence}</p><button>Alle "
            "akzeptieren</button></div>",
            "",
        ),
    ),
    "age gate": (
        (
            "{site}",
            "<div class=age-gate><h1>Are you 18 or older?</h1><button>Yes, I am over 18</button></div>",
            "",
        ),
        (
            "Age verification",
            "<h1>Please confirm your date of birth</h1><input name=birthday><p>You must be of legal drinking "
            "age.</p>",
            "",
        ),
        (
            "{noun}",
            "<div id=agegate><p>You must be at least 21 to enter.</p><a href=/yes>I am over 21</a></div>",
            "",
        ),
    ),
    "login wall": (
        ("{site}", "<h1>Please log in to continue</h1>" + _FORM, ""),
        ("Members", "<h1>You must be logged in to view this page</h1>" + _FORM + "{nav2}", ""),
        ("Login required", "<h1>Sign in to see this content</h1>" + _FORM, ""),
        ("{noun}", "<p>This content is only for members. Please sign in.</p>" + _FORM, ""),
        ("{site}", "<h1>Bitte melden Sie sich an. Log in to continue.</h1>" + _FORM, ""),
    ),
    "subscription wall": (
        (
            "{noun} news",
            "<h1>{sentence}</h1><div class=paywall><h2>Subscribe to continue reading</h2></div>",
            "",
        ),
        (
            "{noun}",
            "<h1>{sentence}</h1><p>You have reached your free article limit.</p><a href=/in>Already a "
            "subscriber?</a>",
            "",
        ),
        ("{noun}", "<h1>{sentence}</h1><p>This article is for subscribers. Unlock unlimited access.</p>", ""),
    ),
    "parked domain": (
        ("{site}", "<h1>{site}</h1><p>This domain is for sale. Buy this domain.</p>{nav6}", ""),
        ("{site}", "<h2>Related searches</h2>{nav8}", _PARKING),
        ("{site}", "<p>The domain {site} is parked free, courtesy of a registrar. Make an offer.</p>", ""),
        ("{site}", "<p>Diese Domain steht zum Verkauf! Sponsored listings.</p>{nav4}", _PARKING),
    ),
    "placeholder": (
        (
            "Welcome to nginx!",
            "<h1>Welcome to nginx!</h1><p>If you see this page, the web server is successfully installed. "
            "Further configuration is required.</p>",
            "",
        ),
        (
            "Apache2 Ubuntu Default Page",
            "<h1>Apache2 Default Page</h1><p>It works! Replace this file.</p>",
            "",
        ),
        (
            "Account Suspended",
            "<h1>This account has been suspended</h1><p>Contact your hosting provider.</p>",
            "",
        ),
        ("{site}", "<h1>Website coming soon</h1><p>This site is under construction. {noun}</p>", ""),
    ),
}
# Name, path and template.
_HONEST: dict[str, tuple[str, Template]] = {
    "about captchas": (
        "/articles/captcha",
        (
            "What is a captcha?",
            "{nav9}<h1>How captchas work</h1><p>A captcha asks whether you are a robot. Solve the captcha, and "
            "the site lets you in.</p>{prose40}",
            "",
        ),
    ),
    "real login page": ("/login?next={noun}", ("Log in", "<h1>Log in to continue</h1>" + _FORM, "")),
    "short notice": (
        "/notice",
        ("Notice", "<h1>Closed on Monday</h1><p>{sentence}</p><p>Try again later in the week.</p>", ""),
    ),
    "article with a cookie banner": (
        "/story",
        (
            "{sentence}",
            "<div class=consent>We value your privacy. <button>Accept all cookies</button></div>{nav9}{prose30}",
            "",
        ),
    ),
    "newsletter box": (
        "/blog",
        ("{sentence}", "{prose25}<aside>Subscribe to our newsletter</aside>{nav9}", ""),
    ),
    "forum on an error": (
        "/t/81",
        (
            "Access denied on my server",
            "{nav9}{nav9}<p>I get this:</p><pre>403 Forbidden: you don't have permission to "
            "access</pre>{prose10}",
            "",
        ),
    ),
    "contact form with a captcha": (
        "/contact",
        (
            "Contact",
            "{nav9}<h1>Write to us</h1><p>{sentence}</p><form><textarea></textarea><div "
            "class=g-recaptcha></div></form>",
            "",
        ),
    ),
    "server manual": (
        "/docs/nginx",
        ("Installing nginx", "{nav9}<p>The page says <code>Welcome to nginx!</code></p>{prose20}", ""),
    ),
    "tiny page": ("/{noun}", ("{noun}", "<p>{sentence}</p>", "")),
    "plain article": ("/a/1", ("{sentence}", "{nav9}{prose35}", "")),
    "domain trade news": (
        "/news/domains",
        ("Domains for sale", "{nav9}<p>The domain is for sale again, says its broker.</p>{prose30}", ""),
    ),
    "wine shop": ("/shop", ("Wine", "{nav9}<p>You must be 18 to order.</p>{prose40}", "")),
    "help on suspended accounts": (
        "/help/42",
        (
            "Why was my account suspended?",
            "{nav9}<p>An account has been suspended when bills are open.</p>{prose40}",
            "",
        ),
    ),
    "list of links": ("/links", ("Links", "{nav9}{nav9}{nav8}", "")),
    "form": ("/order", ("Order", "<h1>{noun}</h1><form><input name=n></form><p>{sentence}</p>", "")),
    "coming events": (
        "/events",
        ("Events", "<h1>Coming soon</h1><ul><li>{sentence}</li><li>{sentence}</li></ul>{nav5}", ""),
    ),
}


@dataclass(frozen=True)
class Sample:
    """`kind` is the name of a wall, or empty for an honest page, whose `name` says what it is."""

    kind: str
    name: str
    url: str
    html: bytes


class _Writer:
    """Fills in the places of templates, with words of its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.site = f"{self._noun()}-{self._noun()}.example"

    def _noun(self) -> str:
        return self.random.choice(_NOUNS)

    def _sentence(self) -> str:
        return f"The {self._noun()} {self.random.choice(_VERBS)} the {self._noun()} near the {self._noun()}."

    def _place(self, name: str, number: int) -> str:
        match name:
            case "site":
                return self.site
            case "id":
                return "".join(self.random.choice("0123456789abcdef") for _ in range(16))
            case "number":
                return str(self.random.randrange(20, 250))
            case "nav":
                return "".join(f"<a href=/{self._noun()}/{n}>{self._noun()}</a> " for n in range(number))
            case "prose":
                count = max(2, number + self.random.randrange(-number // 4, number // 4 + 1))
                return "".join(f"<p>{self._sentence()} {self._sentence()}</p>" for _ in range(count))
            case "sentence":
                return self._sentence()
            case "widget":
                return self.random.choice(["g-recaptcha", "h-captcha", "cf-turnstile"])
            case "parking":
                return self.random.choice(
                    ["parkingcrew.net/caf.js", "sedoparking.com/frmpark", "bodis.com/p"]
                )
        return self._noun()

    def fill(self, text: str) -> str:
        return _PLACE.sub(lambda found: self._place(found[1], int(found[2] or 0)), text)

    def page(self, template: Template) -> bytes:
        title, body, head = map(self.fill, template)
        style = f"<style>.c{self.random.randrange(999)}{{margin:{self.random.randrange(40)}px}}</style>"
        page = (
            f"<!doctype html><html><head><title>{title}</title>{head}{style}</head><body>{body}</body></html>"
        )
        return page.encode()


def walls(seed: int, count: int) -> Iterator[Sample]:
    """`count` of each kind."""
    for kind, templates in _WALLS.items():
        for number in range(count):
            writer = _Writer(seed * 1_000_003 + number * 101 + len(kind))
            url = f"http://{writer.site}" + writer.fill("/{noun}/{number}")
            yield Sample(kind, kind, url, writer.page(writer.random.choice(templates)))


def honest(seed: int, count: int) -> Iterator[Sample]:
    """`count` of each kind of look-alike."""
    for name, (path, template) in _HONEST.items():
        for number in range(count):
            writer = _Writer(seed * 2_000_003 + number * 103 + len(name))
            url = f"http://{writer.site}" + writer.fill(path)
            yield Sample("", name, url, writer.page(template))
