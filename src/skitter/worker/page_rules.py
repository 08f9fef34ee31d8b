"""Follow these, keep those: of which pages the links are followed, and of which the body is archived.

Between the reading of a page and its packing, in `step.py`, where the settings have such rules. A page that is
not kept has its record, without body and text, and its row: what was asked for is known. Decides nothing by
content.
"""

from __future__ import annotations

from msgspec.structs import replace

from skitter.archive.digests import digests_of
from skitter.extend.patterns import Patterns
from skitter.model import Task
from skitter.settings.rules import RuleSettings
from skitter.worker.results import Answer, LinkChoice, Reading

_NO_CHOICE = LinkChoice()


class PageRules:
    def __init__(self, settings: RuleSettings) -> None:
        self._follow = _patterns(settings.follow)
        self._keep = _patterns(settings.keep)

    def followed(self, task: Task, reading: Reading) -> Reading:
        """Without the page's own links, unless it is a seed or matches. What users' code follows stays."""
        if self._follow is None or task.depth == 0 or self._follow.find(task.url, ""):
            return reading
        return replace(reading, choice=replace(reading.choice or _NO_CHOICE, kept={}))

    def kept(self, task: Task, answer: Answer, reading: Reading) -> Answer:
        """As much of the answer as is archived."""
        if self._keep is None or reading.page is None or self._keep.find(task.url, ""):
            return answer
        exchange = replace(answer.exchange, body=b"", truncated=True)
        return replace(answer, exchange=exchange, digests=digests_of(exchange))


def _patterns(globs: tuple[str, ...]) -> Patterns | None:
    if not globs:
        return None
    patterns = Patterns()
    patterns.add(0, globs, ("*",))
    return patterns
