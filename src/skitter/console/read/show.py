"""`skitter show`: one archived page: its body, its text, its headers, or all that is known of it as JSON."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from skitter.collection.captures import Capture
from skitter.collection.collection import Collection
from skitter.collection.record import Record, response_of
from skitter.console.display.output import write, write_body
from skitter.errors import UsageError

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


def save_page(folder: Path | str, url: str, at: str | None, path: Path) -> None:
    """One page as a WARC file of its own: what `skitter.testing.run` reads. A revisit is saved with the body
    that it stands for."""
    if not path.name.endswith(".warc.gz"):
        raise UsageError(f"{path} is to be a WARC file: call it {path.name}.warc.gz")
    with Collection.at(folder) as collection:
        record = collection.record(collection.capture(url, at).at)
        whole = collection.whole(record)
        block = record.head + whole.body if record is not whole else record.block
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(response_of(record, block)))
    write(f"saved {record.url} of {record.date} in {path}\n")


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
