"""What was refused by rules that have changed since: URLs that no rule forbids any more go back to their queues.

The rules in force are noted at each opening, and when a blocklist changes. A loosened rule begins a walk over the
URLs in bounded steps, one a chore, which a restart goes on with. What a stricter rule forbids is refused when its
host is leased (`leasing.py`); that needs no walk. Never decides by itself: `readmission.py` does.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace

from skitter.frontier.base import RuleChanges
from skitter.frontier.engine.changed_rules.readmission import Readmission
from skitter.frontier.engine.changed_rules.rules_in_force import RulesInForce, loosened
from skitter.frontier.engine.changed_rules.walks import begin_walk
from skitter.frontier.rows import Note, Walk
from skitter.frontier.tables import queries
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Host, Refusal, UrlKey, UrlState
from skitter.urls.canonical import host_of

# A step takes some 30 ms, and less when there is other work.
_MOST_LOOKED_AT, _MOST_BESIDE_WORK, _MOST_MOVED = 10_000, 2_500, 2_000
# Walks over one host are short: several are one step.
_MOST_WALKS = 100
_JUDGED = (
    Refusal.SCOPE,
    Refusal.EXCLUDED,
    Refusal.DEPTH,
    Refusal.LENGTH,
    Refusal.EXTENSION,
    Refusal.REDIRECTS,
    Refusal.BUDGET,
    Refusal.REQUISITE,
    Refusal.BLOCKLIST,
    Refusal.OFF_TOPIC,
)


class NotedRules(msgspec.Struct, array_like=True):
    """`are_mixed` when something may be queued that was let in by other rules. Pages that were read up to
    `requisites_since` (by the clock) were read without their requisites."""

    rules: RulesInForce
    are_mixed: bool = False
    requisites_since: float = -1.0


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(NotedRules).decode


def note_rules(tx: Transaction, rules: RulesInForce) -> tuple[NotedRules, RuleChanges]:
    """The rules in force from now on; what others refused is looked at again."""
    raw = tx.cache.note(Note.RULES)
    if raw is None:
        return _note_first(tx, rules), RuleChanges()
    old = _decode(raw)
    if old.rules == rules:
        return old, RuleChanges()
    reasons = [*loosened(old.rules, rules)]
    are_new = rules.requisites and not old.rules.requisites
    noted = NotedRules(
        rules,
        old.are_mixed or (_knows_any(tx) and _differ_for_leases(old.rules, rules)),
        tx.cache.by_the_clock(tx.now) if are_new else old.requisites_since if rules.requisites else -1.0,
    )
    tx.set_note(Note.RULES, _encode(noted))
    begin_walk(tx, reasons)
    refusals = tx.tally.refusals
    return noted, RuleChanges(
        judged_again={str(reason): refusals[reason] for reason in reasons if refusals.get(reason)},
        pages_without_requisites=tx.tally.pages if are_new else 0,
    )


def _note_first(tx: Transaction, rules: RulesInForce) -> NotedRules:
    """By which rules an earlier version let URLs in and refused them is not known: all are judged again."""
    noted = NotedRules(rules, _knows_any(tx))
    tx.set_note(Note.RULES, _encode(noted))
    begin_walk(tx, _JUDGED)
    return noted


def _knows_any(tx: Transaction) -> bool:
    return any(tx.tally.urls.values())


def _differ_for_leases(old: RulesInForce, new: RulesInForce) -> bool:
    """Blocklists and verdicts are asked of every URL that is leased anyway, and types are known by answers."""
    return old != replace(new, blocklists=old.blocklists, traps=old.traps, types=old.types)


# -- the walks


class Step(msgspec.Struct):
    """What a step has done: how many URLs went back, by the reason for which they had been refused, and whether
    there is more to look at. `ended` are the figures of the walks that came to their end."""

    back: Counter[str] = msgspec.field(default_factory=Counter)
    ended: Counter[str] = msgspec.field(default_factory=Counter)
    is_more: bool = False

    @property
    def moved(self) -> int:
        """At least 1 while there is more to look at."""
        return max(self.back.total(), int(self.is_more))


def take_step(tx: Transaction, readmission: Readmission) -> Step:
    """Of the walks that are under way, those of hosts first."""
    step = Step()
    walks = queries.walks(tx.cache, _MOST_WALKS)
    if not walks:
        return step
    first = queries.first_ready_at(tx.cache)
    left = _MOST_LOOKED_AT if first is None or first > tx.now else _MOST_BESIDE_WORK
    for ident, walk in walks:
        if left <= 0 or step.back.total() >= _MOST_MOVED:
            break
        left -= 1 + _walk_on(tx, readmission, ident, walk, left, step)
    step.is_more = len(walks) >= _MOST_WALKS or any(tx.walk(ident) is not None for ident, _ in walks)
    return step


def _walk_on(
    tx: Transaction, readmission: Readmission, ident: bytes, walk: Walk, most: int, step: Step
) -> int:
    """How many URLs were looked at."""
    host = Host(walk.host) if walk.host else None
    if host is not None and not walk.cursor and Refusal.BUDGET in walk.reasons:
        # it is set again for a host of which the budget still refuses something
        tx.host(host)[1].queue.is_over_budget = False
    rows, looked, go_on = queries.refused(tx.cache, walk.reasons, host, walk.cursor, most)
    tx.keep_read(rows)
    for key in rows:
        if step.back.total() >= _MOST_MOVED:
            go_on = key
            break
        if reason := _rejudge(tx, readmission, UrlKey(key), walk):
            step.back[reason] += 1
            walk.back[reason] = walk.back.get(reason, 0) + 1
    if go_on is not None:
        walk.cursor = go_on
        tx.put_walk(ident, walk)
    else:
        _end(tx, ident, walk, step)
    return looked


def _rejudge(tx: Transaction, readmission: Readmission, key: UrlKey, walk: Walk) -> str:
    """The reason for which a URL was refused that went back now; empty when it stays where it is."""
    row = tx.url(key)
    if row is None or row.state != UrlState.REFUSED or row.reason not in walk.reasons:
        return ""
    if walk.host and host_of(row.url) != walk.host:
        return ""
    reason = row.reason
    return reason if readmission.readmit(tx, key, row) else ""


def _end(tx: Transaction, ident: bytes, walk: Walk, step: Step) -> None:
    step.ended.update(walk.back)
    tx.drop_walk(ident)
    if walk.again:
        begin_walk(tx, walk.again)
