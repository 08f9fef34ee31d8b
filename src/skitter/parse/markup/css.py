"""What a stylesheet needs to look as it does: the targets of its `url(...)`, `image-set(...)` and `@import`.

One pass of a regular expression over the tokens that can hide or hold an address (CSS Syntax 4.3): comments,
strings, `url(`, at-rules and the ends of statements. Every token either matches to its end or is given up at the
next delimiter, so that hostile CSS costs linear time. Nothing is resolved, nothing but addresses is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skitter.parse.content import PageContent, Source
from skitter.parse.directives import read_directives
from skitter.parse.markup.charset import decode
from skitter.parse.markup.href import clean_href

CSS = "text/css"
# Characters of a sheet that are read: a million take 0.2 s, dense with addresses or made to be slow.
_MOST_READ = 1_000_000
# A letter is matched before what may not stand in front of it is looked at: so the search can skip to letters.
_TOKEN = re.compile(
    r"""/\*.*?(?:\*/|\Z)
    | "(?P<double>(?:[^"\\\n\r\f]++|\\.)*+)"?
    | '(?P<single>(?:[^'\\\n\r\f]++|\\.)*+)'?
    | u(?<![\w\-]u)rl\([ \t\n\r\f]*+
      (?:(?=["'])(?P<quoted>)|(?P<bare>(?:[^ \t\n\r\f"'()\\]++
        |\\(?:[0-9a-f]{1,6}+[ \t\n\r\f]?+|.))++)[ \t\n\r\f]*+(?:\)|\Z))
    | @(?P<rule>[a-z]++)
    | i(?<![\w]i)mage-(?P<set>set)\(
    | (?P<end>[;{}])""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\n\r\f])?|\r\n|([^0-9a-fA-F]))", re.DOTALL)


def references(css: str) -> Iterator[str]:
    """The addresses that a stylesheet, or a style attribute, shows or imports, as it writes them; in its order
    and as often as it does. Data and other schemes that no crawler follows are left out."""
    if "(" in css or "@" in css:
        for raw in _raw(css[:_MOST_READ]):
            if href := clean_href(_ESCAPE.sub(_unescaped, raw) if "\\" in raw else raw):
                yield href


def _raw(css: str) -> Iterator[str]:
    rule, expects, in_set = "", False, False
    for token in _TOKEN.finditer(css):
        match token.lastgroup:
            case "double" | "single":
                if expects or in_set:
                    yield token[token.lastgroup]
                    expects = False
            case "quoted":
                expects = rule != "namespace"
            case "bare":
                # the address of a namespace is a name
                if rule != "namespace":
                    yield token["bare"]
                expects = False
            case "rule":
                rule = token["rule"].lower()
                expects = rule == "import"
            case "set":
                in_set = True
            case "end":
                rule, expects, in_set = "", False, False


def _unescaped(found: re.Match[str]) -> str:
    if not found[1]:
        return found[2] if found[2] and found[2] not in "\n\r\f" else ""
    code = int(found[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "�"


class CssReader:
    def read(self, source: Source) -> PageContent:
        text, charset = decode(source.body, source.charset)
        found = dict.fromkeys(references(text)) if source.with_requisites else ()
        return PageContent(
            media_type=source.media_type,
            base=source.url,
            directives=read_directives(
                source.robots_tags,
                product=source.product,
                signal=source.content_signal,
                tdm=source.tdm,
                tdm_policy=source.tdm_policy,
            ),
            charset=charset,
            requisites=tuple(found)[: source.max_links],
        )
