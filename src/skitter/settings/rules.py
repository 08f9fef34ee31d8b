"""The settings of what is followed and kept: `[rules]`, and seeds with rules of their own, `[seeds."URL"]`.

Sections of `Settings` like the others, in a file of their own. docs/rules.md explains them to users.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Doc = Meta
SEED_SCOPES = ("host", "domain", "prefix")


class RuleSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pages are followed, which are kept, and what links mean: docs/rules.md."""

    follow: Annotated[
        tuple[str, ...],
        Doc(
            description="Globs of host and path: only links of pages that match, and of seeds, are followed."
        ),
    ] = ()
    keep: Annotated[
        tuple[str, ...],
        Doc(description="Globs of host and path: only bodies and texts of pages that match are archived."),
    ] = ()
    surts: Annotated[
        tuple[str, ...],
        Doc(
            description="SURT prefixes that are in scope whatever the seeds are, such as `org,example,)/docs`."
        ),
    ] = ()
    rewrite: Annotated[
        tuple[str, ...],
        Doc(
            description="`REGEX -> REPLACEMENT`: what links mean, in this order, before anything is decided."
        ),
    ] = ()


class SeedRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A seed with rules of its own, which hold for all that it brings into scope."""

    scope: Annotated[str, Doc(description="host, domain or prefix; without it that of the crawl.")] = ""
    depth: Annotated[
        Annotated[int, Meta(ge=0)] | None, Doc(description="Links further from a seed are refused.")
    ] = None
    budget: Annotated[Annotated[int, Meta(ge=0)], Doc(description="URLs at most; 0 means no limit.")] = 0

    def __post_init__(self) -> None:
        if self.scope and self.scope not in SEED_SCOPES:
            raise ValueError(f"scope must be one of {', '.join(SEED_SCOPES)}")
