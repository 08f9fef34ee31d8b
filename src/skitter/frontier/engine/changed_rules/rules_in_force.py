"""The rules of admission in force, as one value that a frontier keeps, and which of them were loosened.

Compared at each opening with those of the last run (`rejudge.py`). A rule that only became stricter has nothing
to give back. Where that cannot be told, as of changed expressions, a rule counts as loosened: then its refusals
are looked at once in vain. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from skitter.model import FailureKind, HostPolicy, Refusal
from skitter.settings import CrawlSettings, PolitenessSettings, Settings

# From the narrowest on: what is in scope for one is in scope for those after it.
_SCOPES = ("prefix", "host", "domain", "any")


class RulesInForce(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """What admission judges a URL by, beside seeds, policies of hosts and single verdicts. A new field goes at
    the end, with a default. `blocklists` is a digest of their content, `types` are those of plugins."""

    scope: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    skip_extensions: tuple[str, ...]
    max_depth: int
    max_url_length: int
    max_redirects: int
    host_budget: int
    requisites: bool
    blocklists: bytes
    traps: bool = True
    tunnel: int = 3
    types: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    surts: tuple[str, ...] = ()


def rules_of(settings: Settings, blocklists: bytes) -> RulesInForce:
    crawl = settings.crawl
    return RulesInForce(
        scope=crawl.scope,
        include=tuple(sorted(set(crawl.include))),
        exclude=tuple(sorted(set(crawl.exclude))),
        skip_extensions=tuple(sorted({ending.lower() for ending in crawl.skip_extensions})),
        max_depth=crawl.max_depth,
        max_url_length=crawl.max_url_length,
        max_redirects=settings.fetch.max_redirects,
        host_budget=settings.politeness.host_budget,
        requisites=crawl.requisites,
        blocklists=blocklists,
        traps=settings.traps.mode == "on",
        tunnel=settings.focus.tunnel,
        types=tuple(sorted(set(settings.plugins.types))),
        seeds=tuple(
            f"{seed} {rule.scope} {rule.depth} {rule.budget}" for seed, rule in sorted(settings.seeds.items())
        ),
        surts=tuple(sorted(settings.rules.surts)),
    )


def loosened(old: RulesInForce, new: RulesInForce) -> Iterator[Refusal | FailureKind]:
    """The reasons for which URLs were refused that may be let in now."""
    if _SCOPES.index(new.scope) > _SCOPES.index(old.scope):
        yield Refusal.SCOPE
    if not set(new.exclude) >= set(old.exclude) or not _is_narrower(old.include, new.include):
        yield Refusal.EXCLUDED
    if not set(new.skip_extensions) >= set(old.skip_extensions):
        yield Refusal.EXTENSION
    if new.max_depth > old.max_depth:
        yield Refusal.DEPTH
    if new.max_url_length > old.max_url_length:
        yield Refusal.LENGTH
    if new.max_redirects > old.max_redirects:
        yield Refusal.REDIRECTS
    if old.host_budget and (new.host_budget > old.host_budget or not new.host_budget):
        yield Refusal.BUDGET
    if new.requisites and not old.requisites:
        yield Refusal.REQUISITE
    if new.blocklists != old.blocklists:
        yield Refusal.BLOCKLIST
    if old.traps and not new.traps:
        yield Refusal.TRAP
    if new.tunnel > old.tunnel:
        yield Refusal.OFF_TOPIC
    if not set(new.types) <= set(old.types):
        yield FailureKind.TYPE_UNWANTED
    if new.seeds != old.seeds:
        yield from (Refusal.SCOPE, Refusal.DEPTH, Refusal.BUDGET)
    elif not set(new.surts) <= set(old.surts):
        yield Refusal.SCOPE


def loosened_by_policy(old: HostPolicy, new: HostPolicy) -> list[Refusal]:
    """The same of what the operator said of one host. A changed budget counts as a larger one."""
    reasons = [Refusal.BLOCKED] if old.blocked and not new.blocked else []
    return [*reasons, Refusal.BUDGET] if new.budget != old.budget else reasons


def over_defaults(refusals: Mapping[str, int], settings: Settings) -> dict[str, int]:
    """How many URLs were refused by limits that are as skitter sets them: nobody asked to leave those out."""
    usual = {
        Refusal.DEPTH: settings.crawl.max_depth == CrawlSettings().max_depth,
        Refusal.BUDGET: settings.politeness.host_budget == PolitenessSettings().host_budget,
    }
    return {
        str(reason): n for reason, is_usual in usual.items() if is_usual and (n := refusals.get(reason, 0))
    }


def _is_narrower(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    """Whether what all `new` patterns include was included by the `old` ones; without any, everything is."""
    return not old or (bool(new) and set(new) <= set(old))
