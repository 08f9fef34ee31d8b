"""The settings of the browser that renders pages: `[render]`.

A section of `Settings` like the others, in a file of its own. docs/rendering.md explains them to users.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Doc = Meta
_AtLeastOne = Annotated[int, Meta(ge=1)]
_Positive = Annotated[float, Meta(gt=0)]


class RenderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The browser that renders pages, which has no network: docs/rendering.md."""

    browser: Annotated[
        str, Doc(description="The program; without it chromium-headless-shell, as Debian calls it.")
    ] = ""
    tabs: Annotated[_AtLeastOne, Doc(description="Pages that are rendered at once.")] = 4
    memory: Annotated[
        Annotated[int, Meta(ge=200_000_000)],
        Doc(description="Bytes of RAM above which a browser is replaced by a new one, between two pages."),
    ] = 1_000_000_000
    process_memory: Annotated[
        Annotated[int, Meta(ge=200_000_000)],
        Doc(
            description="Bytes that one process of the browser may allocate; a page that wants more crashes."
        ),
    ] = 1_100_000_000
    soft_limit: Annotated[
        _Positive,
        Doc(
            description="Seconds after which a page's scripts are ended, and what there is of it is taken; the "
            "time in which it waits for answers does not count."
        ),
    ] = 8.0
    hard_limit: Annotated[
        _Positive,
        Doc(description="Seconds, counted alike, after which a page is given up and its tab ended."),
    ] = 15.0
    patience: Annotated[
        _Positive, Doc(description="Seconds that a page waits for answers, in all; then they are missing.")
    ] = 30.0
    max_requests: Annotated[_AtLeastOne, Doc(description="Requests of one page that are answered.")] = 100
    max_answer: Annotated[_AtLeastOne, Doc(description="Bytes of one answer; a longer one is refused.")] = (
        5_000_000
    )
    max_answers: Annotated[_AtLeastOne, Doc(description="Bytes of all answers to one page.")] = 30_000_000
    max_html: Annotated[
        _AtLeastOne, Doc(description="Characters of the rendered HTML; the rest is cut off.")
    ] = 2_000_000
    share: Annotated[
        Annotated[float, Meta(ge=0, le=1)],
        Doc(
            description="Share of the time that soundings may take: renderings of pages that look whole, a few "
            "of each host, to see whether they are."
        ),
    ] = 0.05
    max_rounds: Annotated[
        _AtLeastOne, Doc(description="Times that the rendering of a page waits for answers in a crawl.")
    ] = 6
    longest_wait: Annotated[
        _Positive,
        Doc(description="Seconds that a rendering waits for one round of answers; then it goes on without."),
    ] = 600.0
    waiting_tabs: Annotated[
        _AtLeastOne,
        Doc(description="Tabs of a worker that wait for answers; of others their pages are rendered anew."),
    ] = 16
    screenshots: Annotated[
        bool, Doc(description="Archive what rendered pages look like, as urn:view: records (--screenshots).")
    ] = False
    nice: Annotated[
        Annotated[int, Meta(ge=0, le=19)],
        Doc(
            description="How far the browser stands back where CPUs are busy: with 10 a fetching worker gets "
            "nine times as much, so that plain pages are not held up."
        ),
    ] = 10
    sandbox: Annotated[
        bool,
        Doc(
            description="Use the browser's own sandbox, which needs user name spaces. Without it a page that "
            "breaks out of its script engine is stopped by the kernel's filters alone."
        ),
    ] = True
    user: Annotated[
        str, Doc(description="Who the browser runs as when skitter runs as root, which it must not.")
    ] = "nobody"
