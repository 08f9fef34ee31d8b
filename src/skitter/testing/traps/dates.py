"""Calendars without end, and lists that go on after their last page."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from typing import NamedTuple

from skitter.testing.traps.site import Link, View
from skitter.testing.traps.snares import Snare

FIRST_YEAR, LAST_YEAR = 1000, 9999
THIS_YEAR = 2026


class Shape(NamedTuple):
    """How a calendar writes its months and days; without days, `day` is empty."""

    month: str
    day: str
    reading: re.Pattern[str]


def _shape(month: str, day: str) -> Shape:
    """One expression for both: days come first, since a month may be the beginning of one."""
    parts = {"{y}": r"(?P<y>\d{4})", "{m}": r"(?P<m>\d{1,2})", "{mm}": r"(?P<m>\d\d)", "{dd}": r"(?P<d>\d\d)"}

    def reading(text: str) -> str:
        pattern = re.escape(text).replace(r"\{", "{").replace(r"\}", "}")
        for name, group in parts.items():
            pattern = pattern.replace(name, group)
        return pattern

    days = reading(day) if day else "(?!)"
    months = reading(month).replace("?P<y>", "?P<y2>").replace("?P<m>", "?P<m2>")
    return Shape(month, day, re.compile(f"{days}|{months}"))


class Calendar(Snare):
    """Next and previous month and year for ever, a page for every day, and nothing on any of them."""

    SHAPES = (
        _shape("/calendar/{y}/{mm}/", "/calendar/{y}/{mm}/{dd}/"),
        _shape("/events?year={y}&month={m}", "/events?year={y}&month={m}&day={dd}"),
        _shape("/cal.php?date={y}-{mm}-01&view=month", "/cal.php?date={y}-{mm}-{dd}&view=day"),
        _shape("/kalender/{y}-{mm}", ""),
        _shape("/agenda/{y}{mm}/", "/agenda/{y}{mm}{dd}/"),
    )

    def doors(self) -> Sequence[Link]:
        return [Link(self._month(THIS_YEAR, 5), "Calendar")]

    def _month(self, year: int, month: int) -> str:
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        return self._written(self.SHAPES[self.variant].month, year, month)

    def _written(self, shape: str, year: int, month: int, day: int = 0) -> str:
        text = shape.replace("{y}", f"{year:04d}").replace("{mm}", f"{month:02d}").replace("{m}", str(month))
        return text.replace("{dd}", f"{day:02d}")

    def inside(self, target: str) -> View | None:
        found = self.SHAPES[self.variant].reading.fullmatch(target)
        if found is None:
            return None
        groups = found.groupdict()
        year, month = int(groups.get("y") or groups["y2"]), int(groups.get("m") or groups["m2"])
        if not FIRST_YEAR <= year <= LAST_YEAR or not 1 <= month <= 12:
            return None
        return self._shown(year, month, int(groups.get("d") or 0))

    def _shown(self, year: int, month: int, day: int) -> View:
        steps = (month + 1, month - 1, month + 12, month - 12)
        links = [Link(self._month(year, step), "next") for step in steps]
        shape = self.SHAPES[self.variant].day
        if day:
            return self.page(f"{year}-{month}-{day}", f"Nothing planned for day {day}.", links[:2])
        days = range(1, monthrange(year, month)[1] + 1) if shape else ()
        links += [Link(self._written(shape, year, month, number), str(number)) for number in days]
        return self.page(f"{year}-{month}", "Mon Tue Wed Thu Fri Sat Sun. No events.", links)


class Pages(Snare):
    """A list whose pages are empty after the third, with a link to the next, and ten and a hundred further on."""

    SHAPES = ("/list?page=", "/blog/page/")

    def doors(self) -> Sequence[Link]:
        return [Link(self._at(1), "All")]

    def _at(self, number: int) -> str:
        return f"{self.SHAPES[self.variant]}{number}" + ("/" if self.variant else "")

    def inside(self, target: str) -> View | None:
        found = re.fullmatch(re.escape(self.SHAPES[self.variant]) + r"(\d{1,12})/?", target)
        if found is None:
            return None
        number = int(found[1])
        links = [Link(self._at(number + step), f"+{step}") for step in (1, 2, 10, 100)]
        shown = self.notes[(number - 1) * 5 : number * 5] if number < 4 else []
        view = self.page(f"Page {number}", "" if shown else "Nothing here yet.", links)
        return view._replace(entries=[Link(note, self.real.line(note)) for note in shown])
