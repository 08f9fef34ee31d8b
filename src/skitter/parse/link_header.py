"""The `Link` header (RFC 8288), for the one thing asked of it: which URL the page itself calls canonical.

Read with the page; the only way for a PDF or a text to say so. Never raises, and takes linear time.
"""

from __future__ import annotations

import re

_LONGEST = 8_192
_LINK = re.compile(r"<([^<>]*)>((?:[^<\"]|\"[^\"]*+\")*+)")
_PARAMETER = re.compile(r";\s*(rel|anchor)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


def canonical_in(header: str) -> str:
    """As it is written, to be resolved against the page's URL; empty when there is none."""
    for link in _LINK.finditer(header[:_LONGEST]):
        said = {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(link[2])}
        # with an anchor it speaks of another page
        if "canonical" in said.get("rel", "").lower().split() and "anchor" not in said:
            return link[1].strip()
    return ""
