"""One URL: all that is known of it, and its archived copy."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from skitter.frontier.base import Explanation
from skitter.model import UrlKey
from skitter.service.api_context import ApiContext
from skitter.service.archived_copies import copy_of, text_of
from skitter.service.http.access import Role
from skitter.service.http.problem import Problem, Trouble
from skitter.service.http.routes import TEXT, Call, Route

_GROUP = "urls"
_BYTES = "application/octet-stream"
_KEY_DIGITS = 32


class ExplainAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(min_length=1, max_length=8192)]


async def explain(context: ApiContext, call: Call[None, ExplainAsked]) -> Explanation:
    return await context.frontier.explain(call.query.url)


async def url_by_key(context: ApiContext, call: Call[None, None]) -> Explanation:
    return await context.frontier.explain(await _url(context, call))


async def archived_text(context: ApiContext, call: Call[None, None]) -> Response:
    url = await _url(context, call)
    text = await text_of(context.folder.path, url, context.settings.fetch)
    return Response(text.encode("utf-8", "replace"), media_type=TEXT)


async def archived_headers(context: ApiContext, call: Call[None, None]) -> Response:
    copy = await copy_of(context.folder.path, await _url(context, call), context.settings.fetch)
    return Response(copy.head.decode("latin-1").encode(), media_type=TEXT)


async def archived_body(context: ApiContext, call: Call[None, None]) -> Response:
    copy = await copy_of(context.folder.path, await _url(context, call), context.settings.fetch)
    return Response(copy.body, headers={"content-disposition": "attachment"}, media_type=_BYTES)


async def _url(context: ApiContext, call: Call[None, None]) -> str:
    text = call.path["key"]
    try:
        key = bytes.fromhex(text) if len(text) == _KEY_DIGITS else b""
    except ValueError:
        key = b""
    url = await context.frontier.url_of(UrlKey(key)) if key else None
    if url is None:
        raise Problem(
            Trouble.UNKNOWN_URL, "a key has 32 hexadecimal digits; /v1/explain?url=URL tells that of a URL"
        )
    return url


def _archived(name: str, summary: str, call: object, media: str) -> Route:
    return Route(
        method="GET",
        path=f"/v1/urls/{{key}}/{name}",
        role=Role.READ,
        group=_GROUP,
        summary=summary,
        call=call,  # type: ignore[arg-type]
        answer_media=media,
        problems=(Trouble.UNKNOWN_URL, Trouble.NOT_ARCHIVED),
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/explain",
        role=Role.READ,
        group=_GROUP,
        summary="Why a URL was crawled, or was not",
        detail="Also for URLs that the crawl does not know: what would become of them if a page linked them.",
        call=explain,
        query=ExplainAsked,
        answer=Explanation,
    ),
    Route(
        method="GET",
        path="/v1/urls/{key}",
        role=Role.READ,
        group=_GROUP,
        summary="All that is known of a URL, by its key",
        call=url_by_key,
        answer=Explanation,
        problems=(Trouble.UNKNOWN_URL,),
    ),
    _archived("text", "The main text of the newest archived copy", archived_text, TEXT),
    _archived("headers", "The status line and headers of the newest archived copy", archived_headers, TEXT),
    _archived("body", "The body of the newest archived copy, without content coding", archived_body, _BYTES),
)
