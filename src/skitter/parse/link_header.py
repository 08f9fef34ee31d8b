"""The `Link` header (RFC 8288): which URL the page itself calls canonical, and the sitemaps and feeds it names.

Read with the page; the only way for a PDF or a text to say so. Never raises, and takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skitter.parse.markup.html_parts import is_feed

_LONGEST = 8_192
_MOST_FILES = 20
_LINK = re.compile(r"<([^<>]*)>((?:[^<\"]|\"[^\"]*+\")*+)")
_PARAMETER = re.compile(r";\s*(rel|anchor|type)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


def canonical_in(header: str) -> str:
    """As it is written, to be resolved against the page's URL; empty when there is none."""
    return next((href for href, rel, _ in _links(header) if "canonical" in rel), "")


def files_in(header: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sitemaps and feeds, as they are written; the first few of each."""
    links = list(_links(header))
    sitemaps = [href for href, rel, _ in links if "sitemap" in rel]
    feeds = [href for href, rel, type_ in links if is_feed(rel, type_)]
    return tuple(sitemaps[:_MOST_FILES]), tuple(feeds[:_MOST_FILES])


def _links(header: str) -> Iterator[tuple[str, list[str], str]]:
    """Each link with its relations and its type. One with an anchor speaks of another page."""
    for link in _LINK.finditer(header[:_LONGEST]):
        said = {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(link[2])}
        if "anchor" not in said:
            yield link[1].strip(), said.get("rel", "").lower().split(), said.get("type", "")
