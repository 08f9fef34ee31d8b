"""Writes the pages of `docs/` that repeat what the code says: `python -m skitter.reference`.

A test compares them with the code, so a setting, metric or event without its line cannot be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, get_args, get_origin

from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from skitter.archive.schema import ITEMS, TABLES, Column, Kind, Table
from skitter.python_reference import python_page
from skitter.schedule.retry import RULES
from skitter.settings.host_identity import IDENTITY_FIELDS, LoginRecipe
from skitter.settings.load import HOST_FIELDS, SECTIONS, TYPES, wanted
from skitter.settings.plugins import ExtractRule, FieldRule
from skitter.settings.rules import SeedRule
from skitter.settings.toml_text import toml_value
from skitter.telemetry import EVENTS, LEVELS, METRICS, Described, Level

FOLDER = Path(__file__).resolve().parents[2] / "docs"
_GENERATED = "<!-- Written by `python -m skitter.reference`; change the code, not this page. -->\n"

_SETTINGS_INTRO = """\
# Settings

Every setting has a default. The layers below are applied in this order, and the later one wins:

1. the defaults on this page;
2. `crawl.toml` in the crawl's own folder;
3. the file named with `--config FILE`;
4. environment variables `SKITTER_<SECTION>_<KEY>`, such as `SKITTER_POLITENESS_DELAY=0.5`; lists are comma
   separated, so a regular expression that holds a comma belongs in a file;
5. flags on the command line.

A key that is not a setting, or a value that a setting cannot take, stops the start with one line that names
the place. `skitter settings` prints the values in force and where each came from. Obeying robots.txt is not
a setting.
"""

_FAILURES_INTRO = """\
# Failures

Every way a fetch can fail, and what follows.

**The URL** waits by its own failures in a row: `retry.backoff`, or the waits the table names instead (the first
entry after the first failure, the last one repeated), or what Retry-After asked for if that is longer. It is
tried again until its attempts are used up.

**The host**, where it backs off, is left alone as a whole: for the same waits by its own failures in a row, for
`retry.quarantine` from `retry.quarantine_after` of them on, and when it fails again after `retry.quarantines`
quarantines it is *given up*: whatever is queued for it, now or later, becomes a dead letter with the host's
reason. `skitter dead DIR --requeue --host HOST` brings all of it back and tries the host anew. A good answer
starts the count anew. 429 and 503 also halve its rate at once; good answers bring it back slowly.

A robots.txt that cannot be read holds back every URL of its host, so there every kind counts against the host,
whether it backs off for a page or not. A robots.txt that redirects to a host that is given up, blocked or not
to be dialled counts as unreachable. But where the host itself is at an address that must not be dialled, its URLs
are refused as if each had been asked for.

The columns of quarantines are the host's. They cap the settings; the number of quarantines replaces it. Kinds
with less patience than the settings count only their own failures in a row.
"""

_HOSTS_INTRO = """\
## hosts

What holds for one host only, one table for each; what is absent is left to the sections above.

```toml
[hosts."https://example.org"]
delay = 0.2
parallel = 2
```
"""

_IDENTITY_INTRO = """\
Who the crawl is to one host, in the same tables: [identities.md](identities.md). A secret is `{ env = "NAME" }`
or `{ file = "PATH" }`.
"""

_LOGIN_INTRO = """\
The keys of `login`:
"""

_EXTRACT_INTRO = """\
## extract

Extractors without code, one table for each: [plugins.md](plugins.md#without-code).

```toml
[extract.offer]
match = "shop.example/products/*"
fields.name = "h1"
```
"""

_SEEDS_INTRO = """\
## seeds

Seeds with rules of their own, one table for each: [rules.md](rules.md).

```toml
[seeds."https://example.org/docs/"]
scope = "prefix"
depth = 3
```
"""

_FIELDS_INTRO = """\
A field is a CSS selector, or a table of these:
"""

_TABLES_INTRO = """\
# Tables

The columns of the Parquet tables in `archive/`, and of the views of `skitter query`. Those of `pages` have the
names of Common Crawl's index where they mean the same. A short name is one more in the views. A text that nobody
said is null. Every table has `url` and `fetch_time`, which say of which answer a row is. Other tables that an
archive holds have the columns of their files.
"""

_METRICS_INTRO = """\
# Metrics and log events

`GET /metrics` of `skitter serve` tells these; docs/monitoring.md says what to do with them. A metric with a label
has one series for each value of the label, and the values are a closed set: none is ever a host or a URL.

Counters only grow. Those *of the crawl* are the frontier's own, exact, and go on where they were after a restart;
the others begin at 0 with the process.
"""

_EVENTS_INTRO = """\
## Log events

The log is one JSON object a line: `time` (RFC 3339, UTC), `level` (info, warning or error), `event`, and the
fields that the event is about, `url` and `host` among them where there is one. A file is closed at 10 MB and the
last two closed ones are kept. Lines that could not be written are counted in `skitter_log_lines_dropped_total`.
"""


def settings_page() -> str:
    parts = [_GENERATED, _SETTINGS_INTRO]
    for name, section in TYPES.items():
        parts.append(f"## {name}\n\n{section.__doc__ or ''}\n")
        parts.append(_settings_table(SECTIONS[name].values()))
    parts += [_HOSTS_INTRO, _settings_table(HOST_FIELDS.values())]
    parts += [_IDENTITY_INTRO, _settings_table(IDENTITY_FIELDS.values())]
    parts += [_LOGIN_INTRO, _extract_table(LoginRecipe), _EXTRACT_INTRO]
    parts += [_extract_table(ExtractRule), _FIELDS_INTRO, _extract_table(FieldRule)]
    parts += [_SEEDS_INTRO, _extract_table(SeedRule)]
    return "\n".join(parts)


def _extract_table(of: type[Struct]) -> str:
    rows = ((f"`{field.encode_name}`", description(field)) for field in fields(of))
    return _table(("key", "meaning"), rows)


def _settings_table(fields: Iterable[FieldInfo]) -> str:
    rows = (
        (f"`{field.encode_name}`", _default(field), wanted(field), description(field)) for field in fields
    )
    return _table(("key", "default", "takes", "meaning"), rows)


def _default(field: FieldInfo) -> str:
    return "none" if field.default is None else f"`{toml_value(field.default)}`"


def description(field: FieldInfo) -> str:
    """The sentence that stands beside the setting; empty when somebody forgot it."""
    if get_origin(field.type) is not Annotated:
        return ""
    found = [meta.description for meta in get_args(field.type)[1:] if isinstance(meta, Meta)]
    return next((text for text in found if text), "")


def metrics_page() -> str:
    rows = (
        (f"`{metric.value}`", _kind(about), about.unit, about.help + _labels(about.label, about.labels))
        for metric, about in METRICS.items()
    )
    events = (
        (f"`{event.value}`", LEVELS.get(event, Level.INFO).value, meaning)
        for event, meaning in EVENTS.items()
    )
    return "\n".join(
        [
            _GENERATED,
            _METRICS_INTRO,
            _table(("metric", "kind", "unit", "meaning"), rows),
            _EVENTS_INTRO,
            _table(("event", "level", "meaning"), events),
        ]
    )


def _kind(about: Described) -> str:
    return f"{about.kind.value} of the crawl" if about.of_crawl else about.kind.value


def _labels(label: str, values: tuple[str, ...]) -> str:
    return f" Label `{label}`: {', '.join(map(str, values))}." if label else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def failures_page() -> str:
    rows = (
        (
            f"`{kind.value}`",
            rule.why,
            str(rule.attempts or "`attempts`"),
            rule.ends_as.name.lower().replace("_", " "),
            "yes" if rule.blames_host else "no",
            ", ".join(map(_span, rule.waits)) or "`backoff`",
            str(rule.quarantine_after or "`quarantine_after`"),
            f"`quarantine`, at most {_span(rule.quarantine)}" if rule.quarantine else "`quarantine`",
            str(rule.quarantines or "`quarantines`"),
        )
        for kind, rule in RULES.items()
    )
    head = ("kind", "what happened", "attempts", "ends as", "host backs off", "waits", "quarantine after")
    more = ("quarantine", "quarantines until given up")
    return "\n".join([_GENERATED, _FAILURES_INTRO, _table((*head, *more), rows)])


def _span(seconds: float) -> str:
    unit, name = next(pair for pair in ((86_400, "d"), (3600, "h"), (60, "min")) if seconds >= pair[0])
    return f"{seconds / unit:g} {name}"


def tables_page() -> str:
    return "\n".join([_GENERATED, _TABLES_INTRO, *map(_columns_of, (*TABLES, ITEMS))])


def _columns_of(table: Table) -> str:
    columns = [
        (f"`{column.name}`", _type(column), f"`{column.short}`" if column.short else "", column.doc)
        for column in table.columns
    ]
    also = [(f"`{name}`", "", "", f"`{expression}`") for name, expression in table.also]
    shown = _table(("column", "type", "short name", "meaning"), [*columns, *also])
    return f"## {table.name}\n\nA row is {table.doc}.\n\n{shown}"


def _type(column: Column) -> str:
    if column.fields:
        return f"list of ({', '.join(column.fields)})"
    return "text" if column.kind in (Kind.TEXT, Kind.EXACT, Kind.LONG) else str(column.kind)


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "failures.md": failures_page,
    "tables.md": tables_page,
    "python.md": python_page,
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
