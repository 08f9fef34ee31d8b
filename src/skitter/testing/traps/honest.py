"""Honest sites that look like traps: dates, facets, parameters, depth and repetition, with something to say.

Pure. Each function writes a book of about `size` pages with content of their own; further URLs of the same
content (sort orders, print versions) are written down as such. Every variant has URLs of another shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from types import MappingProxyType

from skitter.testing.sites import mix
from skitter.testing.traps.shelves import chain, shelve, spread
from skitter.testing.traps.site import Book, Site, View
from skitter.testing.traps.words import HEX, slug, token, word

FIRST_DAY = date(2003, 1, 1)


def _dates(book: Book, size: int, day: Callable[[date, str], str], month: str, year: str) -> None:
    """A page for each day on which something happened, under months, under years."""
    days = [FIRST_DAY + timedelta(days=place + place // 3) for place in range(size)]
    targets = [book.add(day(when, slug(book.seed, place))) for place, when in enumerate(days)]
    chain(book, targets)
    for when, target in zip(days, targets, strict=True):
        under, above = when.strftime(month), when.strftime(year)
        if above not in book.pages:
            book.guide("/", book.add(above, 2))
        if under not in book.pages:
            book.list(above, book.add(under, 2))
        book.list(under, target)


def date_archive(book: Book, size: int, variant: int) -> None:
    shapes: list[tuple[Callable[[date, str], str], str, str]] = [
        (lambda when, name: f"/{when:%Y/%m/%d}/{name}/", "/%Y/%m/", "/%Y/"),
        (lambda when, _name: f"/archive/{when:%Y-%m-%d}.html", "/archive/%Y-%m.html", "/archive/%Y.html"),
        (lambda when, _name: f"/news?date={when:%Y%m%d}", "/news?date=%Y%m", "/news?date=%Y"),
    ]
    _dates(book, size, *shapes[variant])


def events(book: Book, size: int, variant: int) -> None:
    """A calendar with something on every day that it links to."""
    shapes: list[tuple[Callable[[date, str], str], str, str]] = [
        (lambda when, _name: f"/calendar/{when:%Y/%m/%d}/", "/calendar/%Y/%m/", "/calendar/%Y/"),
        (
            lambda when, _name: f"/events?year={when.year}&month={when.month}&day={when.day}",
            "/events?year=%Y&month=%m",
            "/events?year=%Y",
        ),
    ]
    _dates(book, size, *shapes[variant])


def shop(book: Book, size: int, variant: int) -> None:
    """Departments with lists in pages, each in other orders and by brand: the same products again."""
    shapes: list[Callable[[int], str]] = [
        lambda place: f"/product/{10_000 + place}",
        lambda place: f"/p/{slug(book.seed, place)}-{place}.html",
        lambda place: f"/item?id={place}",
        lambda place: f"/{word(book.seed, place % 7)}/{slug(book.seed, place)}-{place}/",
    ]
    book.template, own = ((4, 6), (10, 4), (12, 4), (14, 4))[variant]
    for number, part in enumerate(spread(size, 8 + size // 400)):
        items = [book.add(shapes[variant](place), own) for place in part]
        department = f"/c/{number}-{word(book.seed, number)}"
        lists = shelve(book, items, _paged(department), on="/")
        for order in ("price", "name", "-price"):
            for target in lists[:5]:
                joined = "&" if "?" in target else "?"
                book.guide(target, book.again(f"{target}{joined}sort={order}", target))
        for brand in range(6):
            sold = word(book.seed, brand, 1)
            book.guide(lists[0], book.again(f"{department}?brand={sold}", lists[0]))


def _paged(path: str, name: str = "page") -> Callable[[int], str]:
    return lambda number: path if number == 1 else f"{path}?{name}={number}"


def forum(book: Book, size: int, variant: int) -> None:
    """Threads of one page to some sixty, below boards."""
    shapes: list[Callable[[int, int], str]] = [
        lambda thread, page: f"/t/{thread}" if page == 1 else f"/t/{thread}?page={page}",
        lambda thread, page: f"/viewtopic.php?t={thread}&start={(page - 1) * 15}",
        lambda thread, page: f"/threads/{slug(book.seed, thread)}.{thread}/page-{page}",
    ]
    threads: list[str] = []
    left, number = size, 0
    while left > 0:
        length = min(left, 60 if mix(book.seed, number) % 40 == 0 else 1 + mix(book.seed, number, 1) % 9)
        number += 1
        pages = [book.add(shapes[variant](number, page), 9) for page in range(1, length + 1)]
        chain(book, pages)
        for page in pages:
            book.guide(page, *pages[4::8], pages[-1])
        threads.append(pages[0])
        left -= length
    for board, part in enumerate(spread(len(threads), 6)):
        shelve(book, [threads[place] for place in part], _paged(f"/board/{board}"), on="/")


def wiki(book: Book, size: int, variant: int) -> None:
    """Articles, each with up to three older texts of which half is left; printable views are the same again."""
    articles: list[str] = []
    left, number = size, 0
    while left > 0:
        name = slug(book.seed, number).replace("-", "_").capitalize()
        shapes = (f"/wiki/{name}_{number}", f"/index.php?title={name}_{number}", f"/{name}_{number}")
        article = book.add(shapes[variant])
        olds = min(left - 1, mix(book.seed, number) % 4)
        joined = "&" if "?" in article else "?"
        for old in range(olds):
            earlier = book.add(f"{article}{joined}oldid={number * 10 + old}")
            book.pages[earlier].root = book.pages[article].number
            book.guide(article, earlier)
        book.guide(article, book.again(f"{article}{joined}printable=yes", article))
        articles.append(article)
        left, number = left - 1 - olds, number + 1
    shelve(book, articles, _paged("/all-pages", "from"), on="/", per_page=50)
    for place, article in enumerate(articles):
        others = (articles[mix(book.seed, place, step) % len(articles)] for step in range(4))
        book.guide(article, *others)


def docs(book: Book, size: int, variant: int) -> None:
    """Numbered pages of a manual: chapters and sections."""
    shapes: list[Callable[[int, int], str]] = [
        lambda chapter, section: f"/manual/section-{chapter}.{section}.html",
        lambda chapter, section: f"/docs/{chapter:02d}/{section:03d}/",
        lambda chapter, section: f"/reference/page-{chapter * 1000 + section:06d}.html",
    ]
    everything: list[str] = []
    for chapter, part in enumerate(spread(size, 12 + size // 100), start=1):
        pages = [book.add(shapes[variant](chapter, section), 12) for section in range(len(part))]
        book.list("/", pages[0])
        book.list(pages[0], *pages[1:])
        everything += pages
    chain(book, everything)


def selected(book: Book, size: int, variant: int) -> None:
    """A parameter that looks like a session, and is the name of a text."""
    name, length = (("sid", 16), ("session", 32))[variant]
    items = [book.add(f"/read?{name}={token(HEX, length, book.seed, place)}") for place in range(size)]
    shelve(book, items, _paged("/index"), on="/")


def folders(book: Book, size: int, variant: int) -> None:
    """Deep, and with names that come again on the way down; every folder has its own text."""
    levels = [["/"]]
    names = ("main", "org", "src", "main", "test", "lib", "core", "src")
    left = size
    while left > 0 and len(levels) < 12:
        below: list[str] = []
        for parent in levels[-1]:
            for child in range(min(left, 2 if len(levels) > 4 else 4)):
                name = names[(len(levels) + child) % 8] if child == 0 else slug(book.seed, len(book.pages))
                base = parent if variant == 0 else parent.removesuffix("/index.html").removesuffix("/") + "/"
                target = book.add(base + name + ("/" if variant == 0 else "/index.html"))
                book.list(parent, target)
                below.append(target)
            left = size + 1 - len(book.pages)
        levels.append(below[:300])


def directory(book: Book, size: int, variant: int) -> None:
    """Entries of a dozen words: too few for a fingerprint, and each of somebody else."""
    shapes: list[Callable[[int], str]] = [
        lambda place: f"/member/{place}",
        lambda place: f"/people/{slug(book.seed, place)}-{place}.html",
        lambda place: f"/entry.php?id={place}",
    ]
    book.template = 0
    items = [book.add(shapes[variant](place), 1) for place in range(size)]
    for letter, part in enumerate(spread(size, 26)):
        shelve(
            book, [items[place] for place in part], _paged(f"/letter/{chr(97 + letter)}"), on="/", per_page=40
        )


def stations(book: Book, size: int, variant: int) -> None:
    """Columns of figures with a few words about each."""
    book.figures, book.template = 24, 12
    shape = ("/station/{}/", "/data.php?station={}&format=html")[variant]
    items = [book.add(shape.format(4000 + place * 3), 2) for place in range(size)]
    shelve(book, items, _paged("/stations"), on="/")
    chain(book, items)


def catalogue(book: Book, size: int, variant: int) -> None:
    """Hundreds of numbered pages of one list, and little else: the list is the content."""
    shapes: list[Callable[[int], str]] = [
        lambda number: f"/catalogue?page={number}",
        lambda number: f"/catalogue/page/{number}/",
    ]
    books = [book.add(f"/title/{place}") for place in range(size // 2)]
    shelve(book, books, shapes[variant], on="/", per_page=1 if size < 100 else 2)


def glossary(book: Book, size: int, variant: int) -> None:
    """What looks like a search and is a dictionary."""
    items = [
        book.add(f"/search?q={slug(book.seed, place)}+{place}".replace("-", "+")) for place in range(size)
    ]
    shelve(book, items, _paged("/words"), on="/", per_page=40)


def blog(book: Book, size: int, variant: int) -> None:
    """Posts with a printable version and a form to answer each comment: the same post again."""
    items = [book.add(f"/{slug(book.seed, place)}-{place}/", 12) for place in range(size)]
    for place, post in enumerate(items):
        if variant == 0:
            book.guide(post, book.again(f"{post}?print=1", post))
        if place % 10 == 0:
            comments = range(place * 100, place * 100 + 3)
            book.guide(post, *(book.again(f"{post}?replytocom={number}", post) for number in comments))
    shelve(book, items, lambda number: f"/page/{number}/", on="/", per_page=10)
    chain(book, items)


def cases(book: Book, size: int, variant: int) -> None:
    """A parameter that elsewhere says where a click came from, and here which case is meant."""
    items = [book.add(f"/case?ref={1990 + place % 30}-{place}") for place in range(size)]
    shelve(book, items, _paged("/cases"), on="/")


def colours(book: Book, size: int, variant: int) -> None:
    """Products in colours, each of which names the product as its canonical page."""
    items = [book.add(f"/goods/{slug(book.seed, place)}-{place}") for place in range(size)]
    for item in items:
        for colour in ("red", "blue"):
            book.guide(item, book.again(f"{item}?variant={colour}", item, canonical=True))
    shelve(book, items, _paged("/goods"), on="/")


def hashes(book: Book, size: int, variant: int) -> None:
    """Long hexadecimal names, one article each."""
    shape = ("/a/{}", "/{}.html")[variant]
    items = [book.add(shape.format(token(HEX, 24, book.seed, place))) for place in range(size)]
    shelve(book, items, _paged("/latest"), on="/")


def encyclopedia(book: Book, size: int, variant: int) -> None:
    """Articles that are found through each other alone: six new ones on every page, until there are no more."""
    shapes: list[Callable[[int], str]] = [
        lambda place: f"/a/{slug(book.seed, place)}-{place}",
        lambda place: f"/article?id={token(HEX, 16, book.seed, place)}",
    ]
    items = [book.add(shapes[variant](place), 14) for place in range(size)]
    book.list("/", *items[:6])
    for place, article in enumerate(items):
        book.list(article, *items[6 * place + 6 : 6 * place + 12])
        if place >= 6:
            others = {(place - 6) // 6, *(mix(book.seed, place, step) % place for step in range(2))}
            book.guide(article, *(items[other] for other in sorted(others)))


class Hosting(Site):
    """A domain under which everybody has a blog of their own: many small sites, all different."""

    trap = False

    def __init__(self, kind: str, variant: int, seed: int, size: int) -> None:
        super().__init__(kind, variant, seed)
        self._front = Book(kind, variant, seed)
        self._blogs: dict[str, Book] = {self.name: self._front}
        posts = (20, 10)[variant]
        homes = [self._blog(number, posts) for number in range(max(2, size // posts))]
        shelve(self._front, homes, _paged("/blogs"), on="/")

    def _blog(self, number: int, posts: int) -> str:
        blog = Book(self.kind, self.variant, mix(self.seed, number))
        blog.name = f"{word(self.seed, number)}{number}.{self.name}"
        items = [blog.add(f"/post/{slug(blog.seed, place)}") for place in range(posts - 2)]
        blog.list("/", *items)
        blog.guide("/", blog.add("/about"))
        self._blogs[blog.name] = blog
        return f"http://{blog.name}/"

    def view(self, host: str, target: str) -> View | None:
        blog = self._blogs.get(host)
        view = blog.view(host, target) if blog else None
        return view and view._replace(meaning=host + view.meaning)

    def contents(self) -> set[str]:
        return {host + meaning for host, blog in self._blogs.items() for meaning in blog.contents()}


Grow = Callable[[Book, int, int], None]

HOSTING = (3000, 600)
# How many pages each variant has at scale 1.
HONEST: Mapping[str, tuple[Grow, tuple[int, ...]]] = MappingProxyType(
    {
        "date-archive": (date_archive, (2500, 1500, 800)),
        "shop": (shop, (9000, 6000, 3000, 1500)),
        "forum": (forum, (5000, 3000, 2000)),
        "wiki": (wiki, (3000, 2000, 1000)),
        "docs": (docs, (2000, 1500, 800)),
        "selected": (selected, (1500, 800)),
        "folders": (folders, (1500, 1000)),
        "directory": (directory, (4000, 2000, 1000)),
        "stations": (stations, (1000, 500)),
        "catalogue": (catalogue, (2000, 1000)),
        "glossary": (glossary, (1200,)),
        "events": (events, (1500, 700)),
        "blog": (blog, (1000, 500)),
        "cases": (cases, (2500,)),
        "colours": (colours, (1000,)),
        "encyclopedia": (encyclopedia, (4000, 1500)),
        "hashes": (hashes, (3000, 1500)),
    }
)
