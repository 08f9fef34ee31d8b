"""The ways to reach whoever a page is of: the built-in `contacts`, off unless it is named.

E-mail addresses and telephone numbers that a page links or states for machines, its accounts elsewhere, and the
organisation it names. Only what is meant to be found: texts are not searched for numbers. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from skitter.extend.page import Page
from skitter.extend.structured import type_of

_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_PHONE = re.compile(r"\+?[\d\s()./-]{5,30}")
_ELSEWHERE = (
    "linkedin.com facebook.com instagram.com twitter.com x.com youtube.com github.com mastodon.social bsky.app "
    "tiktok.com pinterest.com"
).split()
_ORGANISATIONS = frozenset(
    "Organization LocalBusiness Corporation Person NGO School Store Restaurant ContactPoint".split()
)
_MOST = 50


def contacts(page: Page) -> Iterator[dict[str, Any]]:
    """One item of type `Contacts` for a page that has any."""
    named = [thing for thing in page.data if type_of(thing) in _ORGANISATIONS]
    found = {
        "emails": _once([*_linked(page, "mailto:", _EMAIL), *_said(named, "email", _EMAIL)]),
        "phones": _once([*_linked(page, "tel:", _PHONE), *_said(named, "telephone", _PHONE)]),
        "accounts": _once([link.url for link in page.links if _is_elsewhere(link.url)]),
        "names": _once([name for thing in named for name in _texts(thing.get("name"))]),
    }
    if any(found.values()):
        yield {"@type": "Contacts", "url": page.url, **found}


def _linked(page: Page, scheme: str, form: re.Pattern[str]) -> Iterator[str]:
    for element in page.css(f'a[href^="{scheme}" i]'):
        said = unquote((element.attr("href") or "")[len(scheme) :].partition("?")[0]).strip()
        yield from (part.strip() for part in said.split(",") if form.fullmatch(part.strip()))


def _said(things: list[dict[str, Any]], name: str, form: re.Pattern[str]) -> Iterator[str]:
    """Also in the parts of a thing, such as a `contactPoint`."""
    for thing in things:
        for key, value in thing.items():
            if key == name:
                said = (text.removeprefix("mailto:").strip() for text in _texts(value))
                yield from (text for text in said if form.fullmatch(text))
            elif isinstance(value, dict | list):
                parts = value if isinstance(value, list) else [value]
                yield from _said([part for part in parts if isinstance(part, dict)], name, form)


def _is_elsewhere(url: str) -> bool:
    host, _, path = url.partition("//")[2].partition("/")
    return bool(path) and any(host == site or host.endswith(f".{site}") for site in _ELSEWHERE)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]


def _once(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))[:_MOST]
