"""`skitter show`: one archived page: its body, its text, its headers, or all that is known of it as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from skitter.collection.captures import Capture
from skitter.collection.collection import Collection
from skitter.collection.record import Record
from skitter.console.output import write, write_body

PARTS = ("body", "headers", "text")


def run_show(folder: Path | str, url: str, part: str, at: str | None, *, as_json: bool) -> None:
    with Collection.at(folder) as collection:
        capture = collection.capture(url, at)
        record = collection.record(capture.at)
        if as_json:
            write(msgspec.json.encode(_facts(collection, capture, record)).decode() + "\n")
        elif part == "headers":
            write_body(record.head.rstrip(b"\r\n") + b"\n")
        elif part == "text":
            write_body(collection.read(record).text.encode("utf-8", "replace") + b"\n")
        else:
            write_body(collection.whole(record).decoded())


def _facts(collection: Collection, capture: Capture, record: Record) -> dict[str, object]:
    content = collection.read(record)
    return {
        "url": record.url,
        "fetched_at": _time(record.date),
        "status": record.status,
        "mime": content.media_type,
        "digest": capture.digest,
        "record": capture.at,
        "revisit_of": record.fields.get("warc-refers-to-target-uri") if record.kind == "revisit" else None,
        "captures": [each.stamp for each in collection.captures(record.url)],
        "headers": record.headers(),
        "title": content.title,
        "language": content.language,
        "text": content.text,
    }


def _time(date: str) -> str:
    try:
        return datetime.fromisoformat(date).astimezone(UTC).isoformat()
    except ValueError:
        return date
