"""The skeleton of a URL: what is left of it when dates, numbers, opaque tokens and values are taken out.

Asked when a page is settled or leased, and at admission on hosts where something was stopped: URLs with one
skeleton are made by one piece of a site's software, so what some of them were worth tells of the others. Never
decides anything, and never raises on a normalised URL.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_DIGIT = re.compile(r"\d")
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:([-/._]?)(?:0[1-9]|1[0-2])(?:\1(?:0[1-9]|[12]\d|3[01]))?|-W\d\d)(?!\d)"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
# A token no person would type: hexadecimal with a digit in it, or long with digits among its letters.
_TOKEN = re.compile(
    r"(?<![0-9A-Za-z])(?=[a-zA-Z]*\d)(?:[0-9a-fA-F]{8,}|(?=\d*[A-Za-z])[0-9A-Za-z]{16,})(?![0-9A-Za-z])"
)
_NUMBER = re.compile(r"\d+")
_MATRIX = re.compile(r";([^=;/]*)=[^;/]*")
_VARIANT = re.compile(
    r"\b(?:sort(?:by|_by|order)?|order(?:by|_by|dir)?|dir|direction|print(?:able|view)?|replytocom|view|display"
    r"|layout|format|theme|skin|per_?page|limit|share|ref|from|back|return(?:url|to)?|highlight)\b",
    re.IGNORECASE,
)
_CALENDAR = re.compile(r"\b(?:date|day|month|year|week|cal(?:endar)?|ym|from|start|end)\b", re.IGNORECASE)
_SESSION = re.compile(
    r"\b(?:s?sid|sess(?:ion)?\w*|token|nonce|visit\w*|cid|uid|ts|timestamp|rand\w*|_)\b", re.I
)
_LONG_SLUG = 16
_TREE, _DEEP = 3, 4
_LONGEST = 160


# What traps are known to look like, and many good pages as well: less evidence is asked of these. Plain bits: an
# IntFlag would take as long as all the rest.
CALENDAR, FACETS, SESSION, REPEATING, VARIANT, DEEP = (1 << bit for bit in range(6))


class Skeleton(NamedTuple):
    """`fine` tells one kind of page from another; `coarse` takes together what permutations, subsets of
    parameters and ever deeper paths would scatter."""

    fine: str
    coarse: str
    shape: int


@lru_cache(maxsize=4096)
def skeleton(url: str) -> Skeleton:
    """Cached: a URL is asked about when it is leased, and soon after when it is settled."""
    path, _, query = url[url.index("/", 8) :].partition("?")
    shape = 0
    if ";" in path:
        path = _MATRIX.sub(r";\1", path)
        shape = SESSION
    if _DIGIT.search(path):
        path = _without_values(path)
        if "{date}" in path:
            shape |= CALENDAR
        if "{token}" in path and "{token}" in path[: path.rindex("/")]:
            shape |= SESSION
    segments = path.rstrip("/").split("/")[1:]
    folder, _, last = path.rpartition("/")
    coarse = f"/{segments[0]}/**" if len(segments) >= _TREE else folder + "/*"
    if len(segments) > _DEEP:
        shape |= DEEP
    if len(segments) > 2 and (again := len(segments) - len(set(segments))):
        shape |= REPEATING
        if again > 1:
            path, coarse = _folded(segments), "/+"
    elif len(last) >= _LONG_SLUG and "{" not in last:
        path = folder + "/{slug}"
    if not query:
        return Skeleton(path[:_LONGEST], coarse[:_LONGEST], shape)
    names, more = _names(query)
    return Skeleton(f"{path}?{names}"[:_LONGEST], coarse[:_LONGEST] + "?*", shape | more)


def _without_values(path: str) -> str:
    path = _DATE.sub("{date}", path)
    if len(path) >= 8:
        path = _TOKEN.sub("{token}", _UUID.sub("{token}", path))
    return _NUMBER.sub("#", path)


def _folded(segments: list[str]) -> str:
    """Each segment once, in no order: what repeats is one skeleton however often it does."""
    return "/" + "/".join(sorted(set(segments))) + "/+"


def _names(query: str) -> tuple[str, int]:
    found = {parameter.partition("=")[0] for parameter in query.split("&")}
    names = "&".join(sorted(found))
    shape = FACETS if len(found) > 1 else 0
    if _VARIANT.search(names):
        shape |= VARIANT
    if _CALENDAR.search(names) or _DATE.search(query):
        shape |= CALENDAR
    if _SESSION.search(names) or _TOKEN.search(query):
        shape |= SESSION
    return names, shape


def section(url: str) -> str:
    """The URL up to and with its first folder, or with its `?`: where one piece of a site lies."""
    start = url.index("/", 8) + 1
    slash, question = url.find("/", start), url.find("?", start)
    if slash < 0 or 0 <= question < slash:
        slash = question
    return url[: slash + 1] if slash >= 0 else url


# -- parameters


def only_difference(one: str, other: str) -> str:
    """The name of the one parameter in which two URLs differ, by its value or by being there; empty when they
    differ in anything else."""
    path, _, query = one.partition("?")
    if not other.startswith(path) or other[len(path) : len(path) + 1] not in ("", "?"):
        return ""
    ours, theirs = set(query.split("&")), set(other[len(path) + 1 :].split("&"))
    names = {parameter.partition("=")[0] for parameter in ours ^ theirs if parameter}
    return names.pop() if len(names) == 1 else ""


def without(url: str, names: list[str]) -> str:
    """The URL with these parameters taken out; the same string when it has none of them."""
    path, _, query = url.partition("?")
    parameters = query.split("&")
    kept = [parameter for parameter in parameters if parameter.partition("=")[0] not in names]
    if len(kept) == len(parameters):
        return url
    return f"{path}?{'&'.join(kept)}" if kept else path
