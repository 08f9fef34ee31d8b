"""Calls of a partition that another node has: questions, and what operators decide, as bytes over the wire.

A call is named after the method of the contract, and its types are those of that method: nothing is written down
twice. The closed list says what may be asked; leases and outcomes are not among it, they go to the node itself.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import msgspec

from skitter.errors import UsageError
from skitter.frontier.cluster.base import Part

CALLS = frozenset(
    """admit horizon parts_with_posts upcoming seeds stats freshness estimate explain url_of host robots_of hosts
    explain_host ledger_of leases outlook urls anchors dead_letters requeue refresh retry set_policy signal
    allow_private traps undo_trap take_posts""".split()
)

Ask = Callable[[int, str, bytes], Awaitable[bytes]]
"""Sends a call (partition, name, arguments) to whoever has the partition, and returns the answer."""


class PartCall(msgspec.Struct, frozen=True, array_like=True):
    part: int
    name: str
    arguments: bytes


class _Form:
    """How the arguments and the answer of one call are written."""

    def __init__(self, name: str) -> None:
        method = getattr(Part, name)
        hints = typing.get_type_hints(method)
        answer = hints.pop("return")
        self.names = [each for each in inspect.signature(method).parameters if each != "self"]
        kinds = inspect.signature(method).parameters
        self.is_keyword = {each: kinds[each].kind is inspect.Parameter.KEYWORD_ONLY for each in self.names}
        arguments = msgspec.defstruct(name, [(each, hints[each]) for each in self.names], array_like=True)
        self.decode_arguments = msgspec.msgpack.Decoder(arguments).decode
        self.decode_answer = msgspec.msgpack.Decoder(answer).decode
        self.signature = inspect.signature(method)


@cache
def _form_of(name: str) -> _Form:
    if name not in CALLS:
        raise UsageError(f"{name!r} is not asked of a partition")
    return _Form(name)


async def answer_call(part: Part, call: PartCall) -> bytes:
    """On the node that has the partition."""
    form = _form_of(call.name)
    told = form.decode_arguments(call.arguments)
    plain = [getattr(told, name) for name in form.names if not form.is_keyword[name]]
    named = {name: getattr(told, name) for name in form.names if form.is_keyword[name]}
    return msgspec.msgpack.encode(await getattr(part, call.name)(*plain, **named))


class RemotePart:
    """A `Part` that another node has, as far as `CALLS` go."""

    def __init__(self, number: int, ask: Ask) -> None:
        self._number = number
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        form = _form_of(name)

        async def call(self: RemotePart, *plain: Any, **named: Any) -> Any:
            bound = form.signature.bind(self, *plain, **named)
            bound.apply_defaults()
            values = [bound.arguments[each] for each in form.names]
            return form.decode_answer(await self._ask(self._number, name, msgspec.msgpack.encode(values)))

        return types.MethodType(call, self)

    def attend(self, witness: object) -> None:
        """Its own node tells its own witnesses."""

    def change_settings(self, settings: object) -> None:
        """Settings reach every node through the database."""
