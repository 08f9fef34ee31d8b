"""Malformed responses, collected by WPT: each ends in a recorded outcome, none in a crash or a hang."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import uvloop

from skitter.model import Exchange, Failed, FailureKind
from skitter.settings import FetchSettings
from tests.corpora import corpus
from tests.fetching import fetching
from tests.raw_server import sends, serving

LIMITS = FetchSettings(connect_timeout=2.0, first_byte_timeout=2.0, stall_timeout=2.0, total_timeout=4.0)


def responses() -> dict[str, bytes]:
    folder = corpus("http1-parsing")
    cases: list[dict[str, Any]] = json.loads((folder / "cases.json").read_text())
    found = {case["file"]: base64.b64decode(case["response_b64"]) for case in cases}
    for number, case in enumerate(json.loads((folder / "content-lengths.json").read_text())):
        found[f"length {number}"] = f"HTTP/1.1 200 OK\r\n{case['input']}\r\n\r\n".encode() + b"x" * 30
    for number, case in enumerate(json.loads((folder / "status_lines.json").read_text())):
        found[f"status {number}"] = f"HTTP/1.1 {case['input']}\r\nContent-Length: 0\r\n\r\n".encode()
    return found


def outcome_of(response: bytes) -> Exchange | Failed:
    async def main() -> Exchange | Failed:
        async with fetching(LIMITS) as fetcher:
            return await asyncio.wait_for(fetcher.fetch(server.url + "/"), 5)

    with serving(sends(response)) as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def is_an_outcome(found: Exchange | Failed) -> bool:
    if isinstance(found, Failed):
        return found.kind in (FailureKind.PROTOCOL, FailureKind.CONNECTION_LOST)
    ends = found.head.endswith((b"\r\n\r\n", b"\n\n", b"\n\r\n"))
    return found.head.startswith(b"HTTP/") and ends and 100 <= found.status <= 999


def test_every_malformed_response_ends_in_an_outcome() -> None:
    found = {name: outcome_of(response) for name, response in responses().items()}
    assert len([name for name in found if name.startswith("asis/")]) == 102
    assert {name: outcome for name, outcome in found.items() if not is_an_outcome(outcome)} == {}


def test_what_browsers_refuse_because_of_a_null_byte_is_refused() -> None:
    nulls = {name: raw for name, raw in responses().items() if "_NUL_" in name and b"\x00" in raw}
    assert nulls
    head_nulls = {name: raw for name, raw in nulls.items() if b"\x00" in raw.partition(b"\r\n\r\n")[0]}
    assert {name for name, raw in head_nulls.items() if isinstance(outcome_of(raw), Exchange)} == set()
