"""What an entry of a catalogue, a timetable, a code of law or a log says: a name, a few words, a table.

Pure. Each function gives the card of one place, from numbers alone. Hardly a word differs between the cards of
one site, as on real sites of that kind: names, codes and figures are what they are about.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from skitter.testing.traps.words import HEX, dice, prose, token, word

Rows = tuple[tuple[str, ...], ...]


class Card(NamedTuple):
    """`name` is what lists call it; `title` is that of its page."""

    name: str
    title: str
    text: str = ""
    rows: Rows = ()


CardOf = Callable[[int, int], Card]
"""From the seed of a site and a place in it to a card."""

_HEADS = "Hexagon bolt;Wood screw;Cap screw;Set screw;Carriage bolt;Threaded rod;Eye bolt;Lag screw".split(
    ";"
)
_FINISHES = "zinc plated;plain;stainless A2;stainless A4;brass".split(";")
_DIAMETERS = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24)
_LENGTHS = 45


def part(seed: int, place: int) -> Card:
    """A screw: 21,600 of them differ in kind, size and finish."""
    head, rest = _HEADS[place % len(_HEADS)], place // len(_HEADS)
    finish, rest = _FINISHES[rest % len(_FINISHES)], rest // len(_FINISHES)
    diameter, length = _DIAMETERS[rest % len(_DIAMETERS)], 6 + 2 * (rest // len(_DIAMETERS) % _LENGTHS)
    throws = dice(seed, place)
    name = f"{head} M{diameter} x {length} {finish}"
    rows = (
        ("Diameter", f"{diameter} mm"),
        ("Length", f"{length} mm"),
        ("Width across flats", f"{diameter * 1.6:.1f} mm"),
        ("Weight per 100", f"{diameter * diameter * length / 160:.2f} kg"),
        ("Pack", f"{(25, 50, 100, 200)[throws[0] % 4]}"),
        ("Price", f"{1 + throws[1] % 90}.{throws[2] % 100:02d}"),
        ("In stock", f"{throws[3] % 5000}"),
        ("Article", f"{throws[4]:05d}-{throws[5] % 1000:03d}"),
    )
    return Card(name, f"{name} - {word(seed).capitalize()} Fasteners", "", rows)


def stop(seed: int, place: int) -> Card:
    """When a line leaves from a stop."""
    line, number = 1 + place // 24, place % 24
    name = f"{word(seed, place % 311).capitalize()} {('Street', 'Square', 'Bridge')[place % 3]}"
    first, every = 4 + dice(seed, line)[0] % 3, 7 + dice(seed, line)[1] % 14
    start = 60 * first + dice(seed, line)[2] % 60 + 2 * number
    minutes = range(start, start + 18 * 60, every)
    rows = tuple(
        (f"{hour:02d}", *(f"{at % 60:02d}" for at in minutes if at // 60 % 24 == hour))
        for hour in range(4, 24)
    )
    return Card(f"Line {line}: {name}", f"Line {line}, {name} (stop {number + 1})", "Monday to Friday", rows)


def numbered_stop(seed: int, place: int) -> Card:
    """A timetable without names."""
    card = stop(seed, place)
    name = f"Line {1 + place // 24} stop {1 + place % 24}"
    return card._replace(name=name, title=f"Timetable: {name}")


_TEAMS, _ROUNDS = 20, 38


def match(seed: int, place: int) -> Card:
    throws = dice(seed, place)
    teams = [f"{word(seed, number, 7).capitalize()}" for number in range(_TEAMS)]
    home, away = throws[0] % _TEAMS, (throws[0] + 1 + throws[1] % (_TEAMS - 1)) % _TEAMS
    goals = sorted(1 + throw % 92 for throw in throws[2 : 2 + throws[12] % 6])
    score = sum(goal % 2 for goal in goals)
    name = f"{teams[home]} - {teams[away]} {score}:{len(goals) - score}"
    season, turn = 1990 + place // 380, 1 + place // 10 % _ROUNDS
    rows = (
        *((f"{goal}'", teams[home if goal % 2 else away]) for goal in goals),
        ("Attendance", f"{3000 + throws[13] % 50_000}"),
        ("Shots", f"{5 + throws[14] % 20}", f"{3 + throws[15] % 20}"),
        ("Corners", f"{throws[16] % 14}", f"{throws[17] % 14}"),
        ("Fouls", f"{throws[18] % 24}", f"{throws[19] % 24}"),
    )
    return Card(name, f"{name}, round {turn}, season {season}", f"Round {turn} of season {season}", rows)


def paragraph(seed: int, place: int) -> Card:
    """Of a code of law: a sentence or some, and one in twelve is repealed."""
    act, number = place // 120, 1 + place % 120
    throws = dice(seed, place)
    law = f"{word(seed, act, 3).capitalize()} Act {1949 + act}"
    heading = f"{word(seed, place, 1)} {word(seed, place, 2)}".capitalize()
    if throws[0] % 12 == 0:
        text = f"({1 + throws[1] % 4}) Repealed by Act No. {throws[2] % 300} of {1960 + throws[3] % 60}."
    else:
        text = f"({1 + throws[1] % 4}) {prose(1 + throws[4] % 3, seed, place)}"
    return Card(f"Section {number} {heading}", f"Section {number} {heading} - {law}", text)


_VERBS = "get set is has add remove find open close read write make reset apply count list".split()


def stub(seed: int, place: int) -> Card:
    """Of a reference that was made from code in which nobody wrote a comment."""
    owner = f"{word(seed, place // 18).capitalize()}{word(seed, place // 18, 1).capitalize()}"
    method = f"{_VERBS[place % 18 % len(_VERBS)]}{word(seed, place, 2).capitalize()}"
    takes = ", ".join(word(seed, place, 3 + number) for number in range(dice(seed, place)[0] % 4))
    text = f"{owner}.{method}({takes}) No description is available for this member."
    return Card(f"{owner}.{method}", f"{owner}.{method} - API reference", text)


_ENDINGS = "tar.gz zip deb rpm asc txt sha256".split()


def folder(seed: int, place: int) -> Card:
    """The index of a folder of files, as a web server makes it."""
    project, throws = word(seed, place // 40), dice(seed, place)
    version = f"{place % 40 // 10}.{place % 10}.{throws[0] % 20}"
    rows = tuple(
        (
            f"{project}-{version}.{ending}",
            f"{date(2009, 1, 1) + timedelta(days=throws[1 + step] % 6000)}",
            f"{throws[9 + step] % 24:02d}:{throws[10 + step] % 60:02d}",
            f"{1 + throws[17 + step] % 900}K",
        )
        for step, ending in enumerate(_ENDINGS[: 3 + throws[30] % 5])
    )
    return Card(f"{version}/", f"Index of /pub/{project}/{version}", "Name Last modified Size", rows)


def commit(seed: int, place: int) -> Card:
    throws = dice(seed, place)
    area, verb = word(seed, throws[0] % 30), ("fix", "add", "drop", "rename")[throws[1] % 4]
    name = f"{area}: {verb} {word(seed, place, 1)}"
    number, parent = token(HEX, 12, seed, place), token(HEX, 12, seed, place + 1)
    when = date(2025, 1, 1) - timedelta(hours=7 * place)
    rows = (
        ("commit", number, "parent", parent),
        (
            "author",
            word(seed, throws[2] % 12).capitalize(),
            f"{when} {throws[3] % 24:02d}:{throws[4] % 60:02d}",
        ),
        *(
            (
                f"{word(seed, throws[5 + step] % 200)}.c",
                f"+{throws[9 + step] % 80}",
                f"-{throws[13 + step] % 40}",
            )
            for step in range(1 + throws[17] % 4)
        ),
    )
    return Card(name, f"{name} - commit {number[:7]}", "", rows)
