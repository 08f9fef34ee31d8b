"""Carries out an operator's order: here, if the crawl's folder is free, or by the process that works in it.

Below the commands that change something. The lock decides who does it: whoever holds it. A process that is just
starting or ending does not answer yet or any more; it is waited for a while. An order that was cut off is simply
given again: all of them may be.
"""

from __future__ import annotations

import asyncio
import http.client
import shlex
import socket
import sys
from typing import Generic, NamedTuple, TypeVar

import msgspec

from skitter.errors import FolderInUse, SkitterError, UsageError
from skitter.folder import CrawlFolder, socket_name
from skitter.service.http.problem import Problem, ProblemAnswer, Trouble
from skitter.service.steering.order import Order, Steered
from skitter.settings import Settings
from skitter.urls.keys import Keys

Answer = TypeVar("Answer")
_TRIES, _BETWEEN = 100, 0.1
# Seconds: to look again at a million pages takes a while.
_PATIENCE = 600.0


class Done(NamedTuple, Generic[Answer]):
    """What came of an order. `holder` is the process that was told; empty when it was carried out here."""

    answer: Answer
    holder: str

    def who_goes_on(self, folder: CrawlFolder) -> str:
        """Who fetches what was queued."""
        if self.holder:
            return "the crawl that is running"
        return f"skitter crawl --into {shlex.quote(str(folder.path))}"


async def carry_out(folder: CrawlFolder, settings: Settings, order: Order[Answer]) -> Done[Answer]:
    """When another process was told, standard error says so. Raises what the order cannot have."""
    holder = ""
    for _ in range(_TRIES):
        try:
            return Done(await _here(folder, settings, order), "")
        except FolderInUse as error:
            holder = error.holder
        answer = await asyncio.to_thread(_there, folder, order)
        if answer is not None:
            print(f"told the crawl that is running (pid {holder})", file=sys.stderr)
            return Done(answer, holder)
        await asyncio.sleep(_BETWEEN)
    raise FolderInUse(
        f"process {holder} works in {folder.path} and does not answer: it is starting, ending or waits for "
        "room on the disk; try again later, or stop it first",
        holder,
    )


async def _here(folder: CrawlFolder, settings: Settings, order: Order[Answer]) -> Answer:
    with folder.locked():
        if order.act is None:
            raise UsageError(
                f"nobody crawls {folder.path} now: start with skitter crawl --into {folder.path}"
            )
    from skitter.wiring import open_frontier  # 0.2 s that whoever talks to a running crawl need not wait for

    async with open_frontier(folder, settings, read_only=False) as frontier:
        _check(order)
        keys = Keys(settings.keys)
        try:
            return await order.act(
                Steered(frontier=frontier, settings=settings, keys=keys, folder=folder.path)
            )
        except Problem as problem:
            raise _told(problem.answer()) from None


def _check(order: Order[Answer]) -> None:
    """By the rules that hold for what is sent."""
    if order.body is not None:
        try:
            msgspec.json.decode(msgspec.json.encode(order.body), type=type(order.body))
        except msgspec.ValidationError as error:
            raise UsageError(str(error)) from error


# -- by the process that runs


class _Connection(http.client.HTTPConnection):
    def __init__(self, name: str) -> None:
        super().__init__("localhost", timeout=_PATIENCE)
        self._name = name

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_PATIENCE)
        self.sock.connect(self._name)


def _there(folder: CrawlFolder, order: Order[Answer]) -> Answer | None:
    """None when nobody answers."""
    body = msgspec.json.encode(order.body) if order.body is not None else None
    try:
        with socket_name(folder.control_socket) as name:
            connection = _Connection(name)
            try:
                connection.request(order.method, order.path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                status, content = response.status, response.read()
            finally:
                connection.close()
    except PermissionError as error:
        raise SkitterError(
            f"{folder.control_socket} may not be opened ({error.strerror}): be the user who crawls"
        ) from error
    except (OSError, http.client.HTTPException):
        return None
    if status >= 400:
        raise _told(msgspec.json.decode(content, type=ProblemAnswer))
    return msgspec.json.decode(content, type=order.answer)


def _told(problem: ProblemAnswer) -> SkitterError:
    if problem.status in (Trouble.UNAVAILABLE.status, Trouble.FAULT.status):
        return SkitterError(f"{problem.title}: {problem.detail}")
    return UsageError(problem.detail)
