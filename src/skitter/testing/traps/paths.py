"""Traps of the path: segments that come again, paths that grow, relative links gone wrong, 200 for anything."""

from __future__ import annotations

from collections.abc import Sequence

from skitter.testing.sites import mix
from skitter.testing.traps.site import Link, View
from skitter.testing.traps.snares import LONGEST, Snare
from skitter.testing.traps.words import number_of, prose, slug, title, word


class Repeating(Snare):
    """Sections that link to each other by relative links: each click goes one folder deeper."""

    SHAPES = (("news", "sport", "culture"), ("en", "de", "gallery", "img"))

    def doors(self) -> Sequence[Link]:
        return [Link(f"/{name}/", name) for name in self.SHAPES[self.variant]]

    def inside(self, target: str) -> View | None:
        names = self.SHAPES[self.variant]
        segments = target.strip("/").split("/")
        if not target.endswith("/") or len(target) > LONGEST or not set(segments) <= set(names):
            return None
        here = segments[-1]
        links = [Link(f"{name}/", name) for name in names if name != here]
        return self.page(f"The {here} section", prose(3, self.seed, names.index(here)), links)


class Growing(Snare):
    """Every page has further ones below it, with names never seen: numbers, words, or a query that grows."""

    SHAPES = ("/tree/", "/browse/", "/go?back=")

    def doors(self) -> Sequence[Link]:
        return [Link(self.SHAPES[self.variant] + f"{word(self.seed)}/", "Browse")]

    def inside(self, target: str) -> View | None:
        before = self.SHAPES[self.variant]
        if not target.startswith(before) or len(target) > LONGEST:
            return None
        here = number_of(target)
        names = [str(mix(here, step) % 900) if self.variant == 0 else word(here, step) for step in range(4)]
        links = [Link(f"{target}{name}/", "more") for name in names]
        last = target.rstrip("/").rpartition("/")[2]
        text = f"All about {last}." if self.variant == 1 else "Choose one of the following."
        return self.page("Browse", text, links)


class Loop(Snare):
    """A link without its slash in front: /help/foo leads to /help/help/foo, and the server finds a page there."""

    SHAPES = (("help",), ("index.php", "view.php"))

    def doors(self) -> Sequence[Link]:
        return [link._replace(href=f"/{link.href}") for link in self._links()]

    def _links(self) -> list[Link]:
        files = [note.rpartition("/")[2] for note in self.notes[:4]]
        return [Link(f"{name}/{file}", "help") for name in self.SHAPES[self.variant] for file in files]

    def inside(self, target: str) -> View | None:
        folder, _, file = target.rpartition("/")
        names = set(folder.strip("/").split("/"))
        if not names <= set(self.SHAPES[self.variant]) or len(target) > LONGEST:
            return None
        shown = self.real.view(self.name, f"/notes/{file}")
        return shown and shown._replace(around=self._links())


class Missing(Snare):
    """200 for whatever is asked for, with suggestions where to look next."""

    def doors(self) -> Sequence[Link]:
        return [Link(f"/old/{slug(self.seed, step)}.html", "formerly") for step in range(3)]

    def inside(self, target: str) -> View | None:
        if len(target) > LONGEST:
            return None
        here = number_of(target)
        if self.variant == 0:
            links = [Link(f"/suggest/{slug(here, step)}", "perhaps") for step in range(5)]
            return self.page("Not found", "The page that you look for is not here.", links)
        if self.variant == 1:
            links = [Link(f"/{word(here, step)}/{slug(here, step)}.html", "similar") for step in range(5)]
            asked = target.replace("/", " ").replace("-", " ").replace("<", " ").replace("&", " ")
            return self.page("Sorry", f"We could not find {asked} for you.", links)
        home = self.real.view(self.name, "/")
        assert home is not None
        links = [Link(f"{word(here, step)}/{slug(here, step)}", "read on") for step in range(4)]
        return View("", home.title, home.text, home.entries, [*home.around, *links])


class Babble(Snare):
    """New words at every URL, and links to more of them: no page is like another, and none says anything."""

    def doors(self) -> Sequence[Link]:
        return [Link(self._at("", self.seed, step), "stories") for step in range(2)]

    def _at(self, below: str, number: int, step: int) -> str:
        match self.variant:
            case 0:
                return f"{below or '/stories/'}{word(number, step)}/"
            case 1:
                return f"/s/{slug(number, step)}-{mix(number, step) % 100_000}"
        return f"/story?id={mix(number, step):08x}{mix(step, number):08x}"

    def inside(self, target: str) -> View | None:
        if not target.startswith(("/stories/", "/s/", "/story?id=")) or len(target) > LONGEST:
            return None
        here = mix(self.seed, number_of(target))
        links = [Link(self._at(target, here, step), title(here, step)) for step in range(6)]
        return View("", title(here), [prose(10, here, part) for part in range(2)], links, self.doors())
