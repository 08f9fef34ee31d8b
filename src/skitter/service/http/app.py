"""The application: a request finds its route, is checked and decoded, and is answered or refused.

Order matters: where a request comes from and what its token allows are looked at before a byte of its body is
read. Every refusal is a problem; a bug answers 500 without details and goes on to the server's log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Receive, Scope, Send

from skitter.errors import SkitterError, UsageError
from skitter.service.api_context import ApiContext
from skitter.service.http.access import Access, Caller, Role, is_loopback
from skitter.service.http.openapi import document
from skitter.service.http.problem import MEDIA, Problem, Trouble
from skitter.service.http.replays import Replays
from skitter.service.http.route_table import ROUTES
from skitter.service.http.routes import ANY, JSON, MSGPACK, Call, Route

_log = logging.getLogger(__name__)
_DECODERS: Mapping[str, Any] = {JSON: msgspec.json.Decoder, MSGPACK: msgspec.msgpack.Decoder}
_ENCODERS: Mapping[str, Any] = {JSON: msgspec.json.encode, MSGPACK: msgspec.msgpack.encode}
_PATIENCE = 4
# What a page of ours may load: nothing from elsewhere. nosniff: an archived text stays text in any browser.
_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def application(context: ApiContext, access: Access, routes: Sequence[Route] = ROUTES) -> ASGIApp:
    by_path: dict[str, dict[str, _Endpoint]] = {}
    replays = Replays()
    for route in (*routes, _description(routes)):
        by_path.setdefault(route.path, {})[route.method] = _Endpoint(context, access, replays, route)
    methods = {path: _Methods(endpoints) for path, endpoints in by_path.items()}
    app = Starlette(
        routes=[Path(path, method) for path, method in methods.items()],
        exception_handlers=_ANSWERS,
    )
    app.router.redirect_slashes = False
    return _Direct({path: method for path, method in methods.items() if "{" not in path}, app)


def _description(routes: Sequence[Route]) -> Route:
    text = msgspec.json.encode(document(routes))

    async def describe(context: ApiContext, call: Call[None, None]) -> Response:
        return Response(text, media_type=JSON)

    return Route(
        method="GET",
        path="/openapi.json",
        role=None,
        group="service",
        summary="This description of the API",
        call=describe,
        documented=False,
    )


class _Direct:
    """Matches the path as it was sent, so that a host written `http:%2F%2Fexample.org` is one segment. A path
    without parameters is looked up: trying sixty patterns in turn, and what else lies before a route, took 150 of
    the 250 us of a worker's call."""

    def __init__(self, methods: Mapping[str, _Methods], app: ASGIApp) -> None:
        self._methods = methods
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        method = self._methods.get(scope.get("path", ""))
        if method is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            response = await method.answer(scope, receive)
        except Exception as error:
            await (await _answer_to(error, scope))(scope, receive, send)
            if _is_bug(error):
                raise  # to the server's log
            return
        await response(scope, receive, send)


class _Methods:
    def __init__(self, methods: Mapping[str, _Endpoint]) -> None:
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self.answer(scope, receive))(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive) -> Response:
        endpoint = self._methods.get(scope["method"])
        if endpoint is None:
            allowed = ", ".join(sorted(self._methods))
            raise Problem(Trouble.NO_SUCH_METHOD, f"use {allowed}", {"allow": allowed})
        return await endpoint(Request(scope, receive))


class _Endpoint:
    def __init__(self, context: ApiContext, access: Access, replays: Replays, route: Route) -> None:
        self._context = context
        self._replays = replays
        self._access = access
        self._route = route
        decoder = _DECODERS.get(route.body_media)
        self._decode = decoder(route.body).decode if decoder and route.body is not None else None

    async def __call__(self, request: Request) -> Response:
        route = self._route
        _refuse_foreign(request, self._access)
        caller = self._authorise(request)
        path = {name: unquote(value) for name, value in request.path_params.items()}
        query = _query(request, route.query) if route.query is not None else None
        raw = await self._raw(request) if route.body is not None else b""

        async def act() -> Response:
            body = self._decoded(raw) if route.body is not None else None
            answer = await route.call(self._context, Call(body, query, path, caller, request))
            return _response(route, answer)

        key = request.headers.get("idempotency-key") if route.keyed else None
        if key is None:
            return await act()
        whose = f"{request.headers.get('authorization', '')}\0{request.url.path}"
        return await self._replays.once(whose, key, raw, act)

    def _authorise(self, request: Request) -> Caller:
        needed = self._route.role
        if needed is None:
            return Caller(Role.READ)
        caller = self._access.caller_of(request.headers.get("authorization", ""))
        if caller is None:
            raise Problem(
                Trouble.UNAUTHENTICATED,
                "send a token that the server knows: Authorization: Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )
        if caller.role < needed:
            raise Problem(
                Trouble.FORBIDDEN, f"this needs the role {needed.word}, yours is {caller.role.word}"
            )
        return caller

    async def _raw(self, request: Request) -> bytes:
        route = self._route
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if route.body_media not in (media, ANY):
            raise Problem(Trouble.WRONG_MEDIA, f"send it with Content-Type: {route.body_media}")
        return await _read(request, route.largest_body)

    def _decoded(self, raw: bytes) -> Any:
        if self._decode is None:
            return raw
        try:
            return self._decode(raw)
        except msgspec.ValidationError as error:
            return self._decoded_again(raw, error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem(Trouble.MALFORMED, f"this is not {self._route.body_media}: {error}") from error

    def _decoded_again(self, raw: bytes, error: msgspec.ValidationError) -> Any:
        """JSON knows no integers: 200.0 is the number 200, and some clients write it so."""
        if self._route.body_media != JSON:
            raise Problem(Trouble.INVALID, str(error)) from error
        try:
            return msgspec.convert(_integral(msgspec.json.decode(raw)), self._route.body)
        except msgspec.ValidationError as second:
            raise Problem(Trouble.INVALID, str(second)) from second
        except (msgspec.DecodeError, RecursionError):
            # what was wrong at first is told: the rest was not even looked at then
            raise Problem(Trouble.INVALID, str(error)) from error


def _integral(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_integral(one) for one in value]
        case dict():
            return {name: _integral(one) for name, one in value.items()}
    return value


async def _read(request: Request, largest: int) -> bytes:
    """The body, whatever Content-Length says. One that is somewhat too large is read to its end and forgotten: a
    client that is still sending would see a broken connection instead of the refusal."""
    parts, size = [], 0
    announced = request.headers.get("content-length", "")
    if not announced.isdecimal() or int(announced) <= _PATIENCE * largest:
        async for part in request.stream():
            size += len(part)
            if size <= largest:
                parts.append(part)
            elif size > _PATIENCE * largest:
                break
        if size <= largest:
            return b"".join(parts)
    raise Problem(
        Trouble.TOO_LARGE,
        f"at most {largest:,} bytes are read: send several smaller ones",
        {"connection": "close"},
    )


def _query(request: Request, wanted: Any) -> Any:
    given = request.query_params.multi_items()
    once = dict(given)
    if len(once) != len(given):
        raise Problem(Trouble.INVALID, "give every query parameter once")
    try:
        return msgspec.convert(once, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(Trouble.INVALID, f"query: {error}") from error


def _refuse_foreign(request: Request, access: Access) -> None:
    """A page of another site, open in a browser on this machine, can send requests here: an `Origin` that is not
    ours tells of it. And where no token protects us, a name that was made to lead to 127.0.0.1 tells of it
    (DNS rebinding)."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Problem(Trouble.FOREIGN_ORIGIN, "calls from pages of other sites are refused")
    has_address = request.scope.get("server", ("", None))[1] is not None  # a unix socket has no port
    if access.is_open and has_address and not is_loopback(_name(host)):
        raise Problem(
            Trouble.FOREIGN_ORIGIN, "without tokens only localhost, 127.0.0.1 and [::1] are answered by name"
        )


def _name(authority: str) -> str:
    name, colon, _ = authority.rpartition(":")
    return name if colon and not authority.endswith("]") else authority


def _response(route: Route, answer: object) -> Response:
    if isinstance(answer, Response):
        answer.headers.update({name: value for name, value in _HEADERS.items() if name not in answer.headers})
        return answer
    encode = _ENCODERS.get(route.answer_media)
    content = encode(answer) if encode else answer
    return Response(content, route.status, _HEADERS, route.answer_media)


def _problem(problem: Problem) -> Response:
    content = msgspec.json.encode(problem.answer())
    return Response(content, problem.trouble.status, {**_HEADERS, **problem.headers}, MEDIA)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return _problem(error)


async def _unmatched(request: Request, error: Exception) -> Response:
    return _problem(Problem(Trouble.NO_SUCH_PATH, "see /openapi.json for what there is"))


async def _our_fault(request: Request, error: Exception) -> Response:
    if isinstance(error, UsageError):
        return _problem(Problem(Trouble.INVALID, str(error)))
    _log.error("%s %s: %s", request.method, request.url.path, error)
    return _problem(Problem(Trouble.UNAVAILABLE, "try again later; the server's log says why"))


async def _left(request: Request, error: Exception) -> Response:
    """Nobody is there to read it; a client that hangs up in the middle is no bug of ours."""
    return Response(status_code=400)


async def _bug(request: Request, error: Exception) -> Response:
    return _problem(Problem(Trouble.FAULT, "please report it, with the log of the time"))


_ANSWERS: Mapping[Any, Any] = {
    Problem: _told,
    HTTPException: _unmatched,
    ClientDisconnect: _left,
    SkitterError: _our_fault,
    Exception: _bug,
}


def _kind_of(error: Exception) -> type[BaseException]:
    return next(kind for kind in type(error).__mro__ if kind in _ANSWERS)


def _is_bug(error: Exception) -> bool:
    return _kind_of(error) is Exception


async def _answer_to(error: Exception, scope: Scope) -> Response:
    response: Response = await _ANSWERS[_kind_of(error)](Request(scope), error)
    return response
