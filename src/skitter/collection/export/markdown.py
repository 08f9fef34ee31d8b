"""A page as Markdown: the part of it that is its text, with headings, lists, tables, code and links.

One of the exports, and of the same region as `text` (`parse/text.py`): what one leaves out, the other does too,
and no word of the text is lost. The library's own search for the main content lost some: of one page in five of
Python's documentation it kept less than half of the words. `bench.markdown` measures.
"""

from __future__ import annotations

from turbohtml import Text

from skitter.parse.content import PageContent, Source
from skitter.parse.markup.html_tree import in_templates, parse_tree
from skitter.parse.media import HTML, XHTML
from skitter.parse.text import main_part, parts_words


def markdown_of(body: bytes, content: PageContent) -> str:
    """Of a page that was read as `content`, with absolute links; the text itself of what is no HTML."""
    if content.media_type not in (HTML, XHTML):
        return content.text
    source = Source(body=body, url=content.base, media_type=content.media_type, charset=content.charset)
    document, _ = parse_tree(source)
    part = main_part(document, in_templates(document))
    if part.root is None:
        return ""
    document.resolve_links(content.base)
    furniture = [element for tag in sorted(part.left_out) for element in part.root.find_all(tag)]
    furniture += [element for element in part.with_role if element is not part.root]
    for element in furniture:
        if parts_words(element) and element.parent is not None:
            element.insert_before(Text(" "))
        element.decompose()
    for element in part.root.find_all("textarea"):
        element.insert_before(Text(" "))
        element.insert_after(Text(" "))
    return part.root.to_markdown() + "\n"
