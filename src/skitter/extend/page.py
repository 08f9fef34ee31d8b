"""The page as users' code sees it: what was asked for, what came, and what is in it.

The same in a crawl, over an archive, in a test and in a notebook. Everything but the bytes is made when first
asked for, from one tree. Fetches nothing, and never changes what the crawl knows of the page: `follow` only
notes links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import msgspec
from turbohtml import Document, Element

from skitter.errors import UsageError
from skitter.extend.api import number
from skitter.extend.structured import structured_data
from skitter.focus.words import Words
from skitter.parse.content import PageContent, Source
from skitter.parse.markup.charset import decode
from skitter.parse.markup.html_tree import parse_document
from skitter.parse.media import HTML, XHTML, parse_content_type, sniff
from skitter.parse.page import read_page
from skitter.urls.canonical import normalise

MOST_FOLLOWED = 10_000
LONGEST_FORM = 4_096
Form = Mapping[str, object] | Sequence[tuple[str, object]]
"""Fields and their values; several values of one field are a list."""


class PageLink(msgspec.Struct, frozen=True):
    """A link of a page; `url` is absolute. `priority` is None where the crawl decides."""

    url: str
    text: str = ""
    rel: str = ""
    priority: int | None = None

    def at(self, priority: int | None) -> PageLink:
        """The same link with a priority from 0 to 100, or without one."""
        return msgspec.structs.replace(self, priority=checked_priority(priority))


class Page:
    """`headers` have lower-case names, and of several of one name the values in their order. `body` is without
    content coding. `fetched_at` is when the request was sent."""

    def __init__(
        self,
        url: str,
        body: bytes = b"",
        *,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
        fetched_at: float | datetime = 0.0,
        depth: int = 0,
        text: str | None = None,
        title: str | None = None,
    ) -> None:
        self.url = url
        self.body = body
        self.status = status
        self.header_fields = headers
        self.fetched_at = (
            fetched_at if isinstance(fetched_at, datetime) else datetime.fromtimestamp(fetched_at, UTC)
        )
        self.depth = depth
        self.followed: list[tuple[str, int | None]] = []
        self.posted: list[tuple[str, int | None, str, bool]] = []
        if text is not None:
            self.__dict__["text"] = text
        if title is not None:
            self.__dict__["title"] = title

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    # -- what came

    @cached_property
    def headers(self) -> dict[str, str]:
        """By lower-case name; several of one name are joined with a comma."""
        joined: dict[str, str] = {}
        for name, value in self.header_fields:
            name = name.lower()
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        return joined

    @cached_property
    def media_type(self) -> str:
        """By its headers and its first bytes."""
        return sniff(parse_content_type(self.headers.get("content-type", "")).essence, self.body)

    @cached_property
    def content(self) -> PageContent:
        """What the crawl itself reads of a page."""
        return read_page(
            self.body,
            url=self.url,
            content_type=self.headers.get("content-type", ""),
            with_text=True,
            link_header=self.headers.get("link", ""),
        )

    @cached_property
    def title(self) -> str:
        return self.content.title

    @cached_property
    def text(self) -> str:
        """The main text: without navigation, page furniture and forms."""
        return self.content.text

    @cached_property
    def links(self) -> list[PageLink]:
        """In their order, each URL once."""
        found: dict[str, PageLink] = {}
        for link in self.content.links:
            url = normalise(link.href, self.base)
            if url is not None and url not in found:
                found[url] = PageLink(url, link.text, link.rel)
        return list(found.values())

    @cached_property
    def base(self) -> str:
        """The URL that links are relative to."""
        said = self.tree.select_one("base[href]") if self.is_html else None
        href = said.attr("href") if said is not None else None
        return (normalise(href, self.url) if href else None) or self.url

    # -- what is in it

    @property
    def is_html(self) -> bool:
        return self.media_type in (HTML, XHTML)

    @cached_property
    def tree(self) -> Document:
        """The document as a browser would build it."""
        return self._parsed()

    def _parsed(self) -> Document:
        declared = parse_content_type(self.headers.get("content-type", ""))
        return parse_document(
            Source(body=self.body, url=self.url, media_type=self.media_type, charset=declared.charset)
        )

    @cached_property
    def html(self) -> str:
        """The body as text, by the encoding that a browser would take."""
        return decode(self.body, self.content.charset)[0]

    def css(self, selector: str) -> list[Element]:
        return self.tree.select(selector)

    select = css

    def xpath(self, expression: str) -> Any:
        """Elements, or texts where the expression ends in an attribute or in text()."""
        return self.tree.xpath(expression)

    def first(self, selector: str, default: Any = None) -> Any:
        """The text of the first element that matches, white space folded; `default` where there is none."""
        found = self.tree.select_one(selector)
        return default if found is None else text_of(found)

    def attr(self, selector: str, name: str, default: Any = None) -> Any:
        """An attribute of the first element that matches; `default` where there is none."""
        found = self.tree.select_one(selector)
        value = None if found is None else found.attr(name)
        return default if value is None else value

    def number(self, selector: str) -> float | None:
        """The number in the text of the first element that matches, or in its `content` attribute."""
        found = self.tree.select_one(selector)
        if found is None:
            return None
        said = found.attr("content")
        return number(text_of(found) if said is None else said)

    def json(self, selector: str = "") -> Any:
        """The document as JSON; with a selector, the text of that element, such as `script#__NEXT_DATA__`."""
        if not selector:
            return msgspec.json.decode(self.body)
        found = self.tree.select_one(selector)
        if found is None:
            raise LookupError(f"{self.url} has no {selector}")
        return msgspec.json.decode(found.text)

    @cached_property
    def data(self) -> list[dict[str, Any]]:
        """What the page says in JSON-LD, microdata, OpenGraph and RDFa: a dict for each thing, with its
        `@type`."""
        return structured_data(self.tree, self.base, self._parsed) if self.is_html else []

    @cached_property
    def tables(self) -> list[list[list[str]]]:
        """Of each table its rows, of each row the texts of its cells."""
        return self.tree.tables()

    @cached_property
    def markdown(self) -> str:
        """The main content, with links absolute."""
        if not self.is_html:
            return self.text
        # a tree of its own: to resolve links changes it
        document = self._parsed()
        document.resolve_links(self.base)
        main = document.main_content()
        return (main if main is not None else document).to_markdown()

    def density(self, *words: str) -> float:
        """From 0 to 1: how much of the text, with the title, these words are. 1 when it is every 50th word."""
        return Words(words).density(f"{self.title}\n{self.text}")

    def absolute(self, href: str | None) -> str | None:
        """The URL that an href of this page means; None where it is none."""
        return normalise(href, self.base) if href else None

    # -- what is to be followed

    def follow(
        self,
        link: str | Element | PageLink,
        priority: int | None = None,
        *,
        method: str = "GET",
        form: Form | None = None,
        safe: bool = False,
    ) -> None:
        """Also this one. The crawl decides as of any link: scope, robots.txt and budgets stay in force.

        With `method="POST"` the fields of `form` are posted to it. A form is sent once: not again after a failure
        that leaves open whether it was sent, unless it is `safe`, as a search is."""
        if len(self.followed) + len(self.posted) >= MOST_FOLLOWED:
            raise UsageError(f"a page may follow {MOST_FOLLOWED:,} links, and no more")
        body = encoded_form(method, form)
        href = self._href(link)
        url = normalise(href, self.base) if href else None
        if url is None:
            return
        if body is None:
            self.followed.append((url, checked_priority(priority)))
        else:
            self.posted.append((url, checked_priority(priority), body, safe))

    def _href(self, link: object) -> str | None:
        if isinstance(link, str):
            return link
        if isinstance(link, PageLink):
            return link.url
        if isinstance(link, Element):
            return link.attr("href") or link.attr("src") or link.attr("action")
        raise TypeError(f"page.follow takes a URL, a link or an element, not {type(link).__name__}")


def text_of(element: Element) -> str:
    return " ".join(element.text.split())


def checked_priority(priority: int | None) -> int | None:
    given: object = priority  # by users' code, whatever the signature says
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= 100):
        return priority
    raise ValueError(f"a priority is a whole number from 0 to 100, not {given!r}")


def encoded_form(method: str, form: Form | None) -> str | None:
    """What is posted, as browsers encode it; None where the link is asked for as links are."""
    if method == "GET" and form is None:
        return None
    if method != "POST" or form is None:
        raise UsageError('page.follow posts a form: give method="POST" and form={"field": "value"} together')
    # an empty form has something to post too: else it could not be told from a link
    body = urlencode(form, doseq=True) or "="
    if len(body) > LONGEST_FORM:
        raise UsageError(f"a form of {len(body):,} bytes: {LONGEST_FORM:,} at most")
    return body
