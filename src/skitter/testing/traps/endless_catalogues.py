"""Catalogues without end: plausible items with titles, tables and links of their own, made up when asked for.

What an honest catalogue has is all there, but for the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skitter.testing.sites import mix
from skitter.testing.traps import cards
from skitter.testing.traps.cards import Card
from skitter.testing.traps.site import Link, View
from skitter.testing.traps.snares import LONGEST, Snare
from skitter.testing.traps.words import number_of, slug

_ON_A_PAGE = 20


class EndlessCatalogue(Snare):
    """Numbered pages of a list with jumps ahead; ranges that lead to further ranges; items that lead to items."""

    def doors(self) -> Sequence[Link]:
        first = ("/catalogue?page=1", f"/range/{slug(self.seed)}/", f"/part?id={mix(self.seed):08x}00")
        return [Link(first[self.variant], "Catalogue")]

    def inside(self, target: str) -> View | None:
        if len(target) > LONGEST:
            return None
        return (self._numbered, self._ranges, self._related)[self.variant](target)

    def _card(self, number: int) -> Card:
        return cards.part(self.seed, number % 21_600 if self.variant == 0 else mix(self.seed, number))

    def _item(self, number: int, links: Sequence[Link]) -> View:
        card = self._card(number)
        return self.page(card.title, "", links)._replace(rows=card.rows)

    def _listed(self, numbers: Sequence[int], shape: str) -> list[Link]:
        return [
            Link(shape.format(number), f"{(card := self._card(number)).name}: {card.rows[5][1]}")
            for number in numbers
        ]

    def _numbered(self, target: str) -> View | None:
        if found := re.fullmatch(r"/part/([0-9]{1,12})", target):
            number = int(found[1])
            return self._item(number, [Link(f"/catalogue?page={1 + number // _ON_A_PAGE}", "back")])
        if not (found := re.fullmatch(r"/catalogue\?page=([0-9]{1,9})", target)):
            return None
        number = int(found[1])
        ahead = [Link(f"/catalogue?page={number + step}", f"+{step}") for step in (1, 2, 10, 100)]
        shown = range((number - 1) * _ON_A_PAGE, number * _ON_A_PAGE)
        view = self.page(f"Catalogue, page {number}", "", ahead)
        return view._replace(entries=self._listed(shown, "/part/{}"))

    def _ranges(self, target: str) -> View | None:
        found = re.fullmatch(r"/range/([a-z-]{3,60})/(?:([0-9]{1,9})\.html)?", target)
        if found is None:
            return None
        here = mix(self.seed, number_of(found[1]))
        if found[2]:
            return self._item(int(found[2]), [Link(f"/range/{found[1]}/", "back")])
        others = [Link(f"/range/{slug(here, step)}/", slug(here, step)) for step in range(4)]
        view = self.page(f"Range {found[1]}", "", others)
        numbers = [mix(here, step, 5) % 10**9 for step in range(12)]
        return view._replace(entries=self._listed(numbers, f"/range/{found[1]}/{{}}.html"))

    def _related(self, target: str) -> View | None:
        if not re.fullmatch(r"/part\?id=[0-9a-f]{10}", target):
            return None
        here = mix(self.seed, number_of(target))
        numbers = [mix(here, step) for step in range(6)]
        links = [
            Link(f"/part?id={number:08x}{number % 251:02x}", self._card(number).name) for number in numbers
        ]
        return self._item(here, ())._replace(entries=links)
