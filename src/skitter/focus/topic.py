"""What a focused crawl is about, and how urgent a page's links are for it.

Made of `[focus]` in the settings: words, a model that was trained from example pages, or both. A worker asks it
about every page it reads (`worker/focusing.py`). Pure.
"""

from __future__ import annotations

from skitter.focus.classifier import Model
from skitter.focus.words import Words

# The priority of a link is from 10, where its page's score is 0, to 70, where it is 1.
_LEAST_URGENT, _SPAN = 10, 60
_PROMISING = 0.6
"""What a link scores at least that speaks of the topic itself, wherever it stands."""


class Topic:
    def __init__(self, words: tuple[str, ...] = (), model: Model | None = None) -> None:
        self._words = Words(words) if words else None
        self._model = model
        self._of_links = Words((*words, *(model.telling if model is not None else ())))

    @property
    def scores_pages(self) -> bool:
        """False where users' code alone does."""
        return self._words is not None or self._model is not None

    def score(self, title: str, text: str) -> float:
        """How much a page is about it, from 0 to 1."""
        said = f"{title}\n{text}"
        by_words = 0.0 if self._words is None else self._words.density(said)
        return by_words if self._model is None else max(by_words, self._model.score(said))

    def is_promised_by(self, url: str, anchor: str) -> bool:
        return self._of_links.are_in(anchor) or self._of_links.are_in(url)


def priority_of_link(score: float, *, is_promising: bool = False) -> int:
    return _LEAST_URGENT + round(_SPAN * (max(score, _PROMISING) if is_promising else score))
