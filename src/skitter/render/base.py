"""What goes into a rendering and what comes out of it: values, and the one question that it asks.

A rendering is a function: a page and answers in; HTML, and what was missing, out. It fetches nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import msgspec

Headers = tuple[tuple[str, str], ...]


class Ending(StrEnum):
    """How the rendering of a page ended: a closed set."""

    DONE = "done"
    LATE = "late"
    """Its time was over: what there was is taken."""
    STUCK = "stuck"
    """Nothing could be taken of it within the hard limit."""
    CRASHED = "crashed"
    """The process of the page died."""
    DIED = "died"
    """The browser died, twice in a row at this page."""
    NO_PAGE = "no_page"
    """The browser would not show the answer as a page."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that a page would like to make. `kind` is the browser's word: Script, XHR, Image ..."""

    url: str
    method: str = "GET"
    kind: str = "Other"
    headers: dict[str, str] = {}
    body: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Of a server, its content coding undone."""

    status: int
    headers: Headers = ()
    body: bytes = b""


class PageToRender(msgspec.Struct, frozen=True, kw_only=True):
    """`fetched_at` is what the page takes for the present, in whole seconds."""

    url: str
    answer: Answer
    fetched_at: float
    screenshots: bool = False


class Answers(Protocol):
    async def find(self, asked: Asked) -> Answer | None:
        """None when there is none, and none will come while the page waits. The page's clock stands meanwhile."""
        ...


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """A request that a rendering never makes, with the rule."""

    url: str
    why: str


class Screenshots(msgspec.Struct, frozen=True, kw_only=True):
    whole: bytes
    thumbnail: bytes
    media_type: str = "image/jpeg"


class Rendered(msgspec.Struct, kw_only=True):
    """What became of a page. `html` is the document as scripts left it, with shadow roots as templates; `text`
    is what a reader sees of it. `missing` are the requests without an answer, in their order, each once."""

    url: str
    ending: Ending
    html: str = ""
    is_cut: bool = False
    text: str = ""
    used: tuple[str, ...] = ()
    missing: tuple[Asked, ...] = ()
    refused: tuple[Refused, ...] = ()
    leads_to: tuple[str, ...] = ()
    """Where a script of the page wanted to go."""
    popups: int = 0
    requests: int = 0
    screenshots: Screenshots | None = None
    seconds: float = 0.0
    """Without the time that it was frozen."""
    frozen: float = 0.0

    @property
    def has_content(self) -> bool:
        return self.ending in (Ending.DONE, Ending.LATE)
