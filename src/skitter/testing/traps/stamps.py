"""Traps in which the same real pages come under ever new URLs: sessions, clicks, views of a view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode

from skitter.testing.sites import mix
from skitter.testing.traps.site import Link, View
from skitter.testing.traps.snares import Snare, Stamped
from skitter.testing.traps.words import HEX, token

MIXED = "abcdefghijklmnopqrstuvwxyz0123456789"


class SessionInQuery(Stamped):
    SHAPES = (("sid", HEX, 32), ("zenid", MIXED, 26), ("s", HEX, 16))

    def stamp(self, target: str, value: int) -> str:
        name, alphabet, length = self.SHAPES[self.variant]
        return f"{target}?{name}={token(alphabet, length, value)}"

    def unstamp(self, target: str) -> str:
        return target.partition(f"?{self.SHAPES[self.variant][0]}=")[0]


class SessionInPath(Stamped):
    SHAPES = (("/(S({}))", r"/\(S\([a-z0-9]{24}\)\)"), ("/s/{}", r"/s/[a-z0-9]{24}"))

    def stamp(self, target: str, value: int) -> str:
        return self.SHAPES[self.variant][0].format(token(MIXED, 24, value)) + target

    def unstamp(self, target: str) -> str:
        return re.sub(self.SHAPES[self.variant][1], "", target, count=1)


class Tracked(Stamped):
    SHAPES = ("from={}&pos={}", "click={}&t={}")

    def stamp(self, target: str, value: int) -> str:
        other = mix(value, *target.encode())
        return f"{target}?{self.SHAPES[self.variant].format(token(HEX, 12, other), other)}"

    def unstamp(self, target: str) -> str:
        return target.partition("?")[0]


class Views(Snare):
    """Each article can be printed, sorted, shared and answered, and each of these again in every other way."""

    SHAPES: tuple[dict[str, Sequence[str]], ...] = (
        {"print": ("1",), "replytocom": tuple(map(str, range(700, 720))), "sort": ("asc", "desc")},
        {"format": ("print", "amp", "text"), "share": ("x", "y", "z", "mail"), "size": ("s", "m", "l")},
        {
            "order": ("up", "down"),
            "view": ("list", "grid"),
            "lang": ("en", "de", "fr"),
            "reply": ("1", "2", "3"),
        },
    )

    def view(self, host: str, target: str) -> View | None:
        path, _, query = target.partition("?")
        shown = self.real.view(host, path)
        if shown is None:
            return None
        chosen = dict(parse_qsl(query))
        ways = self.SHAPES[self.variant]
        again = [
            Link(f"{path}?{urlencode({**chosen, name: value})}", f"{name} {value}")
            for name, values in ways.items()
            for value in values
        ]
        return shown._replace(around=[*shown.around, *(again if path in self.notes else ())])


class Canonical(Snare):
    """Pages that name another as their canonical page, which names yet another."""

    SHAPES = ("/item?v={}", "/entry/{}")

    def doors(self) -> Sequence[Link]:
        return [Link(self._at(mix(self.seed, step) % 1000), "featured") for step in range(3)]

    def _at(self, number: int) -> str:
        return self.SHAPES[self.variant].format(number)

    def inside(self, target: str) -> View | None:
        before = self._at(0)[:-1]
        rest = target.removeprefix(before)
        if rest == target or not rest.isascii() or not rest.isdigit() or len(rest) > 12:
            return None
        number = int(rest)
        links = [Link(self._at(number + step), "another view") for step in (1, 2, 3, 1 + number % 97)]
        return self.page("An item", "The same item as ever.", links, canonical=self._at(number + 1))
