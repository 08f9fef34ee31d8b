"""`skitter export`: a crawl, or the part of it that a condition lets through, in a form that others read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from skitter.clock import SystemClock
from skitter.collection.collection import Collection
from skitter.collection.export import contents, datasets, tables, wacz
from skitter.collection.export.target import whole
from skitter.console.display.output import write
from skitter.console.display.progress import progress
from skitter.console.display.wording import counted
from skitter.errors import UsageError

Write = Callable[[Collection, Path, str, Callable[[int], None]], int]


class Form(NamedTuple):
    write: Write
    is_folder: bool
    condition: str = ""
    """Holds besides what the user asks for."""
    noun: str = "page"


def _form(to: str, items: str | None, signing: wacz.Signing) -> Form:
    if signing.wanted and to != "wacz":
        raise UsageError(f"only a WACZ package is signed, not {to}")
    if items is not None:
        if to not in tables.ITEM_FORMS:
            raise UsageError(f"items are exported to {', '.join(tables.ITEM_FORMS)}, not to {to}")
        return Form(partial(tables.write_items, kind=items, form=to), False, noun="item")
    if to == "csv":
        raise UsageError("csv is for items: add --items TYPE, or use skitter query --format csv")
    return _forms(SystemClock().now(), signing)[to]


def _forms(now: float, signing: wacz.Signing) -> dict[str, Form]:
    return {
        "wacz": Form(partial(wacz.write_wacz, now=now, signing=signing), False),
        "warc": Form(partial(wacz.write_warc, now=now), True, noun="record"),
        "parquet": Form(tables.write_parquet, True, noun="row"),
        "jsonl": Form(contents.write_jsonl, False, contents.READABLE),
        "markdown": Form(contents.write_markdown, True, contents.READABLE),
        "files": Form(contents.write_files, True, contents.READABLE),
        "shards": Form(datasets.write_shards, True, contents.READABLE),
        "duckdb": Form(datasets.write_duckdb, False, noun="row"),
        "cdxj": Form(tables.write_cdxj, False, noun="line"),
    }


def run_export(
    folder: Path | str,
    to: str,
    path: Path,
    where: str,
    *,
    items: str | None = None,
    signing: wacz.Signing = wacz.UNSIGNED,
    force: bool,
    as_json: bool,
) -> None:
    form = _form(to, items, signing)
    condition = " and ".join(f"(\n{part}\n)" for part in (where, form.condition) if part.strip())
    with Collection.at(folder) as collection:
        total = collection.count(condition)
        with whole(path, force=force, folder=form.is_folder) as target, progress("exporting", total) as done:
            written = form.write(collection, target, condition, done)
    if as_json:
        write(msgspec.json.encode({"to": to, "path": str(path), "written": written}).decode() + "\n")
    else:
        write(f"{counted(written, form.noun)} in {path}\n")
