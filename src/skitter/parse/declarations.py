"""Files in which a site says what may be done with its content: tdmrep.json, ai.txt, llms.txt. Pure.

Of `/.well-known/tdmrep.json` (TDM Reservation Protocol) the rules are read, for the worker that meets the pages
they speak of; the two others have no agreed meaning and are kept as they are. Never raises on what a site wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

TDMREP = "/.well-known/tdmrep.json"
PLACES = {"tdmrep.json": TDMREP, "ai.txt": "/ai.txt", "llms.txt": "/llms.txt"}
_MOST_RULES = 100
_LONGEST = 1_500
_LONGEST_VALUE = 300


class TdmRule(msgspec.Struct, frozen=True, array_like=True):
    """For paths that match `location`, a pattern as in robots.txt: whether text and data mining is reserved (1 or
    0), and where the terms are."""

    location: str
    reserved: str
    policy: str = ""


_decode = msgspec.json.Decoder(tuple[TdmRule, ...]).decode


def read_tdmrep(body: bytes) -> str:
    """The rules of a tdmrep.json, as one text that travels with a host; empty where there are none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    rules = list(_rules(found))[:_MOST_RULES] if isinstance(found, list) else []
    while rules and len(text := msgspec.json.encode(rules).decode()) > _LONGEST:
        rules.pop()
    return text if rules else ""


def _rules(found: list[object]) -> Iterator[TdmRule]:
    for each in found:
        if not isinstance(each, dict):
            continue
        location, reserved, policy = (
            each.get(name) for name in ("location", "tdm-reservation", "tdm-policy")
        )
        if isinstance(location, str) and location and str(reserved) in ("0", "1"):
            policy = policy if isinstance(policy, str) else ""
            yield TdmRule(location[:_LONGEST_VALUE], str(reserved), policy[:_LONGEST_VALUE])


def tdm_rules(text: str) -> tuple[TdmRule, ...]:
    """What `read_tdmrep` wrote."""
    try:
        return _decode(text) if text else ()
    except msgspec.MsgspecError:
        return ()
