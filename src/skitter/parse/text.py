"""The main text of a document: what is left without navigation, page furniture and forms. Pure.

Of the one `main` element, else of the one `article`, else of the whole page. Blocks, rows and `br` stand on
lines of their own, without blank lines between them; the cells of a row are separated by a tab; white space
is one space, but kept in `pre` and `textarea`. Pictures in SVG, scripts and the head have no text. This
defines what the kernel in C says as well (native/core/markup/tree.h). Its cost must stay linear, its output
near the page's size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from turbohtml import Document, Element, Text

MOST_CHARACTERS = 2_000_000
# Not forms: there are sites that put the whole page into one.
_FURNITURE = frozenset(("nav", "aside", "footer", "dialog", "menu", "noscript", "button", "select"))
_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "dialog", "complementary"))
_WITH_ROLE = ",".join(f'[role="{role}"]' for role in sorted(_ROLES))
_HIDDEN = frozenset(("head", "title", "script", "style", "template", "iframe", "noembed", "noframes", "svg"))
_VERBATIM = frozenset(("pre", "listing", "xmp", "textarea"))
_WHITE = re.compile("[ \t\n\f\r]+")
# What stands between two texts: the strongest of what the elements between them ask for.
_NOTHING, _SPACE, _CELL, _BLOCK = range(4)
_GAPS = ("", " ", "\t", "\n")
_ASKED = {
    **dict.fromkeys(("button", "select", "textarea", "noscript", "iframe", "svg"), _SPACE),
    **dict.fromkeys(("td", "th"), _CELL),
    **dict.fromkeys(
        """address article aside blockquote body br caption center colgroup dd details dialog dir div dl dt
        fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing
        main menu nav ol optgroup option p pre search section summary table tbody tfoot thead tr
        ul xmp""".split(),
        _BLOCK,
    ),
}


class MainPart(NamedTuple):
    """The element that the main text is of, None where there is none; the tags and the elements that are left out
    of it. The element itself is not, whatever its role."""

    root: Element | None
    left_out: frozenset[str]
    with_role: frozenset[Element]


def parts_words(element: Element) -> bool:
    """Whether the words before and behind the element are two words even where it is left out."""
    return element.tag in _ASKED


def main_text(document: Document, in_templates: frozenset[Element] = frozenset()) -> str:
    part = main_part(document, in_templates)
    return "" if part.root is None else _text_of(part.root, part.left_out, part.with_role)


def main_part(document: Document, in_templates: frozenset[Element] = frozenset()) -> MainPart:
    main, root = _main(document, in_templates), document.root
    with_role = frozenset(document.select(_WITH_ROLE))
    if main is not None:
        return MainPart(main, _FURNITURE | _HIDDEN, with_role)
    # The header of a page is its banner; that of an article or of the main part is its headline.
    left_out = _FURNITURE | _HIDDEN | {"header"}
    return MainPart(None if root in with_role else root, left_out, with_role)


def _main(document: Document, in_templates: frozenset[Element]) -> Element | None:
    """The one `main` element, or the one article; several articles are a list of teasers, which is the page."""
    for tag in ("main", "article"):
        found = [element for element in document.find_all(tag) if element not in in_templates]
        if len(found) == 1:
            return found[0]
    return None


def _text_of(root: Element, left_out: frozenset[str], with_role: frozenset[Element]) -> str:
    """With a stack of its own, since trees may be deep. In one function: in methods it takes three times as
    long."""
    pieces: list[str] = []
    path: list[tuple[Iterator[object], int, int]] = []
    children: Iterator[object] = iter(root)
    gap = asked = verbatim = was_verbatim = 0
    while True:
        for child in children:
            if type(child) is Text:
                data = child.data
                if verbatim:
                    bare, leads, trails = data, False, False
                else:
                    bare = " ".join(data.split() if data.isascii() else filter(None, _WHITE.split(data)))
                    leads, trails = data[:1] != bare[:1], data[-1:] != bare[-1:]
                if leads and not gap:
                    gap = _SPACE
                if bare:
                    if gap and pieces and not (gap == _BLOCK and pieces[-1][-1] == "\n"):
                        pieces.append(_GAPS[gap])
                    pieces.append(bare)
                    gap = _SPACE if trails else _NOTHING
            elif isinstance(child, Element):
                tag = child.tag
                asks = _ASKED.get(tag, _NOTHING)
                if asks > gap:
                    gap = asks
                if tag in left_out or child in with_role:
                    continue
                path.append((children, asked, was_verbatim))
                children, asked, was_verbatim = iter(child), asks, verbatim
                verbatim = verbatim or tag in _VERBATIM
                break
        else:
            if not path:
                return "".join(pieces)[:MOST_CHARACTERS]
            gap = max(gap, asked)
            verbatim = was_verbatim
            children, asked, was_verbatim = path.pop()
