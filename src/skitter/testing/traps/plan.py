"""The plan of the trap web: which sites there are, and which of them answers for a host.

Pure and deterministic from its fields, so that the server and an audit in another process agree without talking.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Annotated

import msgspec
from msgspec import Meta

from skitter.testing.traps.dates import Calendar, Pages
from skitter.testing.traps.domains import Subdomains
from skitter.testing.traps.endless_catalogues import EndlessCatalogue
from skitter.testing.traps.honest import HONEST, HOSTING, Hosting
from skitter.testing.traps.paths import Babble, Growing, Loop, Missing, Repeating
from skitter.testing.traps.queries import Echo, Facets, Search
from skitter.testing.traps.registers import REGISTERS, Register
from skitter.testing.traps.site import Book, Site
from skitter.testing.traps.stamps import Canonical, SessionInPath, SessionInQuery, Tracked, Views

LEAST_PAGES = 12
SNARES: dict[str, tuple[Callable[[str, int, int], Site], int]] = {
    "calendar": (Calendar, 5),
    "facets": (Facets, 4),
    "session-query": (SessionInQuery, 3),
    "session-path": (SessionInPath, 2),
    "repeating": (Repeating, 2),
    "growing": (Growing, 3),
    "relative-loop": (Loop, 2),
    "soft-404": (Missing, 3),
    "variants": (Views, 3),
    "babble": (Babble, 3),
    "tracking": (Tracked, 2),
    "search": (Search, 2),
    "past-the-end": (Pages, 2),
    "canonical-loop": (Canonical, 2),
    "endless-catalogue": (EndlessCatalogue, 3),
    "echo": (Echo, 2),
}
SUBDOMAINS = 2
KINDS = (*SNARES, "subdomains", *HONEST, "hosting", *REGISTERS)
Kind = Annotated[str, Meta(pattern=f"^({'|'.join(KINDS)})$")]
Make = Callable[[], Site]


class TrapPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """`scale` is how large the honest sites are; `cut` how many hosts an endless domain has, 0 for no end;
    `kinds` are those of the sites that there are, all of them when it is empty."""

    seed: int = 1
    scale: Annotated[float, Meta(gt=0)] = 1.0
    cut: Annotated[int, Meta(ge=0)] = 0
    kinds: tuple[Kind, ...] = ()

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Traps first."""
        makers = {**self._snares(), **self._honest()}
        return tuple(make() for kind in self.kinds or KINDS for make in makers[kind])

    def _snares(self) -> dict[str, list[Make]]:
        makers: dict[str, list[Make]] = {
            kind: [partial(snare, kind, variant, self.seed) for variant in range(count)]
            for kind, (snare, count) in SNARES.items()
        }
        many = range(SUBDOMAINS)
        makers["subdomains"] = [
            partial(Subdomains, "subdomains", variant, self.seed, self.cut) for variant in many
        ]
        return makers

    def _honest(self) -> dict[str, list[Make]]:
        makers: dict[str, list[Make]] = {
            kind: [partial(self._book, kind, variant, size) for variant, size in enumerate(sizes)]
            for kind, (_, sizes) in HONEST.items()
        }
        makers["hosting"] = [
            partial(Hosting, "hosting", variant, self.seed, self._size(size))
            for variant, size in enumerate(HOSTING)
        ]
        for kind, (_, sizes) in REGISTERS.items():
            makers[kind] = [
                partial(self._register, kind, variant, size) for variant, size in enumerate(sizes)
            ]
        return makers

    def _register(self, kind: str, variant: int, size: int) -> Register:
        book = Register(kind, variant, self.seed)
        REGISTERS[kind][0](book, self._size(size), variant)
        return book

    def _book(self, kind: str, variant: int, size: int) -> Book:
        book = Book(kind, variant, self.seed)
        HONEST[kind][0](book, self._size(size), variant)
        return book

    def _size(self, pages: int) -> int:
        return max(LEAST_PAGES, round(pages * self.scale))

    @property
    def seeds(self) -> list[str]:
        return [f"http://{site.name}/" for site in self.sites]

    @cached_property
    def _named(self) -> dict[str, Site]:
        return {site.name: site for site in self.sites}

    def site(self, host: str) -> Site | None:
        """The site that answers for a host: of its own name, or of the last two labels of it."""
        return self._named.get(host) or self._named.get(".".join(host.rsplit(".", 2)[-2:]))
