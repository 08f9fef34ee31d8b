"""Known URLs before the rules in force: queued ones when they are leased, refused ones on walks (`rejudge.py`).

By admission's own rules, and those that hold only for what others let in: requisites that are not wanted any
more, and budgets that were larger. Never looks for a URL by itself.
"""

from __future__ import annotations

from collections.abc import Container

from skitter.frontier.engine.admission import Admission, count_refusal, over_budget
from skitter.frontier.engine.requeue import forget_answer
from skitter.frontier.engine.traps.rules import let_sample_through
from skitter.frontier.engine.traps.verdicts import refuse as refuse_by_verdict
from skitter.frontier.engine.traps.verdicts import release_url
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, FailureKind, Refusal, UrlKey, UrlState, Via
from skitter.schedule.kinds import KINDS
from skitter.urls.canonical import host_of
from skitter.urls.scope import Refused


class Readmission:
    def __init__(self, admission: Admission, *, takes_requisites: bool, types: Container[str] = ()) -> None:
        self._admission = admission
        self._takes_requisites = takes_requisites
        self._types = types

    def judge_queued(self, tx: Transaction, key: UrlKey, row: UrlRow) -> Refused | None:
        """The rule that forbids a URL which others let in. Not by budgets, which count what is taken."""
        found = as_found(key, row)
        return self._unwanted(found) or self._admission.judge_url(tx, found)

    def budget_left(self, host: HostRow) -> int | None:
        """How many of the URLs that wait for a host may be asked for; None when there is no limit."""
        most = self._admission.most(host)
        return None if most is None else most - (host.queue.admitted - sum(host.queue.lengths))

    def refusal_by_budget(self, host: HostRow) -> Refused:
        return over_budget(host, self._admission.most(host) or 0)

    def readmit(self, tx: Transaction, key: UrlKey, row: UrlRow) -> bool:
        """Judge a refused URL; returns whether it went back to its queue. It stays as it is when the reason is
        the same as before, so that a walk writes no more than what changes."""
        admission, found = self._admission, as_found(key, row)
        ident, host = tx.look(found.host)
        refused = self._unwanted(found) or admission.refusal(tx, found, host)
        if row.reason == FailureKind.TYPE_UNWANTED:
            return refused is None and unwanted_type(row.rule) in self._types and forget_answer(tx, key, row)
        if refused is not None and refused[0] == row.reason:
            admission.note_budget(tx, found.host, refused)
            return False
        tx.count(UrlState.REFUSED, -1)
        count_refusal(tx, row.reason, -1)
        release_url(tx, key, row)
        if refused is not None:
            admission.refuse(tx, found, row, refused)
            return False
        stopped = admission.stopped(tx, found, host)
        if stopped is not None and not let_sample_through(tx, row, stopped):
            refuse_by_verdict(tx, key, row, *stopped)
            return False
        row.reason = row.rule = ""
        host = tx.take(ident, host, found.host)
        host.queue.admitted += 1
        admission.count_for_seed(tx, found.url)
        tx.enqueue(key, row, ident, host)
        return True

    def recall_if_earned(self, tx: Transaction, host: HostRow) -> None:
        self._admission.recall_if_earned(tx, host)

    def _unwanted(self, found: Discovered) -> Refused | None:
        if KINDS[found.kind].is_scoped or self._takes_requisites or found.via is Via.RENDER:
            return None
        return Refusal.REQUISITE, "a page needs it, and crawl.requisites is off"


def unwanted_type(detail: str) -> str:
    """The media type for which an answer was not read (`worker/reading/body_filter.py` words it)."""
    _, but, found = detail.rpartition(", but its bytes are ")
    return found if but else detail.partition(";")[0].strip().lower()


def as_found(key: UrlKey, row: UrlRow) -> Discovered:
    """A known URL as it came to admission."""
    found = row.found
    return Discovered(
        url=row.url,
        key=key,
        host=host_of(row.url),
        depth=found.depth,
        via=found.via,
        hops=found.hops,
        kind=found.kind,
        nesting=found.nesting,
        form=found.form,
    )
