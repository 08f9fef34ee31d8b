"""What links mean that sites write in other ways: rules `REGEX -> REPLACEMENT`, applied in their order.

Before a link has a key, so what comes out is what is known, decided and fetched. What becomes no URL stays as it
was. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skitter.urls.canonical import normalise

_ARROW = " -> "


class Rewriting:
    """Raises ValueError for a rule that is none."""

    def __init__(self, rules: Sequence[str]) -> None:
        self._rules = [_rule(text) for text in rules]

    def meant(self, url: str) -> str:
        """The normalised URL that is asked for instead."""
        changed = url
        for pattern, replacement in self._rules:
            changed = pattern.sub(replacement, changed)
        return url if changed == url else normalise(changed) or url


def _rule(text: str) -> tuple[re.Pattern[str], str]:
    pattern, arrow, replacement = text.partition(_ARROW)
    if not arrow or not pattern:
        raise ValueError(f"{text!r} is no rule: write REGEX -> REPLACEMENT")
    try:
        compiled = re.compile(pattern)
        re.compile(f"(?:{pattern})|").sub(replacement, "")
    except (re.error, IndexError) as error:
        raise ValueError(f"{text!r} is no rule: {error}") from None
    return compiled, replacement
