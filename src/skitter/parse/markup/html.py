"""HTML and XHTML: title, links, base, canonical, language and robots directives of one document.

The reader behind `read_page` for the types that most of a crawl consists of. Nearly every page is read in one
pass by the kernel in C. XHTML, other charsets and whatever a browser repairs in an odd way are left to the
tree (docs/adr/0005-html-parser.md). Both find the same, and neither may cost more than linear time on a
hostile page.
"""

from __future__ import annotations

import re
from functools import lru_cache

from skitter.model import Link
from skitter.parse.content import PageContent, Source
from skitter.parse.markup.charset import UTF_8, encoding_name, guess, prescan
from skitter.parse.markup.html_parts import Parts, Triple, follow, may_reserve_mining, page_of
from skitter.parse.markup.html_tree import TreeReader, requisites_of
from skitter.parse.media import HTML
from skitter.parse.text import MOST_CHARACTERS

try:
    from skitter.native._kernels import read_html as _read
except ImportError:

    def _read(*_: object) -> None:  # type: ignore[misc]
        """Not built: then no page is for the kernel."""


_tree = TreeReader()
# HTML 13.2.3.2 to the letter is for the tree; of what a charset is declared by, only these are plain.
_DECLARED = re.compile(r"[\w/.+-]*\s*;\s*charset=\s*([\w:.-]+)\s*", re.IGNORECASE | re.ASCII)
_XML_DECLARED = re.compile(rb"<\?xml version=\"1\.[01]\" encoding=\"([\w:.-]{1,40})\"[^>]*>")
# Encodings in which ASCII bytes are not ASCII characters, or not all of them.
_NOT_ASCII = frozenset(("UTF-16LE", "UTF-16BE", "ISO-2022-JP", "replacement"))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_DECLARATION = 100


class HtmlReader:
    def read(self, source: Source) -> PageContent:
        return read_in_one_pass(source) or _tree.read(source)


def read_in_one_pass(source: Source) -> PageContent | None:
    """None for a page that only the tree can read."""
    if source.media_type != HTML or may_reserve_mining(source):
        return None
    product = source.product.lower().encode()
    read = _read(source.body, source.with_text, source.with_anchors, product, Link, follow)
    if read is None:
        return None
    title, base, lang, xml_lang, metas, links, anchors, areas, frames, text, distinct = read[:11]
    charsets, is_ascii, stray = read[11:]
    charset = _charset(source, charsets, is_ascii, stray)
    if not charset:
        return None
    text = text[:MOST_CHARACTERS]
    framed = (("iframe", frames),) if frames else ()
    needed = requisites_of(source) if source.with_requisites else ()
    parts = Parts(title, base, lang, xml_lang, metas, links, anchors, areas, framed, text, distinct, needed)
    return page_of(parts, source, charset)


def _charset(source: Source, declared: list[Triple], is_ascii: bool, stray: bool) -> str:
    """The name of the encoding, when it is certain and these bytes mean in it what they mean in UTF-8."""
    body = source.body
    if body.startswith(_BYTE_ORDER_MARK):
        return UTF_8
    name = encoding_name(source.charset) if source.charset else ""
    name = name or _declared(body, declared, stray)
    if name == UTF_8 or (is_ascii and name not in _NOT_ASCII):
        return name
    return ""


def _declared(body: bytes, declared: list[Triple], stray: bool) -> str:
    """By meta elements and the XML declaration, if they agree and nothing else looks like a declaration; else
    by a prescan, which knows which one counts; guessed when there is none. Empty when the tree has to
    decide."""
    if len(declared) == 1 and not stray and not body.startswith(b"<?x"):
        return _name(*declared[0])
    names = {_name(*said) for said in declared}
    if body.startswith(b"<?x"):
        found = _XML_DECLARED.match(body)
        names.add(encoding_name(found[1].decode()) if found and names else "")
    if stray or len(names) > 1:
        return prescan(body)
    return names.pop() if names else guess(body)


def _name(charset: str | None, content: str | None, _: str | None) -> str:
    if len(charset or "") + len(content or "") > _LONGEST_DECLARATION:
        return ""
    return _name_of_short(charset, content)


@lru_cache(maxsize=256)
def _name_of_short(charset: str | None, content: str | None) -> str:
    if charset is None:
        found = _DECLARED.fullmatch(content or "")
        label = found[1] if found else ""
    else:
        label = charset if content is None else ""
    name = encoding_name(label)
    return "" if name.startswith(("UTF-16", "x-user")) else name
