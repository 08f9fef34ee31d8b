"""Traps of the query: facets in every combination and order, and searches that lead to searches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl

from skitter.testing.sites import mix
from skitter.testing.traps.site import Link, View
from skitter.testing.traps.snares import LONGEST, Snare
from skitter.testing.traps.words import number_of, slug, word

FACETS = {
    "colour": ("red", "blue", "green", "black"),
    "size": ("s", "m", "l", "xl"),
    "brand": ("arden", "belton", "corva", "delm"),
    "price": ("0-10", "10-50", "50-100"),
    "material": ("wool", "linen", "silk"),
    "rating": ("3", "4", "5"),
}
Choice = tuple[str, str]


class Facets(Snare):
    """A dozen products under every combination of their properties, in every order of clicking."""

    PATHS = ("/shop", "/range", "/list", "/catalog")

    def doors(self) -> Sequence[Link]:
        return [Link(self._written([]), "Shop")]

    def _written(self, chosen: Sequence[Choice]) -> str:
        path = self.PATHS[self.variant]
        match self.variant:
            case 1:
                return path + "".join(f"/{name}-{value}" for name, value in chosen) + "/"
            case 2:
                return _joined(path, [f"f[]={name}:{value}" for name, value in chosen])
            case 3:
                return _joined(path, [f"{name}={value}" for name, value in sorted(chosen)])
        return _joined(path, [f"{name}={value}" for name, value in chosen])

    def _read(self, target: str) -> list[Choice] | None:
        path = self.PATHS[self.variant]
        if self.variant == 1:
            parts = target.removeprefix(path).strip("/").split("/")
            pairs = [part.partition("-")[::2] for part in parts if part]
        else:
            found = parse_qsl(target.partition("?")[2])
            pairs = [value.partition(":")[::2] for _, value in found] if self.variant == 2 else found
        known = all(value in FACETS.get(name, ()) for name, value in pairs)
        return pairs if known and target.startswith(path) and len(pairs) <= 40 else None

    def inside(self, target: str) -> View | None:
        chosen = self._read(target)
        if chosen is None:
            return None
        view = self.page("Our range", "Refine by:", self._refinements(chosen))
        return view._replace(entries=[Link(note, self.real.line(note)) for note in self._matching(chosen)])

    def _refinements(self, chosen: list[Choice]) -> list[Link]:
        """One more property, or another value of a chosen one; the third variant adds values up."""
        links = []
        for name, values in FACETS.items():
            kept = chosen if self.variant == 2 else [pair for pair in chosen if pair[0] != name]
            links += [
                Link(self._written([*kept, (name, value)]), f"{name} {value}")
                for value in values
                if (name, value) not in chosen
            ]
        return links

    def _matching(self, chosen: list[Choice]) -> list[str]:
        """The first two variants show what sells best, whatever was chosen."""
        if self.variant < 2:
            return self.notes[:8]
        names = sorted({name for name, _ in chosen})
        fits = [
            note
            for place, note in enumerate(self.notes)
            if all(mix(place, number_of(name)) % 3 for name in names)
        ]
        return fits[:8]


def _joined(path: str, parameters: list[str]) -> str:
    return f"{path}?{'&'.join(parameters)}" if parameters else path


class Search(Snare):
    """Whatever was searched for, there are related searches."""

    def doors(self) -> Sequence[Link]:
        return [Link(self._at(word(self.seed, step)), "popular") for step in range(4)]

    def _at(self, words: str) -> str:
        return f"/search?q={words}" if self.variant == 0 else f"/tag/{words.replace('+', '/')}"

    def inside(self, target: str) -> View | None:
        before = self._at("")
        if not target.startswith(before) or len(target) > LONGEST:
            return None
        asked = target.removeprefix(before).replace("/", "+")
        here = number_of(asked)
        last = asked.rpartition("+")[2]
        related = [self._at(f"{last}+{word(here, step)}") for step in range(4)]
        related += [self._at(word(here, step, 1)) for step in range(2)]
        found = [self.notes[mix(here, step) % len(self.notes)] for step in range(self.variant * 3)]
        text = f"Results for {last}" if found else f"Nothing was found for {last}"
        view = self.page("Search", text, [Link(href, "related") for href in related])
        return view._replace(entries=[Link(note, self.real.line(note)) for note in found])


class Echo(Snare):
    """What was asked for comes back as the title: of a search that leads to searches, or of tags without end."""

    def doors(self) -> Sequence[Link]:
        return [Link(("/find?q=" + word(self.seed), "/tags?page=1")[self.variant], "Popular")]

    def inside(self, target: str) -> View | None:
        if len(target) > LONGEST:
            return None
        return self._search(target) if self.variant == 0 else self._tags(target)

    def _search(self, target: str) -> View | None:
        asked = target.removeprefix("/find?q=")
        if asked == target or not asked.replace("+", "a").isalpha():
            return None
        here = mix(self.seed, number_of(asked))
        names = [f"{word(here, step)}+{word(here, step, 1)}" for step in range(6)]
        links = [Link(f"/find?q={name}", name.replace("+", " ")) for name in names]
        shown = asked.replace("+", " ")
        return self.page(f"{shown} - search results", f"Nothing was found for {shown}.", links)

    def _tags(self, target: str) -> View | None:
        if found := re.fullmatch(r"/tag/([a-z-]{3,60})", target):
            shown = found[1].replace("-", " ")
            return self.page(f"{shown} - tag", f"Nothing is tagged {shown} yet.", ())
        if not (found := re.fullmatch(r"/tags\?page=([0-9]{1,9})", target)):
            return None
        number = int(found[1])
        ahead = [Link(f"/tags?page={number + step}", f"+{step}") for step in (1, 3, 30)]
        names = [slug(self.seed, number, step) for step in range(40)]
        view = self.page(f"Tags, page {number}", "", ahead)
        return view._replace(entries=[Link(f"/tag/{name}", name.replace("-", " ")) for name in names])
