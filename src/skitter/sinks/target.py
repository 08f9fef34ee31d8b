"""The contract of a target: what a sink sends to, and how much of it is there already.

A target keeps the names of the parts that it holds, together with their rows: `deliver` adds both or neither, so
a sink that was killed goes on with what `delivered` does not name. Where that cannot be (HTTP) it says so, and
rows have ids. A target's fault is `TargetFailed` (it may pass) or `TargetRefused` (it will not).
"""

from __future__ import annotations

import re
from typing import Any, Protocol

import msgspec

from skitter.sinks.reading import Delivery

# Columns of text that hold JSON.
JSON_COLUMNS = frozenset({("items", "item")})
_SECRET = re.compile(r"(?i)(password|passwd|pwd|token|secret|key|signature)=[^&\s'\"]+")
_USERINFO = re.compile(r"(://)([^/@\s]*)@")
_encode = msgspec.json.Encoder().encode


class Target(Protocol):
    """Opened by its constructor, which raises when it cannot be reached. From one thread."""

    def delivered(self) -> set[str]: ...

    def deliver(self, delivery: Delivery) -> None:
        """All rows of a part and its name, or nothing. A part that is there already is left as it is."""

    def close(self) -> None: ...


def without_secrets(text: str) -> str:
    """For whatever is printed: no password, no token, no user."""
    return _SECRET.sub(r"\1=***", _USERINFO.sub(r"\1***@", text))


def json_rows(delivery: Delivery) -> list[bytes]:
    """One object a row; what is JSON already stays so, and times are in UTC."""
    rows: list[dict[str, Any]] = delivery.rows.to_pylist()
    for column in delivery.rows.column_names:
        if (delivery.table, column) in JSON_COLUMNS:
            for row in rows:
                row[column] = msgspec.Raw(row[column].encode()) if row[column] else None
    return [_encode(row) for row in rows]


def json_lines(delivery: Delivery) -> bytes:
    return b"".join(line + b"\n" for line in json_rows(delivery))
