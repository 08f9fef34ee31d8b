"""The sitemaps and feeds that a page names: links of their own kinds, beside those that are followed.

Between reading a page and its result. Only what lies on the page's own host counts: anybody could name the files
of others. Makes no request.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.model import Link, LinkBatch, Task, TaskKind
from skitter.parse.page import PageContent
from skitter.urls.canonical import host_of
from skitter.urls.links import LinkReader


def list_files(links: LinkReader, task: Task, page: PageContent) -> tuple[LinkBatch, ...]:
    return tuple(
        batch
        for kind, depth, hrefs in (
            (TaskKind.SITEMAP, 0, page.sitemaps),
            (TaskKind.FEED, task.depth, page.feeds),
        )
        if hrefs and (batch := _files(links, task, page, kind, depth, hrefs)) is not None
    )


def _files(
    links: LinkReader, task: Task, page: PageContent, kind: TaskKind, depth: int, hrefs: Sequence[str]
) -> LinkBatch | None:
    host = host_of(task.url)
    resolved = links.resolve(page.base, [Link(href) for href in hrefs])
    found = {one[0]: one[1] for one in resolved if one is not None and one[2] == host and one[1] != task.key}
    if not found:
        return None
    return LinkBatch(b"".join(found.values()), "\n".join(found), depth, parent=task.key, kind=kind)
