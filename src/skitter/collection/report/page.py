"""The report as one HTML file: no script, nothing loaded from elsewhere, readable in any browser and in print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from skitter import __version__
from skitter.collection.report.figures import ArchiveFigures, Listing

NOTHING = Listing(0, [])


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is below `archive` is the frontier's to say, and is empty where there is none."""

    archive: ArchiveFigures
    has_frontier: bool = False
    wants_requisites: bool = False
    states: dict[str, int] = {}
    failures: dict[str, int] = {}
    refusals: dict[str, int] = {}
    failing_hosts: Listing = NOTHING
    dead: Listing = NOTHING
    traps: Listing = NOTHING


_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8885; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td { overflow-wrap: anywhere; }
.none { color: #777; }
@media print { body { margin: 0; max-width: none; } }
"""


def as_html(report: Report) -> str:
    archive = report.archive
    title = archive.about.title or archive.name
    return "".join(
        (
            "<!doctype html><html lang=en><meta charset=utf-8>",
            "<meta name=viewport content='width=device-width'>",
            f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>",
            *_about(archive),
            _section("Sizes by type", ("type", "answers", "bytes"), archive.types),
            _listed(
                "Missing: what pages need", ("URL", "pages", "answer (0: not asked for)"), archive.missing
            ),
            _listed("Errors by host", ("host", "status", "answers"), archive.errors),
            _listed("Cut off at a limit", ("URL", "bytes", "why"), archive.truncated),
            _listed("Changes since an earlier visit", ("change", "URL", "seen (UTC)"), archive.changes),
            *(_of_frontier(report) if report.has_frontier else ()),
            f"<p class=none>Made by skitter {__version__}.</p>",
        )
    )


def _about(archive: ArchiveFigures) -> Iterable[str]:
    told = archive.about
    if told.description:
        yield f"<p>{escape(told.description)}</p>"
    facts = (
        ("publisher", told.publisher),
        ("part of", told.is_part_of),
        ("first answer (UTC)", archive.first),
        ("last answer (UTC)", archive.last),
        ("pages", archive.pages),
        ("hosts", archive.hosts),
        ("answers", archive.answers),
        ("bytes of bodies", archive.bytes),
        ("pages that cannot be read", archive.unreadable),
    )
    yield _table((), [(name, value) for name, value in facts if value != ""])


def _of_frontier(report: Report) -> Iterable[str]:
    for title, counts in (
        ("URLs by state", report.states),
        ("Failures by kind", report.failures),
        ("Refused, by reason", report.refusals),
    ):
        yield _section(title, ("", "number"), [(name, number) for name, number in counts.items() if number])
    yield _listed(
        "Hosts that failed or forbade", ("host", "standing", "failed", "denied"), report.failing_hosts
    )
    yield _listed("Given up after all attempts", ("URL", "kind", "detail"), report.dead)
    yield _listed("Stopped as traps", ("host", "pages", "refused", "why"), report.traps)


def _listed(title: str, heads: Sequence[str], listing: Listing) -> str:
    more = listing.total - len(listing.rows)
    rest = f"<p class=none>and {more:,} more</p>" if more > 0 else ""
    return _section(f"{title} ({listing.total:,})", heads, listing.rows) + rest


def _section(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    content = _table(heads, rows) if rows else "<p class=none>none</p>"
    return f"<h2>{escape(title)}</h2>{content}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if heads else ''}{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"<td class=n>{value:,}</td>"
    return f"<td>{escape(str(value or ''))}</td>"
