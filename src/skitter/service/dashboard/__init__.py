"""The operator's dashboard: static files at `/` that call the API as any other client does.

Every file is a row of the table of routes, so nothing but these files can be asked for. They tell nothing of the
crawl and need no token; what they show is fetched with one. No build step, nothing from another origin.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import Response

from skitter.service.api_context import ApiContext
from skitter.service.http.routes import Act, Call, Route

_GROUP = "dashboard"
_FRONT = "index.html"
_MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def _assets(folder: Traversable, below: str = "") -> Iterator[tuple[str, Traversable]]:
    """Every file and its path, as in `css/base.css`."""
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _assets(entry, f"{below}{entry.name}/")
        elif entry.name.rpartition(".")[2] in _MEDIA:
            yield below + entry.name, entry


def _serving(file: Traversable) -> Act:
    @functools.cache
    def content() -> tuple[bytes, str]:
        read = file.read_bytes()
        return read, f'"{sha256(read).hexdigest()[:24]}"'

    async def asset(context: ApiContext, call: Call[None, None]) -> Response:
        body, tag = content()
        # asked about each time and sent only when it changed: a new version of skitter is seen at once
        headers = {"etag": tag, "cache-control": "no-cache"}
        if call.request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return Response(body, 200, headers, _MEDIA[file.name.rpartition(".")[2]])

    return asset


ROUTES = tuple(
    Route(
        method="GET",
        path="/" if path == _FRONT else f"/{path}",
        role=None,
        group=_GROUP,
        summary=f"The dashboard: {path}",
        call=_serving(file),
        documented=False,
    )
    for path, file in _assets(files(__package__) / "assets")
)
