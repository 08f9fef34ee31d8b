"""How much of a text a few words are, and whether a link speaks of them.

For focused crawls, and behind `Page.density`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# A page of which every 50th word is one of those asked for is as much about them as can be.
_FULL_DENSITY = 50
# Also between the words of a URL, which `\b` would take `_` for a letter in.
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"


class Words:
    """Words and phrases, in whatever case. A `*` at the end of a word stands for any ending."""

    def __init__(self, words: Iterable[str]) -> None:
        patterns = [_pattern(word) for word in words if word.strip("* \t\n")]
        self._pattern = re.compile(f"{_BEFORE}(?:{'|'.join(patterns)}){_AFTER}") if patterns else None

    def density(self, text: str) -> float:
        """From 0 to 1."""
        count = len(text.split())
        if self._pattern is None or not count:
            return 0.0
        hits = sum(1 for _ in self._pattern.finditer(text.casefold()))
        return min(1.0, _FULL_DENSITY * hits / count)

    def are_in(self, text: str) -> bool:
        return self._pattern is not None and self._pattern.search(text.casefold()) is not None


def _pattern(word: str) -> str:
    """White space within a phrase is any; in URLs hyphens and underscores stand for it."""
    parts = [
        re.escape(part.rstrip("*")) + (r"[^\W_]*" if part.endswith("*") else "")
        for part in word.casefold().split()
    ]
    return r"[\s_-]+".join(parts)
