"""What a setting's type cannot say: which values of the right type are still wrong, and why.

Asked by `settings/load.py` for each value given, from whichever layer. A complaint is a phrase that follows
the setting's name and says what to write instead; the empty string means that the value is fine.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from skitter.model import HostPolicy
from skitter.settings.durations import seconds_of
from skitter.settings.quiet_hours import read_spans, zone_of
from skitter.settings.toml_text import shown

SCOPES = ("host", "domain", "prefix", "any")
UNREACHABLE = ("disallow", "allow")
COMPRESSIONS = ("gzip", "zstd")
SITEMAP_USES = ("also", "only", "off")
SITEMAP_TRUSTS = ("standard", "domain", "any")
RULES = ("value", "halve-double", "fixed")
DECLARATIONS = ("tdmrep.json", "ai.txt", "llms.txt")
_LARGEST = 2**63 - 1


def complaint_about(path: tuple[str, ...], value: object) -> str:
    """Why a setting cannot take this value; empty when it can."""
    named = (path[0], path[-1]) if path[0] == "hosts" else path
    return _unusable(value) or CHECKS.get(named, lambda _: "")(value)


def complaint_about_policy(policy: HostPolicy) -> str:
    """Why a host cannot have this policy, as a sentence; empty when it can."""
    for name in policy.__struct_fields__:
        if complaint := complaint_about(("hosts", name), getattr(policy, name)):
            return f"{name} {complaint}"
    return ""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    from difflib import get_close_matches  # start-up time: needed only on the way out

    close = get_close_matches(name[:100].lower(), list(candidates), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _unusable(value: object) -> str:
    if isinstance(value, tuple):
        return next(filter(None, map(_unusable, value)), "")
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value} and must be a finite number"
    if isinstance(value, int) and value > _LARGEST:
        return f"is {shown(value)} and must be at most {_LARGEST}"
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        return "holds bytes that are not UTF-8; write it in UTF-8"
    return ""


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def check(word: str) -> str:
        if word in words:
            return ""
        return f"is {shown(word)} and must be one of {', '.join(words)}{did_you_mean(word, words)}"

    return check


def _check_expressions(expressions: tuple[str, ...]) -> str:
    for expression in expressions:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(expression)
        except (re.error, RecursionError, OverflowError) as error:
            reason = str(error) or "it nests too deeply"
            return f"{shown(expression)} is not a regular expression: {reason}; correct or remove it"
    return ""


def _check_promises(promises: tuple[str, ...]) -> str:
    for promise in promises:
        duration, _, expression = promise.partition(" ")
        if seconds_of(duration) is None or not expression.strip():
            return f"has {shown(promise)} and must be DURATION REGEX, such as `1h ^https://example.org/news/`"
        if complaint := _check_expressions((expression.strip(),)):
            return complaint
    return ""


def _check_parameters(names: tuple[str, ...]) -> str:
    for name in names:
        if not re.fullmatch(r"[^*&=#?\s]+\*?", name):
            return f"has {shown(name)} and must be names of query parameters, with `*` at the end at most"
    return ""


def _check_documents(names: tuple[str, ...]) -> str:
    for name in names:
        if not re.fullmatch(r"[\w.~-]+", name, re.ASCII) or not name.strip("."):
            return f"has {shown(name)} and must be file names such as index.html"
    return ""


def _check_product(product: str) -> str:
    # RFC 9309 section 2.2.1: with anything else in it, no robots.txt could address us by name.
    if re.fullmatch(r"[A-Za-z_-]+", product):
        return ""
    return f"is {shown(product)} and must be letters, hyphens and underscores only (RFC 9309 section 2.2.1)"


def _check_contact(contact: str) -> str:
    # It becomes part of a request header: a line break in it would be a header of its own.
    if contact.isascii() and contact.isprintable():
        return ""
    return f"is {shown(contact)} and must be printable ASCII: an e-mail address or a URL"


def _check_mail(address: str) -> str:
    if not address or re.fullmatch(r"[!-~]+@[!-~]+", address):
        return ""
    return f"is {shown(address)} and must be an e-mail address"


def _check_agent(url: str) -> str:
    if not url or re.fullmatch(r"https://[a-z0-9.-]+(:\d+)?/?", url):
        return ""
    return f"is {shown(url)} and must be https://HOST, whose key directory is at its usual place"


def _check_prefix(prefix: str) -> str:
    if re.fullmatch(r"\w[\w.-]{0,99}", prefix, re.ASCII):
        return ""
    return f"is {shown(prefix)} and must be 1 to 100 letters, digits, dots, hyphens, underscores"


_SCHEMES = ("s3", "gs", "az", "file")


def _check_url(url: str) -> str:
    if not url:
        return ""
    scheme, _, rest = url.partition("://")
    place = rest.partition("/")[0]
    # Not shown: it may be a secret, and messages end in logs.
    if "@" in place:
        return "names a user or password, which would be kept in clear: give them in the environment"
    if "?" in url or "#" in url or not url.isprintable():
        return f"is {shown(url)} and must be SCHEME://BUCKET/PREFIX and nothing more"
    if scheme not in _SCHEMES or not rest.strip("/") or (scheme != "file" and not place):
        return f"is {shown(url)} and must be s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER"
    return ""


def _check_declarations(names: tuple[str, ...]) -> str:
    return next((complaint for name in names if (complaint := _one_of(DECLARATIONS)(name))), "")


def _check_hours(hours: str | None) -> str:
    if not hours or read_spans(hours) is not None:
        return ""
    return (
        f"is {shown(hours)} and must be hours such as 22:00-06:00, several with commas between them, and not all "
        "of the day"
    )


def _check_zone(name: str | None) -> str:
    if not name or zone_of(name) is not None:
        return ""
    return f"is {shown(name)} and must be a time zone that this machine knows, such as Europe/Berlin or UTC"


def _check_log(url: str) -> str:
    if not url:
        return ""
    scheme, _, rest = url.partition("://")
    # Not shown: it may be a secret, and messages end in logs.
    if re.match(r"[^/?@]*:[^@]+@", rest) or "password=" in rest:
        return "has a password, which would be kept in clear: give it in PGPASSWORD or ~/.pgpass"
    if scheme not in ("postgresql", "postgres") or not url.isprintable():
        return f"is {shown(url)} and must be postgresql://USER@HOST/DATABASE"
    return ""


def _check_weights(weights: tuple[int, ...]) -> str:
    if len(weights) == 4 and min(weights) > 0:
        return ""
    return f"is {shown(list(weights))} and must be four whole numbers above 0, one per tier"


def _check_backoff(waits: tuple[float, ...]) -> str:
    if waits and min(waits) > 0:
        return ""
    return f"is {shown(list(waits))} and must be at least one number of seconds, each above 0"


CHECKS: dict[tuple[str, ...], Callable[[Any], str]] = {
    ("crawl", "scope"): _one_of(SCOPES),
    ("sitemaps", "use"): _one_of(SITEMAP_USES),
    ("sitemaps", "trust"): _one_of(SITEMAP_TRUSTS),
    ("politeness", "robots_unreachable"): _one_of(UNREACHABLE),
    ("crawl", "include"): _check_expressions,
    ("crawl", "exclude"): _check_expressions,
    ("keys", "drop_parameters"): _check_parameters,
    ("keys", "keep_parameters"): _check_parameters,
    ("keys", "default_documents"): _check_documents,
    ("identity", "product"): _check_product,
    ("identity", "contact"): _check_contact,
    ("identity", "from_address"): _check_mail,
    ("identity", "signature_agent"): _check_agent,
    ("archive", "compression"): _one_of(COMPRESSIONS),
    ("archive", "prefix"): _check_prefix,
    ("archive", "url"): _check_url,
    ("frontier", "tier_weights"): _check_weights,
    ("frontier", "log"): _check_log,
    ("retry", "backoff"): _check_backoff,
    ("revisit", "rule"): _one_of(RULES),
    ("revisit", "fresh_within"): _check_promises,
    ("revisit", "never"): _check_expressions,
    ("opt_outs", "files"): _check_declarations,
    ("hosts", "quiet_hours"): _check_hours,
    ("hosts", "time_zone"): _check_zone,
}
