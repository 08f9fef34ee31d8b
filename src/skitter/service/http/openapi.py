"""The OpenAPI 3.1 document, made from the table of routes.

`python -m skitter.service.http.openapi` writes docs/openapi.json, which a test compares. Schemas come from the
same msgspec types that decode and encode, so the document says what the code does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from skitter import __version__
from skitter.service.http.problem import MEDIA, ProblemAnswer, Trouble
from skitter.service.http.replays import KEY, LONGEST_KEY
from skitter.service.http.route_table import ROUTES
from skitter.service.http.routes import JSON, MSGPACK, Route

FILE = Path(__file__).resolve().parents[4] / "docs" / "openapi.json"
_REFERENCE = "#/components/schemas/{name}"
_STRUCTURED = (JSON, MSGPACK)
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Any text, fresh for each call: one that is sent again with it is answered as before.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": KEY},
}
_ABOUT = (
    "Steer a skitter crawl, look into it, and work for it. Times are seconds since the epoch by the server's "
    "clock. Every error is a problem (RFC 9457) whose detail says what to do."
)


def document(routes: Sequence[Route] = ROUTES) -> dict[str, Any]:
    shown = [route for route in routes if route.documented]
    types = list(dict.fromkeys(_types(shown)))
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    schema_of = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "skitter", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types(routes: Iterable[Route]) -> Iterable[Any]:
    yield ProblemAnswer
    for route in routes:
        yield from (part for part in (route.body, route.query, route.answer) if part is not None)


def _operation(route: Route, schema_of: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.call.__name__,
        "tags": [route.group],
        "summary": route.summary,
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(route, schema_of, components),
            *([_KEY] if route.keyed else ()),
        ],
        "responses": _responses(route, schema_of),
    }
    if route.detail:
        operation["description"] = route.detail
    if route.body is not None:
        content = {route.body_media: {"schema": schema_of[route.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.role is not None:
        operation["security"] = [{"token": []}]
        operation["x-role"] = route.role.word
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", route.path)
    schema = {"type": "string", "minLength": 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _query_parameters(
    route: Route, schema_of: dict[Any, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    name = schema_of[route.query]["$ref"].rpartition("/")[2]
    schema = components[name]
    required = schema.get("required", ())
    return [
        {"name": field, "in": "query", "required": field in required, "schema": about}
        for field, about in schema["properties"].items()
    ]


def _responses(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": route.summary}
    if route.answer is not None:
        answer["content"] = {route.answer_media: {"schema": schema_of[route.answer]}}
    elif route.answer_media not in _STRUCTURED:
        answer["content"] = {route.answer_media: {"schema": {"type": "string"}}}
    responses = {str(route.status): answer}
    by_status: dict[int, list[Trouble]] = {}
    for trouble in troubles_of(route):
        by_status.setdefault(trouble.status, []).append(trouble)
    for status, troubles in sorted(by_status.items()):
        responses[str(status)] = {
            "description": "; ".join(f"{trouble.title} (`{trouble.slug}`)" for trouble in troubles),
            "content": {MEDIA: {"schema": schema_of[ProblemAnswer]}},
        }
    return responses


def troubles_of(route: Route) -> tuple[Trouble, ...]:
    """What a call of this route may run into: its own problems and those of every route of its kind."""
    found = [*route.problems, Trouble.FOREIGN_ORIGIN, Trouble.UNAVAILABLE]
    if route.role is not None:
        found += [Trouble.UNAUTHENTICATED, Trouble.FORBIDDEN]
    if route.body is not None:
        found += [Trouble.MALFORMED, Trouble.TOO_LARGE, Trouble.WRONG_MEDIA]
    if route.body is not None or route.query is not None:
        found.append(Trouble.INVALID)
    if "{" in route.path:
        found += [Trouble.NO_SUCH_PATH, Trouble.INVALID]
    if route.keyed:
        found.append(Trouble.KEY_REUSED)
    return tuple(dict.fromkeys(found))


def text() -> str:
    return msgspec.json.format(msgspec.json.encode(document()), indent=2).decode() + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
