"""A route as a row of a table: what it takes, who may call it, what it answers, and the function that does it.

The application and the OpenAPI document are both made from these rows, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request

from skitter.service.api_context import ApiContext
from skitter.service.http.access import Caller, Role
from skitter.service.http.problem import Trouble

JSON = "application/json"
MSGPACK = "application/msgpack"
TEXT = "text/plain"
ANY = "*/*"
"""Of a body: whatever its sender says it is."""
LARGEST_BODY = 16_000_000

Body = TypeVar("Body")
Query = TypeVar("Query")


@dataclass(frozen=True, slots=True)
class Call(Generic[Body, Query]):
    """One request, read and checked: `path` are the path's parameters, unquoted. `request` is for what a
    route's types cannot say; its body has been read already."""

    body: Body
    query: Query
    path: Mapping[str, str]
    caller: Caller
    request: Request


Act = Callable[[ApiContext, Call[Any, Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`body`, `query` and `answer` are msgspec structs (or None); bodies and answers are JSON unless the media
    says otherwise, and an answer of another media type is bytes, a string, or a Starlette response."""

    method: str
    path: str
    role: Role | None
    """None: no token is needed. Only for what tells nothing of the crawl."""
    summary: str
    call: Act
    group: str
    detail: str = ""
    body: Any = None
    query: Any = None
    answer: Any = None
    status: int = 200
    problems: tuple[Trouble, ...] = ()
    body_media: str = JSON
    answer_media: str = JSON
    largest_body: int = LARGEST_BODY
    keyed: bool = False
    """A repeated `Idempotency-Key` is answered as the first time. For what a retry would do twice."""
    documented: bool = True
    """False keeps it out of the OpenAPI document: static pages."""
