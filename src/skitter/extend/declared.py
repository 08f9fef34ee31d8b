"""Extractors without code: the `[extract.NAME]` tables of the settings, as functions that see pages.

Beside the users' own functions, and run inline: selectors of turbohtml are fast and cannot hang. A selector
that is none is found when the crawl starts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import turbohtml
from turbohtml import Element

from skitter.errors import SettingsError
from skitter.extend.api import Hook, HookKind, number
from skitter.extend.extractor import Described, Extractor
from skitter.extend.page import Page, text_of
from skitter.extend.patterns import complaint_about
from skitter.settings.plugins import ExtractRule, FieldRule
from skitter.urls.canonical import normalise

_FORMS = ("text", "number", "url", "urls", "html")
_EMPTY = turbohtml.parse("<p>")
_Take = Callable[[Page, Any], Any]


def extractors_of(rules: Mapping[str, ExtractRule]) -> list[Extractor]:
    return [_extractor(name, rule) for name, rule in rules.items()]


def _extractor(name: str, rule: ExtractRule) -> Extractor:
    patterns = _texts(rule.match)
    key = _texts(rule.key)
    for pattern in patterns:
        if complaint := complaint_about(pattern):
            raise SettingsError(f"[extract.{name}] match: {complaint}")
    if not rule.fields:
        raise SettingsError(f'[extract.{name}] has no fields: write fields.name = "h1"')
    if unknown := [field for field in key if field not in rule.fields]:
        raise SettingsError(f"[extract.{name}] key names {unknown[0]}, which is none of its fields")
    hook = Hook(kind=HookKind.PAGE, patterns=patterns, key=key, inline=True)
    source = hashlib.sha256(msgspec.json.encode(rule, order="sorted")).hexdigest()[:12]
    described = Described(
        name=name, hook=hook, plugin=f"[extract.{name}]", version=source, origin=f"[extract.{name}]"
    )
    return Extractor(described=described, function=_function(name, rule))


def _function(name: str, rule: ExtractRule) -> Callable[[Page], Iterator[dict[str, Any]]]:
    takes = {field: _take(f"[extract.{name}] {field}", how) for field, how in rule.fields.items()}
    kind = rule.type or name
    if rule.each:
        _try_css(f"[extract.{name}] each", rule.each)

    def extract(page: Page) -> Iterator[dict[str, Any]]:
        for root in page.css(rule.each) if rule.each else (page.tree,):
            values = {field: take(page, root) for field, take in takes.items()}
            # a page that has nothing of it is not a page of this kind
            if any(value not in (None, []) for value in values.values()):
                yield {"@type": kind, **values}

    return extract


def _take(where: str, how: str | FieldRule) -> _Take:
    rule = FieldRule(css=how) if isinstance(how, str) else how
    if bool(rule.css) == bool(rule.xpath):
        raise SettingsError(f"{where}: give either css or xpath")
    if rule.as_ not in _FORMS:
        raise SettingsError(f"{where}: as is {rule.as_!r} and must be one of {', '.join(_FORMS)}")
    if rule.css:
        _try_css(where, rule.css)
    else:
        _try_xpath(where, rule.xpath)
    takes_all = rule.all or rule.as_ == "urls"

    def take(page: Page, root: Any) -> Any:
        if rule.css and not takes_all:
            one = root.select_one(rule.css)
            found = [] if one is None else [one]
        else:
            found = root.select(rule.css) if rule.css else root.xpath(rule.xpath)
        values = [value for each in found if (value := _value(page, each, rule)) is not None]
        return values if takes_all else next(iter(values), None)

    return take


def _value(page: Page, found: Any, rule: FieldRule) -> Any:
    is_url = rule.as_ in ("url", "urls")
    if isinstance(found, Element):
        if rule.as_ == "html":
            return found.html
        text = found.attr(rule.attr) if rule.attr else _address(found) if is_url else text_of(found)
        if rule.as_ == "number" and not rule.attr:
            text = found.attr("content") or text
    else:
        text = str(found)
    if text is None:
        return None
    if is_url:
        return normalise(text, page.base)
    return number(text) if rule.as_ == "number" else " ".join(text.split())


def _address(element: Element) -> str | None:
    return element.attr("href") or element.attr("src")


def _texts(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _try_css(where: str, selector: str) -> None:
    try:
        _EMPTY.select(selector)
    except ValueError as error:
        raise SettingsError(f"{where}: {selector!r} is no CSS selector: {error}") from None


def _try_xpath(where: str, expression: str) -> None:
    try:
        _EMPTY.xpath(expression)
    except (ValueError, TypeError) as error:
        raise SettingsError(f"{where}: {expression!r} is no XPath: {error}") from None
