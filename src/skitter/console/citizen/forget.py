"""`skitter forget`: a host or a URL removed from a crawl, with a receipt for the letter that asked for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from skitter.console.display.wording import counted, plain, size
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.runtime.forgetting.forget import RECEIPTS, Receipt
from skitter.runtime.forgetting.forget import forget as forget_it
from skitter.settings import Settings


async def forget(
    folder: CrawlFolder, settings: Settings, what: str, *, receipt_file: Path | None, as_json: bool
) -> str:
    if receipt_file is not None and receipt_file.exists():
        raise UsageError(f"{receipt_file} exists: name a new file for the receipt")
    receipt = await forget_it(folder, settings, what, _tell)
    told = msgspec.json.format(msgspec.json.encode(receipt), indent=2).decode()
    if receipt_file is not None:
        receipt_file.write_text(told + "\n")
    return told if as_json else "\n".join(_lines(receipt))


def _tell(step: str) -> None:
    print(f"forgetting: {step}", file=sys.stderr)


def _lines(receipt: Receipt) -> Iterator[str]:
    when = datetime.fromtimestamp(receipt.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"{plain(receipt.forgotten)} is forgotten since {when}, and is refused from now on"
    yield f"  archive: {counted(receipt.captures, 'capture')} removed, {size(receipt.bytes)}"
    kept = f"{counted(receipt.captures_of_others_kept, 'capture')} of others carried over"
    yield f"  {counted(receipt.segments_rewritten, 'segment')} written anew, {kept}"
    if receipt.bodies_given_to_others:
        yield f"  {receipt.bodies_given_to_others:,} of them had their body with it, and got it themselves"
    if receipt.extracted_parts_removed:
        parts = counted(receipt.extracted_parts_removed, "part")
        yield f"  {parts} of items removed: skitter extract makes them again"
    others = f"{receipt.rows_of_others_changed:,} other rows changed"
    yield f"  frontier: {counted(receipt.urls, 'URL')} removed, {others}"
    yield f"  log: {counted(receipt.log_lines, 'line')} removed"
    if receipt.settings_lines:
        lines = counted(receipt.settings_lines, "line")
        yield f"  crawl.toml still names it in {lines}: they are yours to change"
    yield f"  the receipt without the name is in {RECEIPTS}: {receipt.digest}"
