"""A domain with endlessly many hosts, each of which leads to others."""

from __future__ import annotations

from collections.abc import Sequence

from skitter.testing.sites import mix
from skitter.testing.traps.site import Link, View
from skitter.testing.traps.snares import Snare
from skitter.testing.traps.words import number_of, word


class Subdomains(Snare):
    """`cut` is how many hosts there are; 0 means no end."""

    def __init__(self, kind: str, variant: int, seed: int, cut: int) -> None:
        super().__init__(kind, variant, seed)
        self._cut = cut or 2**32

    def doors(self) -> Sequence[Link]:
        return [self._link(self.seed, step) for step in range(3)]

    def _link(self, here: int, step: int) -> Link:
        number = mix(here, step) % self._cut
        label = f"{word(number)}.{word(number, 1)}{number}" if self.variant else f"w{number}"
        return Link(f"http://{label}.{self.name}/", "partner")

    def view(self, host: str, target: str) -> View | None:
        if host == self.name:
            return super().view(host, target)
        if target != "/":
            return None
        here = number_of(host)
        links = [self._link(here, step) for step in range(4)]
        return self.page("Welcome", f"This is {host.partition('.')[0]}.", links)
