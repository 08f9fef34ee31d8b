"""What users write above their functions: the decorators, and the values beside them.

`skitter.page`, `correct`, `score`, `links` and `reader` say of a function when it is called. They only note
that on the function itself: nothing is registered anywhere, so to import a plugin changes nothing.
`loading.py` finds the notes. docs/plugins.md describes each hook for users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar, overload

import msgspec

from skitter.errors import UsageError
from skitter.extend.patterns import complaint_about

Function = TypeVar("Function", bound=Callable[..., Any])
NOTE = "__skitter_hooks__"


class HookKind(StrEnum):
    """When a function is called."""

    PAGE = "page"
    CORRECT = "correct"
    SCORE = "score"
    LINKS = "links"
    READER = "reader"


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """What a decorator notes. `of` is the built-in extractor that a `correct` mends, `item_type` the type of the
    items that it is for."""

    kind: HookKind
    patterns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    inline: bool = False
    of: str = ""
    item_type: str = ""


class StructuredData:
    """Stands for the built-in `structured` in `skitter.correct`: what pages say in JSON-LD, microdata, OpenGraph
    and RDFa."""

    name = "structured"


class Article:
    """Stands for the built-in `article` in `skitter.correct`."""

    name = "article"


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """What a `reader` makes of a document of its type: the title and the text for the archive's tables, and the
    links to follow."""

    title: str = ""
    text: str = ""
    links: Sequence[str] = ()
    language: str = ""


@overload
def page(pattern: Function, /) -> Function: ...
@overload
def page(
    *patterns: str, type: str | Sequence[str] = (), key: str | Sequence[str] = (), inline: bool = False
) -> Callable[[Function], Function]: ...
def page(
    *patterns: Any, type: str | Sequence[str] = (), key: str | Sequence[str] = (), inline: bool = False
) -> Any:
    """The function gets pages that match: it yields (or returns) items, and may call `page.follow`.

    `type` is a media type such as application/json, which is then fetched too; without it pages of HTML match.
    `key` names the fields that make two dicts of it one item. `inline` runs a fast function in the worker
    itself."""
    return _noted(patterns, HookKind.PAGE, types=_words(type), key=_words(key), inline=inline)


@overload
def score(pattern: Function, /) -> Function: ...
@overload
def score(*patterns: str, inline: bool = False) -> Callable[[Function], Function]: ...
def score(*patterns: Any, inline: bool = False) -> Any:
    """The function says from 0 to 1 how much a page is about the topic: its links are asked for in that order."""
    return _noted(patterns, HookKind.SCORE, inline=inline)


@overload
def links(pattern: Function, /) -> Function: ...
@overload
def links(*patterns: str, inline: bool = False) -> Callable[[Function], Function]: ...
def links(*patterns: Any, inline: bool = False) -> Any:
    """The function gets a page and all of its links, and returns those that are to be followed; `link.at(80)` is
    the same link with a priority."""
    return _noted(patterns, HookKind.LINKS, inline=inline)


def reader(*types: str) -> Callable[[Function], Function]:
    """The function reads documents of these media types, which are then fetched: it returns a
    `skitter.Content`."""
    if not types or not all("/" in str(name) for name in types):
        raise UsageError('skitter.reader needs a media type: write @skitter.reader("image/png")')
    return _note_on(Hook(kind=HookKind.READER, patterns=("*",), types=types))


def correct(built_in: Any, *patterns: str, type: str = "") -> Callable[[Function], Function]:
    """The function gets an item of a built-in extractor and its page: it returns the item, another one, or
    None to drop it. `type` is the type of the items that it is for. It brings the built-in along."""
    name = getattr(built_in, "name", "")
    if name not in (StructuredData.name, Article.name):
        raise UsageError("skitter.correct mends skitter.StructuredData or skitter.Article, and nothing else")
    _check(patterns)
    return _note_on(Hook(kind=HookKind.CORRECT, patterns=patterns, of=name, item_type=type))


def _noted(patterns: tuple[Any, ...], kind: HookKind, **more: Any) -> Any:
    """Also for a decorator without parentheses, which is given the function itself."""
    if len(patterns) == 1 and callable(patterns[0]):
        return _note_on(Hook(kind=kind, **more))(patterns[0])
    _check(patterns)
    return _note_on(Hook(kind=kind, patterns=patterns, **more))


def _note_on(hook: Hook) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        setattr(function, NOTE, (*getattr(function, NOTE, ()), hook))
        return function

    return decorate


def _check(patterns: Sequence[object]) -> None:
    for pattern in patterns:
        if complaint := complaint_about(pattern):
            raise UsageError(complaint)


def _words(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


_NUMBER = re.compile(r"[+-]?\d[\d.,' \u00a0\u202f\u2019_]*")
_GROUPS = re.compile(r"[' \u00a0\u202f\u2019_]")


def number(text: object) -> float | None:
    """The first number in a text, as people write it: `1,299.50`, `1.299,50 EUR`, `19,50`, `1 299`. None where
    there is none. A single comma or point with three digits after it groups thousands."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text)
    found = _NUMBER.search(str(text or ""))
    if found is None:
        return None
    digits = _GROUPS.sub("", found[0]).rstrip(".,")
    return float(_with_point(digits))


def _with_point(digits: str) -> str:
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and point >= 0:
        # whichever comes last is the decimal mark
        whole, _, rest = digits.rpartition("," if comma > point else ".")
        return f"{whole.replace(',', '').replace('.', '')}.{rest}"
    mark = "," if comma >= 0 else "."
    whole, _, rest = digits.partition(mark)
    is_group = digits.count(mark) > 1 or (
        len(rest) == 3 and mark == "," and whole.lstrip("+-") not in ("", "0")
    )
    return digits.replace(mark, "") if is_group else digits.replace(mark, ".")
