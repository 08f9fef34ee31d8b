"""Honest sites whose pages differ in names and figures alone: catalogues, timetables, results, laws, logs.

Pure. Every page has the same sixty words or so around what it is about. Each entry is linked with its own name,
has its own title, and stands in a listing that ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from skitter.testing.sites import mix
from skitter.testing.traps import cards
from skitter.testing.traps.cards import Card, CardOf
from skitter.testing.traps.shelves import PER_PAGE, chain, shelve, spread
from skitter.testing.traps.site import Book, View
from skitter.testing.traps.words import HEX, prose, slug, token, word

_COMMON = 7
"""Sentences of nine words that every page has."""


class Register(Book):
    """A book some pages of which are entries: what they show is on their card."""

    def __init__(self, kind: str, variant: int, seed: int) -> None:
        super().__init__(kind, variant, seed)
        self.template = _COMMON
        self._card: CardOf = cards.part
        self._places: dict[str, int] = {}
        self._headings: dict[str, str] = {}

    def enter(self, card: CardOf, size: int, target: Callable[[int], str]) -> list[str]:
        """Write so many entries down."""
        self._card = card
        targets = [self.add(target(place), 0) for place in range(size)]
        self._places = {target: place for place, target in enumerate(targets)}
        return targets

    def head(self, targets: list[str], heading: str) -> None:
        """Title the pages of a listing, with their numbers."""
        for number, target in enumerate(targets, start=1):
            self._headings[target] = f"{heading}, page {number}" if number > 1 else heading

    def card(self, target: str) -> Card | None:
        place = self._places.get(target)
        return None if place is None else self._card(self.seed, place)

    def view(self, host: str, target: str) -> View | None:
        shown = super().view(host, target)
        card = self.card(target)
        if shown is None or card is None:
            heading = self._headings.get(target)
            return shown if shown is None or heading is None else shown._replace(title=heading)
        text = [prose(self.template, self.seed), card.text]
        return shown._replace(title=card.title, text=text, rows=card.rows)

    def line(self, target: str) -> str:
        card = self.card(target)
        if card is None:
            return self._headings.get(target) or super().line(target)
        figures = " ".join(card.rows[-1]) if card.rows else ""
        return f"{card.name}: {figures}"


def parts(book: Register, size: int, variant: int) -> None:
    """One long listing; the last variant has departments."""
    shapes: list[Callable[[int], str]] = [
        lambda place: f"/screw/{10_000 + 7 * place}.html",
        lambda place: f"/part?no={mix(book.seed, place) % 90_000 + 10_000}-{place}",
        lambda place: f"/shop/{slug(book.seed, place % 40)}/{place}",
    ]
    items = book.enter(cards.part, size, shapes[variant])
    if variant < 2:
        _listed(book, items, "/catalogue", "Catalogue", (20, 25)[variant])
        return
    for place, item in enumerate(items):
        book.guide(item, *(items[(place + mix(book.seed, place, step)) % size] for step in range(3)))
    for number, part in enumerate(spread(size, 40)):
        _listed(book, [items[place] for place in part], f"/range/{number}", f"Range {number}")


def _listed(book: Register, items: list[str], path: str, heading: str, per_page: int = PER_PAGE) -> None:
    lists = shelve(book, items, lambda n: path if n == 1 else f"{path}?page={n}", on="/", per_page=per_page)
    book.head(lists, heading)


def timetables(book: Register, size: int, variant: int) -> None:
    """Stops of lines, each with the stop before it and after it."""
    card = (cards.stop, cards.numbered_stop)[variant]
    shape = ("/line/{}/stop/{}", "/timetable?line={}&stop={}")[variant]
    items = book.enter(card, size, lambda place: shape.format(1 + place // 24, 1 + place % 24))
    lines = [items[start : start + 24] for start in range(0, size, 24)]
    for number, stops in enumerate(lines, start=1):
        line = book.add(f"/lines/{number}", 0)
        book.head([line], f"Line {number}")
        book.list(line, *stops)
        book.list("/", line)
        chain(book, stops)


def results(book: Register, size: int, variant: int) -> None:
    """Matches of a round, rounds of a season."""
    items = book.enter(cards.match, size, lambda place: f"/match/{200_000 + 3 * place}")
    for season in range(-(-size // 380)):
        year = book.add(f"/season/{1990 + season}/", 0)
        book.head([year], f"Season {1990 + season}")
        book.list("/", year)
        played = items[season * 380 : season * 380 + 380]
        for number in range(-(-len(played) // 10)):
            turn = book.add(f"/season/{1990 + season}/round/{number + 1}", 0)
            book.head([turn], f"Season {1990 + season}, round {number + 1}")
            book.list(year, turn)
            book.list(turn, *played[number * 10 : number * 10 + 10])


def laws(book: Register, size: int, variant: int) -> None:
    """Sections of acts, each with the one before it and after it."""
    book.template = 12
    items = book.enter(
        cards.paragraph,
        size,
        lambda place: f"/{word(book.seed, place // 120, 3)}-{place // 120}/s{1 + place % 120}.html",
    )
    for number in range(-(-size // 120)):
        sections = items[number * 120 : number * 120 + 120]
        act = book.add(f"/act/{number}", 0)
        book.head([act], f"{word(book.seed, number, 3).capitalize()} Act {1949 + number}")
        book.list("/", act)
        book.list(act, *sections)
        chain(book, sections)


def stubs(book: Register, size: int, variant: int) -> None:
    """Members of classes, of which only the names are known: under one word in ten is their own."""
    book.template = (12, 20)[variant]
    shapes: list[Callable[[int], str]] = [
        lambda place: f"/api/{cards.stub(book.seed, place).name}-{place}.html",
        lambda place: f"/reference/?member={place}",
    ]
    items = book.enter(cards.stub, size, shapes[variant])
    for number in range(-(-size // 90)):
        module = book.add(f"/module/{number}", 0)
        book.head([module], f"Module {word(book.seed, number, 9)}")
        book.list("/", module)
        book.list(module, *items[number * 90 : number * 90 + 90])


def files(book: Register, size: int, variant: int) -> None:
    """Folders of files below folders of projects; no word but the names."""
    book.template = 0
    items = book.enter(
        cards.folder, size, lambda place: f"/pub/{word(book.seed, place // 40)}-{place // 40}/{place % 40}/"
    )
    for number in range(-(-size // 40)):
        project = book.add(f"/pub/{word(book.seed, number)}-{number}/", 0)
        book.head([project], f"Index of /pub/{word(book.seed, number)}")
        book.list("/", project)
        book.list(project, *items[number * 40 : number * 40 + 40])


def commits(book: Register, size: int, variant: int) -> None:
    """A log in pages, by number or by offset."""
    book.template = (12, 20)[variant]
    items = book.enter(cards.commit, size, lambda place: f"/commit/{token(HEX, 20, book.seed, place)}")
    if variant == 0:
        _listed(book, items, "/log", "Log")
        return
    lists = shelve(book, items, lambda number: f"/log/?ofs={50 * (number - 1)}", on="/", per_page=50)
    book.head(lists, "Log")


Write = Callable[[Register, int, int], None]
# How many entries each variant has at scale 1.
REGISTERS: Mapping[str, tuple[Write, tuple[int, ...]]] = MappingProxyType(
    {
        "parts": (parts, (1000, 20_000, 3000)),
        "timetables": (timetables, (1200, 600)),
        "results": (results, (2000,)),
        "laws": (laws, (2000,)),
        "stubs": (stubs, (1500, 800)),
        "files": (files, (1500,)),
        "commits": (commits, (2000, 1000)),
    }
)
