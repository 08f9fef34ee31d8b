"""The kinds of tasks, as a worker sees them: one row for each. A new kind is a new row here, and its reader.

Looked up by `step.py` for every task, and by the service for foreign workers' reports. Nothing else in a worker
compares kinds. How a frontier treats each is in `schedule/kinds.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from skitter.model import Result, Task, TaskKind
from skitter.parse.markup.css import CSS
from skitter.parse.media import HTML, PDF
from skitter.parse.pdf import PdfReading
from skitter.parse.sitemaps.sitemap import looks_like_sitemap
from skitter.worker.reading.page_reader import PageReader
from skitter.worker.results import Answer, Reading, ResultMaker

# A page's own stylesheet is at level 1; three levels of sheets that it imports are read for what they need.
_DEEPEST_SHEET = 4


class Document(Enum):
    """How the body of an answer is read."""

    UNREAD = 0
    READ = 1
    READ_AS_PDF = 2
    """By a process of its own first."""
    READ_AS_SITEMAP = 3
    """Piece by piece, with turns for others in between."""


class KindRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker does with one kind of task, step by step."""

    name: str
    """In the archive."""
    takes_any_body: bool = False
    """Whatever its type; else the readers are asked in the middle of a body whether they want the rest."""
    document: Callable[[Task, Answer], Document]
    """How a whole answer is read."""
    read: Callable[[PageReader, Answer, PdfReading | None], Reading] = PageReader.read
    make: Callable[[ResultMaker, Task, Answer, Reading], Result] = ResultMaker.fetched
    """Makes the result where the status alone does not decide it."""
    is_long: bool = False
    """`sitemaps.max_body` limits it, not `fetch.max_body`."""
    is_rules: bool = False
    """The frontier needs the body itself."""
    is_extracted: bool = False
    """Users' code sees it."""
    has_links: bool = False
    """Links that a foreign worker reports count."""


def make_result(row: KindRow, results: ResultMaker, task: Task, answer: Answer, reading: Reading) -> Result:
    """What was read is the page of a 200; otherwise the status is looked at first."""
    if reading.wall is not None:
        return results.walled(answer, reading.wall)
    by_status = results.by_status(task, answer) if reading.page is None else None
    return row.make(results, task, answer, reading) if by_status is None else by_status


def _is_whole(answer: Answer) -> bool:
    return answer.exchange.status == 200 and bool(answer.exchange.body)


def _unread(task: Task, answer: Answer) -> Document:
    return Document.UNREAD


def _page(task: Task, answer: Answer) -> Document:
    if not _is_whole(answer):
        return Document.UNREAD
    if answer.declared == PDF or answer.exchange.body.startswith(b"%PDF-"):
        return Document.READ_AS_PDF
    is_sitemap = not task.depth and answer.declared != HTML and looks_like_sitemap(answer.exchange.body)
    return Document.READ_AS_SITEMAP if is_sitemap else Document.READ


def _sitemap(task: Task, answer: Answer) -> Document:
    return Document.READ_AS_SITEMAP if _is_whole(answer) else Document.UNREAD


def _stylesheet(task: Task, answer: Answer) -> Document:
    """Of all that a page needs only stylesheets need something themselves."""
    is_read = _is_whole(answer) and answer.declared == CSS and task.nesting <= _DEEPEST_SHEET
    return Document.READ if is_read else Document.UNREAD


def _declaration(task: Task, answer: Answer) -> Document:
    return Document.READ if _is_whole(answer) else Document.UNREAD


KINDS = {
    TaskKind.ROBOTS: KindRow(
        name="robots",
        takes_any_body=True,
        document=_unread,
        make=ResultMaker.robots_read,
        is_rules=True,
    ),
    TaskKind.PAGE: KindRow(name="page", document=_page, is_extracted=True, has_links=True),
    TaskKind.FORM: KindRow(name="form", document=_page, is_extracted=True),
    TaskKind.SAFE_FORM: KindRow(name="safe_form", document=_page, is_extracted=True),
    TaskKind.REQUISITE: KindRow(name="requisite", takes_any_body=True, document=_stylesheet),
    TaskKind.PROBE: KindRow(name="probe", document=_page),
    TaskKind.SITEMAP: KindRow(
        name="sitemap", takes_any_body=True, is_long=True, document=_sitemap, has_links=True
    ),
    TaskKind.DECLARATION: KindRow(
        name="declaration",
        takes_any_body=True,
        document=_declaration,
        read=PageReader.read_declaration,
    ),
    TaskKind.FEED: KindRow(name="feed", takes_any_body=True, document=_sitemap, has_links=True),
    TaskKind.RENDER: KindRow(name="rendered", document=_page, is_extracted=True),
}
