"""What a host of the trap web is: it shows a view of each URL, and knows which honest content a view is of.

Pure. `Book` is a finite site whose every page was written down beforehand, so its truth is exact. Trap hosts
build on a small one: a trap is a real site with something endless in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from skitter.testing.sites import mix
from skitter.testing.traps.words import number_of, prose, title

ROBOTS = "/robots.txt"
INHERITED = 7


class Link(NamedTuple):
    href: str
    words: str = ""


class View(NamedTuple):
    """What a URL shows. `meaning` names the honest content that it is a view of; "" is the trap's own."""

    meaning: str
    title: str
    text: Sequence[str]
    entries: Sequence[Link] = ()
    """Links that are the page's content, with words of their own."""
    around: Sequence[Link] = ()
    """Links of its navigation."""
    canonical: str = ""
    rows: Sequence[Sequence[str]] = ()
    """Of a table, after the text."""


class Site(ABC):
    """A host, or a domain with all hosts below it. `name` is its own, and where a crawl begins."""

    trap: ClassVar[bool]

    def __init__(self, kind: str, variant: int, seed: int) -> None:
        self.kind = kind
        self.variant = variant
        self.name = f"{kind}-{variant}.test"
        self.seed = mix(seed, *self.name.encode())

    @abstractmethod
    def view(self, host: str, target: str) -> View | None:
        """None is a 404. Hosts come in lower case, targets with their query, as requested."""

    @abstractmethod
    def contents(self) -> set[str]:
        """Every honest content, by meaning: what a crawl must have seen one view of."""

    @property
    def landmarks(self) -> bool:
        """Whether its pages say what is navigation and what is not; half of the sites do."""
        return self.variant % 2 == 0


class Leaf:
    """A page of a book. `sentences` is how much it has to say that no other page says."""

    __slots__ = ("around", "canonical", "entries", "meaning", "number", "root", "sentences")

    def __init__(self, meaning: str, number: int, sentences: int) -> None:
        self.meaning = meaning
        self.number = number
        self.sentences = sentences
        self.root = 0
        """The number of another page whose text this one has too, besides its own."""
        self.entries: list[str] = []
        self.around: list[str] = []
        self.canonical = ""


class Book(Site):
    """Pages by target, each written down. Also the honest part of a trap host."""

    trap = False

    def __init__(self, kind: str, variant: int, seed: int) -> None:
        super().__init__(kind, variant, seed)
        self.template = 4
        """Sentences that every page of the site repeats."""
        self.figures = 0
        """Rows of figures on every page."""
        self.pages: dict[str, Leaf] = {}
        self.home = self.add("/", 6)

    def add(self, target: str, sentences: int = 7) -> str:
        """A further page with content of its own."""
        if target in self.pages:
            raise ValueError(f"{self.name} has two pages at {target}")
        self.pages[target] = Leaf(target, mix(self.seed, len(self.pages)), sentences)
        return target

    def again(self, target: str, of: str, *, canonical: bool = False) -> str:
        """Another URL of the same content."""
        original = self.pages[of]
        leaf = self.pages[target] = Leaf(original.meaning, original.number, original.sentences)
        leaf.entries, leaf.around = original.entries, original.around
        leaf.canonical = of if canonical else ""
        return target

    def list(self, on: str, *targets: str) -> None:
        """Make the page a list of others, each with a line about it."""
        self.pages[on].entries.extend(targets)

    def guide(self, on: str, *targets: str) -> None:
        """Link to others from the page's navigation."""
        self.pages[on].around.extend(targets)

    def view(self, host: str, target: str) -> View | None:
        leaf = self.pages.get(target)
        if leaf is None or host != self.name:
            return None
        return View(
            leaf.meaning,
            title(leaf.number),
            [prose(self.template, self.seed), *self.substance(leaf)],
            [Link(other, self.line(other)) for other in leaf.entries],
            [Link(other, f"see {place}") for place, other in enumerate(leaf.around)],
            leaf.canonical,
        )

    def substance(self, leaf: Leaf) -> Iterable[str]:
        rows = (f"{mix(leaf.number, row) % 1000} {mix(leaf.number, row, 1)}" for row in range(self.figures))
        inherited = [prose(INHERITED, leaf.root)] if leaf.root else []
        return (*inherited, prose(leaf.sentences, leaf.number), *rows)

    def line(self, target: str) -> str:
        leaf = self.pages.get(target)
        number = leaf.number if leaf else number_of(target)
        return f"{title(number)}: {prose(1, number)}"

    def contents(self) -> set[str]:
        return {leaf.meaning for leaf in self.pages.values()}
