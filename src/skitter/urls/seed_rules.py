"""Seeds with a scope, depth and budget of their own, and SURT prefixes: what they bring into scope.

Asked by admission beside the anchors of the other seeds. Of several rules that cover a URL the narrowest
counts. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from skitter.settings.rules import SeedRule
from skitter.urls.canonical import normalise
from skitter.urls.scope import anchors_of, registrable_domain, split_folders

_SURT = re.compile(r"(?:https?://)?\(?([^)/]*)(\)?)(/.*)?")


class Governing(NamedTuple):
    """The rule that a URL is under; `seed` is the seed that it is of, as the settings name it."""

    seed: str
    rule: SeedRule


class SeedRules:
    def __init__(self, rules: Mapping[str, SeedRule], scope: str, surts: Iterable[str] = ()) -> None:
        self._by_anchor: dict[str, Governing] = {}
        for seed, rule in rules.items():
            if (url := normalise(seed)) is not None:
                kind = rule.scope or (scope if scope != "any" else "host")
                anchor = next(each for each in anchors_of(url) if each.startswith(f"{kind} "))
                self._by_anchor[anchor] = Governing(seed, rule)
        self._surts = [surt_prefix(text) for text in surts]

    @property
    def are_any(self) -> bool:
        return bool(self._by_anchor or self._surts)

    def governing(self, url: str) -> Governing | None:
        return next((rule for anchor in _anchors(url) if (rule := self._by_anchor.get(anchor))), None)

    def has_surt(self, url: str) -> str:
        """The SURT prefix that brings it into scope; empty when none does."""
        return next((prefix.text for prefix in self._surts if prefix.covers(url)), "")

    def are_for_host(self, host_url: str) -> bool:
        """Whether one may bring something of a host into scope."""
        authority = host_url.partition("//")[2].partition("/")[0]
        wanted = (f"host {authority}", f"domain {registrable_domain(authority)}", f"prefix {authority}/")
        by_seed = any(anchor.startswith(wanted) for anchor in self._by_anchor)
        return by_seed or any(prefix.covers_host(authority) for prefix in self._surts)


def _anchors(url: str) -> Iterator[str]:
    """From the narrowest to the widest."""
    authority, folders = split_folders(url)
    yield from (f"prefix {authority}{folder}" for folder in reversed(folders))
    yield f"host {authority}"
    yield f"domain {registrable_domain(authority)}"


class SurtPrefix(NamedTuple):
    """`labels` from the last on; `is_whole` when the host ends there."""

    text: str
    labels: tuple[str, ...]
    is_whole: bool
    path: str

    def covers(self, url: str) -> bool:
        authority, _, path = url.partition("//")[2].partition("/")
        return self.covers_host(authority) and (not self.is_whole or f"/{path}".startswith(self.path))

    def covers_host(self, authority: str) -> bool:
        labels = tuple(reversed(authority.partition(":")[0].split(".")))
        return labels == self.labels if self.is_whole else labels[: len(self.labels)] == self.labels


def surt_prefix(text: str) -> SurtPrefix:
    """`org,example,` is example.org and all below it, `org,example,)/docs` all of that host that begins so.
    Raises ValueError."""
    found = _SURT.fullmatch(text.strip())
    labels = tuple(label for label in found[1].lower().split(",") if label) if found else ()
    if found is None or not labels or (found[3] and not found[2]):
        raise ValueError(f"{text!r} is no SURT prefix: write org,example, or org,example,)/docs")
    return SurtPrefix(text, labels, bool(found[2]), found[3] or "/")
