"""The main text of a document: what is left without navigation, page furniture and forms. Pure.

Last in the reading of a page, because it takes the tree apart. By landmarks alone, which most sites have by now
and no site is harmed by; a page without any gives its whole text. Its cost must stay linear, and its
output near the size of the page, whatever the page nests.
"""

from __future__ import annotations

from turbohtml import Document, Element

MOST_CHARACTERS = 2_000_000
# Not forms: there are sites that put the whole page into one.
_FURNITURE = ("nav", "aside", "footer", "dialog", "menu", "noscript", "button", "select")
_ROLES = ",".join(
    f'[role="{role}"]'
    for role in ("navigation", "banner", "contentinfo", "search", "dialog", "complementary")
)
_TABLE_PARTS = ("table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th")
# A table is laid out as a grid, so every row is as wide as the widest: 114 KB of HTML became 100 MB of blanks.
_LARGEST_GRID = 10_000_000


def main_text(document: Document, body: bytes) -> str:
    """`body` is what the document was parsed from."""
    whole = _main(document)
    root: Document | Element = document if whole is None else whole
    if len(document.find_all("tr")) * len(body) > _LARGEST_GRID:
        _flatten_tables(document)
    _remove_furniture(document, body, within_main=whole is not None)
    return root.to_text()[:MOST_CHARACTERS]


def _main(document: Document) -> Element | None:
    """The one `main` element, or the one article; several articles are a list of teasers, which is the page."""
    for tag in ("main", "article"):
        found = document.find_all(tag)
        if len(found) == 1:
            return found[0]
    return None


def _remove_furniture(document: Document, body: bytes, *, within_main: bool) -> None:
    # The header of a page is its banner; that of an article or of the main part is its headline.
    tags = _FURNITURE if within_main else (*_FURNITURE, "header")
    # All are looked up first: after a removal the index of elements has to be built anew, for 15 us.
    elements = [element for tag in tags for element in document.find_all(tag)]
    if not elements and b"role=" in body:
        document.remove(_ROLES)
    for element in elements:
        element.decompose()


def _flatten_tables(document: Document) -> None:
    for tag in _TABLE_PARTS:
        for element in document.find_all(tag):
            element.tag = "div"
