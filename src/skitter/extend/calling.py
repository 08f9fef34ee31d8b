"""Calls the extractors of one page, each within its limits, and collects what they make of it.

In the process that runs users' code, in a worker for those that are inline, and in tests. Of an extractor that
raises, is late or makes too much, nothing is kept for that page; the others are not touched by it. Never lets an
exception of users' code out.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from skitter.extend.api import Content, HookKind
from skitter.extend.extractor import Extractor, Fault, PageResult
from skitter.extend.items import MOST_BYTES, MOST_ITEMS, Row, WrongItem, row_of, shown
from skitter.extend.page import Page, PageLink, checked_priority
from skitter.extend.patterns import Patterns
from skitter.extend.structured import type_of
from skitter.model import FaultKind

Limit = Callable[[], AbstractContextManager[None]]
Watched = Callable[[int], None]
_LONGEST_FAULT = 500
# Readers first, for they say what the text is; the choice of links last.
_ORDER = (HookKind.READER, HookKind.PAGE, HookKind.SCORE, HookKind.LINKS)


class TooLate(BaseException):
    """Ends users' code that takes too long. No `Exception`: theirs must not catch it by accident."""


class TooMuch(Exception):
    pass


def call_extractors(
    page: Page,
    extractors: Sequence[Extractor],
    numbers: Iterable[int],
    limit: Limit = nullcontext,
    watched: Watched = lambda number: None,
) -> PageResult:
    """`numbers` are those of the extractors that the page matches. Each runs within `limit()`, and `watched`
    is told before which one it is."""
    result = PageResult()
    for number in sorted(numbers, key=lambda each: _ORDER.index(extractors[each].kind)):
        watched(number)
        page.followed.clear()
        page.posted.clear()
        fault = _call(page, number, extractors[number], result, limit)
        if fault is not None:
            result.faults.append(fault)
            continue
        result.followed += [(url, priority, number) for url, priority in page.followed]
        result.posted += [(*form, number) for form in page.posted]
    return result


def _call(page: Page, number: int, extractor: Extractor, result: PageResult, limit: Limit) -> Fault | None:
    try:
        with limit():
            _CALLS[extractor.kind](page, number, extractor, result)
    except TooLate:
        return Fault(number, FaultKind.LATE, "it took too long")
    except MemoryError:
        return Fault(number, FaultKind.MEMORY, "it needs more than plugins.memory")
    except TooMuch as error:
        return Fault(number, FaultKind.OUTPUT, str(error))
    except WrongItem as error:
        return Fault(number, FaultKind.WRONG_ITEM, str(error)[:_LONGEST_FAULT])
    except _InCorrection as error:
        text = describe_error(error.cause, error.extractor.function)
        return Fault(number, FaultKind.RAISED, text, error.extractor.name)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        return Fault(number, FaultKind.RAISED, describe_error(error, extractor.function))
    return None


class _InCorrection(Exception):
    def __init__(self, extractor: Extractor, cause: Exception) -> None:
        super().__init__()
        self.extractor, self.cause = extractor, cause


def _items(page: Page, number: int, extractor: Extractor, result: PageResult) -> None:
    key = extractor.described.hook.key
    rows: list[tuple[int, Row]] = []
    size = 0
    for item in yielded_items(page, extractor):
        row = _row(item, extractor, key)
        size += len(row.json)
        if len(rows) >= MOST_ITEMS:
            raise TooMuch(f"more than {MOST_ITEMS:,} items of one page")
        if size > MOST_BYTES:
            raise TooMuch(f"items of more than {MOST_BYTES:,} bytes of one page")
        rows.append((number, row))
    result.items += rows


def yielded_items(page: Page, extractor: Extractor) -> Iterator[Any]:
    """As the function made them, and its corrections left them."""
    for item in _yielded(extractor.function(page)):
        yield from _corrected(item, page, extractor.corrections)


def _yielded(made: Any) -> Iterator[Any]:
    """A generator's, a list's, or the one item that was returned; None is none."""
    if made is None:
        return iter(())
    if isinstance(made, list | tuple) or (hasattr(made, "__next__") and hasattr(made, "__iter__")):
        return (item for item in made if item is not None)
    return iter((made,))


def _row(item: object, extractor: Extractor, key: tuple[str, ...]) -> Row:
    if extractor.described.plugin in ("structured", "article") and isinstance(item, dict):
        return row_of({**item, "@type": type_of(item) or "Thing"}, extractor.name, key)
    return row_of(item, extractor.name, key)


def _corrected(item: Any, page: Page, corrections: Sequence[Extractor]) -> Iterator[Any]:
    """The item as the corrections that are for it leave it; none when one dropped it."""
    for correction in corrections:
        hook = correction.described.hook
        if hook.item_type and not (isinstance(item, dict) and type_of(item) == hook.item_type):
            continue
        if hook.patterns and not _matches(hook.patterns, page.url):
            continue
        try:
            item = correction.function(item, page)
        except Exception as error:
            raise _InCorrection(correction, error) from error
        if item is None:
            return
    yield item


def _matches(patterns: Sequence[str], url: str) -> bool:
    matcher = Patterns()
    matcher.add(0, patterns, ("*",))
    return bool(matcher.find(url, ""))


def _score(page: Page, number: int, extractor: Extractor, result: PageResult) -> None:
    score = extractor.function(page)
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise WrongItem(f"a score is a number from 0 to 1, not {shown(score)}")
    result.score = max(float(score), result.score or 0.0)


def _links(page: Page, number: int, extractor: Extractor, result: PageResult) -> None:
    """Several hooks each see what the one before left."""
    before = page.links
    if result.chosen is not None:
        kept = dict(result.chosen)
        before = [link.at(kept[link.url]) for link in page.links if link.url in kept]
    chosen = [*_yielded(extractor.function(page, before))]
    for link in chosen:
        if not isinstance(link, PageLink):
            raise WrongItem(f"a links hook returns links that it was given, not {shown(link)}")
    result.chosen = [(link.url, checked_priority(link.priority)) for link in chosen]


def _content(page: Page, number: int, extractor: Extractor, result: PageResult) -> None:
    content = extractor.function(page)
    if content is None:
        return
    if not isinstance(content, Content):
        raise WrongItem(f"a reader returns a skitter.Content, not {shown(content)}")
    if len(content.text) + len(content.title) > MOST_BYTES or len(content.links) > MOST_ITEMS:
        raise TooMuch(f"a text of more than {MOST_BYTES:,} characters, or more than {MOST_ITEMS:,} links")
    links = tuple(map(str, content.links))
    result.content = Content(title=content.title, text=content.text, links=links, language=content.language)
    page.__dict__ |= {"text": content.text, "title": content.title}


_CALLS: dict[HookKind, Callable[[Page, int, Extractor, PageResult], None]] = {
    HookKind.READER: _content,
    HookKind.PAGE: _items,
    HookKind.SCORE: _score,
    HookKind.LINKS: _links,
}


def describe_error(error: BaseException, function: object) -> str:
    """`ValueError: no price (shop.py line 12)`: the last line of the user's own file."""
    text = str(error)
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" ({file.rpartition('/')[2]} line {lines[-1].lineno})" if lines else ""
    return said[:_LONGEST_FAULT] + where
