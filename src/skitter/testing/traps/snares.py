"""What the hosts of the trap web that are traps have in common: a small real site, and a way in.

Pure. A snare answers for endlessly many URLs and remembers none of them: what it shows, and where that leads,
follows from the URL alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from skitter.testing.sites import mix
from skitter.testing.traps.site import Book, Link, Site, View
from skitter.testing.traps.words import number_of, prose, slug

REAL_PAGES = 12
# Longer targets are not there: servers have such a limit too.
LONGEST = 4000


class Snare(Site):
    """`real` is its honest part; `doors` lead from each page of it into the endless one."""

    trap = True

    def __init__(self, kind: str, variant: int, seed: int) -> None:
        super().__init__(kind, variant, seed)
        self.real = Book(kind, variant, seed)
        notes = [
            self.real.add(f"/notes/{slug(self.seed, place)}.html")
            for place in range(REAL_PAGES + self.seed % 12)
        ]
        self.real.list("/", *notes)
        self.real.guide("/", self.real.add("/about.html"))

    @property
    def notes(self) -> list[str]:
        return self.real.pages["/"].entries

    def doors(self) -> Sequence[Link]:
        return ()

    def inside(self, target: str) -> View | None:
        """What the endless part shows at a target that is not of the real site."""
        return None

    def view(self, host: str, target: str) -> View | None:
        if host != self.name:
            return None
        shown = self.real.view(host, target)
        if shown is None:
            return self.inside(target)
        return shown._replace(around=[*shown.around, *self.doors()])

    def contents(self) -> set[str]:
        return self.real.contents()

    def page(self, title: str, text: str, links: Sequence[Link], *, canonical: str = "") -> View:
        """One of the endless pages: the site's own words around very little."""
        common = prose(self.real.template, self.seed)
        return View("", title, [common, text], (), [*links, *self.doors()], canonical)


class Stamped(Snare):
    """Every link carries something that is different at every view: a session or a click that is counted.

    The content is real, again and again.
    """

    @abstractmethod
    def stamp(self, target: str, value: int) -> str:
        """The target with a stamp made of the value."""

    @abstractmethod
    def unstamp(self, target: str) -> str: ...

    def view(self, host: str, target: str) -> View | None:
        shown = self.real.view(host, self.unstamp(target))
        if shown is None or host != self.name:
            return None
        seen = mix(self.seed, number_of(target))
        links = [Link(self.stamp(href, seen), words) for href, words in (*shown.entries, *shown.around)]
        others = [self.notes[mix(seen, step) % len(self.notes)] for step in range(3)]
        around = [Link(self.stamp(href, seen), "see also") for href in ("/", *others)]
        return shown._replace(entries=links, around=around)
