"""What a page and its host reserve: recorded with every page, obeyed as far as the settings say.

Between reading a page and making its result, in `step.py`. A host's own word (the `Content-Signal` of its
robots.txt, its tdmrep.json) comes with the lease and counts where the page itself says nothing. The table of what
is obeyed: docs/opt-outs.md.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from skitter.archive.digests import digests_of
from skitter.model import HostLease, Task
from skitter.parse.content import PageContent
from skitter.parse.dates import parse_date, parse_w3c
from skitter.parse.declarations import tdm_rules
from skitter.parse.directives import Directives
from skitter.robots.matching import Ruling
from skitter.robots.rules import Rules, escape_pattern
from skitter.settings import OptOutSettings
from skitter.urls.canonical import target_of
from skitter.worker.results import Answer, Reading

OBEY = "obey"
WITHHELD = "not kept, the site asks so: "


class OptOuts:
    def __init__(self, settings: OptOutSettings) -> None:
        self._settings = settings

    def said(self, lease: HostLease, task: Task, reading: Reading) -> Reading:
        """With what the host says of all its pages."""
        page = reading.page
        if page is None or not (lease.signal or lease.tdm):
            return reading
        directives = _with_host(page.directives, lease, task.url)
        return (
            reading
            if directives is page.directives
            else replace(reading, page=replace(page, directives=directives))
        )

    def why_no_text(self, said: Directives) -> str:
        """Why its text is not kept; empty where it may be."""
        wanted = self._settings
        if said.noindex and wanted.noindex == OBEY:
            return "noindex"
        if said.nosnippet and wanted.nosnippet == OBEY:
            return "nosnippet"
        if said.tdm == "1" and wanted.tdm_reservation == OBEY:
            return "tdm-reservation"
        if said.signal and wanted.content_signal == OBEY and _refuses(said.signal, wanted.purpose):
            return f"content-signal {wanted.purpose}=no"
        return ""

    def why_no_body(self, said: Directives, now: float) -> str:
        """Why the page itself is not kept; empty where it may be."""
        wanted = self._settings
        if said.noarchive and wanted.noarchive == OBEY:
            return "noarchive"
        if said.unavailable_after and wanted.unavailable_after == OBEY:
            date = _date(said.unavailable_after)
            return "unavailable_after" if date is not None and date <= now else ""
        return ""

    def obeyed(self, answer: Answer, reading: Reading) -> tuple[Answer, Reading]:
        """Without what may not be kept: the text, or all of the body."""
        page = reading.page
        if page is None:
            return answer, reading
        if why := self.why_no_body(page.directives, answer.exchange.ended_at):
            exchange = replace(answer.exchange, body=b"", truncated=True)
            kept = replace(answer, exchange=exchange, digests=digests_of(exchange))
            return kept, _without_text(reading, page, why)
        if why := self.why_no_text(page.directives):
            return answer, _without_text(reading, page, why)
        return answer, reading


def _without_text(reading: Reading, page: PageContent, why: str) -> Reading:
    return replace(reading, page=replace(page, text=""), body=b"", note=WITHHELD + why)


def is_withheld(reading: Reading) -> bool:
    return reading.note.startswith(WITHHELD)


def _with_host(said: Directives, lease: HostLease, url: str) -> Directives:
    signal = said.signal or lease.signal
    tdm, policy = (said.tdm, said.tdm_policy) if said.tdm else _reserved(lease.tdm, url)
    if signal == said.signal and tdm == said.tdm:
        return said
    return replace(said, signal=signal, tdm=tdm, tdm_policy=policy)


def _reserved(text: str, url: str) -> tuple[str, str]:
    if not text:
        return "", ""
    rules = tdm_rules(text)
    ruling = _table(text).decide(target_of(url))
    return (rules[ruling.line - 1].reserved, rules[ruling.line - 1].policy) if ruling.line else ("", "")


@lru_cache(maxsize=256)
def _table(text: str) -> Rules:
    """The longest pattern that matches decides, as in robots.txt."""
    patterns = (escape_pattern(rule.location) for rule in tdm_rules(text))
    return Rules([(pattern, Ruling(True, number, pattern)) for number, pattern in enumerate(patterns, 1)])


def _refuses(signal: str, purpose: str) -> bool:
    words = (word.partition("=") for word in signal.lower().replace(";", ",").split(","))
    return any(name.strip() == purpose and value.strip() == "no" for name, _, value in words)


def _date(text: str) -> float | None:
    """As pages write it: in a W3C form, or as mail does, also with `25-Jun-2010` and a zone in small letters."""
    return parse_w3c(text.upper()) or parse_date(text.replace("-", " ").upper()) or parse_date(text)
