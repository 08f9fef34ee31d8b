"""A page before the topic of a focused crawl: its score, and how urgent its links are.

Between the reading of a page and its result, in `step.py`; only where the settings or users' code have a topic.
Decides priorities alone: what is let in, the frontier decides.
"""

from __future__ import annotations

from msgspec.structs import replace

from skitter.focus.topic import Topic, priority_of_link
from skitter.model import Task
from skitter.settings.focus import FocusSettings
from skitter.worker.results import LinkChoice, Reading

_NO_CHOICE = LinkChoice()


class Focus:
    def __init__(self, topic: Topic, settings: FocusSettings) -> None:
        self._topic = topic
        self._floor = settings.floor

    def rank(self, task: Task, reading: Reading) -> Reading:
        """The reading with its score and its links by priority. A page that nobody scores leaves its links as
        they are, and hands on how many pages off the topic came before it."""
        page = reading.page
        if page is None:
            return reading
        score = reading.score
        if self._topic.scores_pages:
            score = max(score or 0.0, self._topic.score(page.title, page.text))
        if score is None:
            choice = replace(reading.choice or _NO_CHOICE, off=task.nesting)
            return replace(reading, choice=choice) if task.nesting else reading
        choice = replace(
            reading.choice or _NO_CHOICE,
            priority=priority_of_link(score),
            promising=self._promising(reading, priority_of_link(score, is_promising=True)),
            off=0 if score >= self._floor else task.nesting + 1,
        )
        return replace(reading, choice=choice, score=score)

    def rank_named(self, url: str) -> int:
        """How urgent a URL is that a sitemap or feed names: only its own words speak for it."""
        return priority_of_link(0.0, is_promising=self._topic.is_promised_by(url, ""))

    def _promising(self, reading: Reading, priority: int) -> dict[str, int]:
        page = reading.page
        assert page is not None
        is_promised = self._topic.is_promised_by
        return {
            found[0]: priority
            for link, found in zip(page.links, reading.targets, strict=True)
            if found is not None and is_promised(found[0], link.text)
        }
