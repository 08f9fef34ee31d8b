"""The live display: a few lines at the bottom of a terminal, redrawn in place.

Imported only when there is a terminal, because `rich` is most of a small command's start-up time. Texts
become `rich.text.Text` of their own, so nothing from the web is ever read as markup.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import NamedTuple, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from skitter.console.display.summary import Summary, render_summary
from skitter.console.display.wording import LONGEST_NOTE, TimeLeft, phase_words, plain, rate, size, span
from skitter.telemetry import Phase, Snapshot

LABEL = 11
FIGURE = 8
CELL = 23
THREE_COLUMNS = 78
WIDEST = 120
MOST_ERRORS = 8
SENTENCE_LINES, LAST_LINES, ERROR_LINES, SLOWEST_LINES = 2, 3, 2, 2
BECAME = 4
HINTS = {
    Phase.CRAWLING: "Ctrl-C: finish the requests in flight, then stop. Nothing is lost.",
    Phase.WAITING: "Ctrl-C: stop now and resume later. Nothing is lost.",
    Phase.PAUSED: "Ctrl-C: stop now and resume later. Nothing is lost.",
    Phase.DRAINING: "Ctrl-C again: stop at once.",
}


class Part(NamedTuple):
    """A figure and what it counts, in columns mostly, so that growing figures do not make the line dance."""

    figure: str
    words: str
    style: str = "bold"
    in_columns: bool = True


class Row(NamedTuple):
    """`lines` is how many lines it takes, whatever it has to say; 0 for as many as it needs."""

    label: str
    parts: list[Part]
    lines: int = 0


class Terminal(Console):
    def on_broken_pipe(self) -> None:
        self.quiet = True  # rich itself would end the process here, and with it the crawl


class LiveDisplay:
    """Redraws at most `A_SECOND` times a second, however often it is fed."""

    A_SECOND = 4

    def __init__(self, stream: TextIO, terminal: Terminal | None = None) -> None:
        self._console = terminal or Terminal(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            vertical_overflow="crop",
            # Stray prints go above the display, but what was sent to a file or pipe stays there.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )
        self._left = TimeLeft()
        self._drawn_at = float("-inf")
        self._drawn_phase: Phase | None = None
        self._is_silent = False

    def update(self, snapshot: Snapshot) -> None:
        self._left.seen(snapshot)
        is_early = snapshot.at - self._drawn_at < 1 / self.A_SECOND - 0.001
        if self._is_silent or (is_early and snapshot.phase is self._drawn_phase):
            return
        self._drawn_at, self._drawn_phase = snapshot.at, snapshot.phase
        width, height = self._console.size
        lines = render(snapshot, self._left, width, height, self._console.options.ascii_only)
        try:
            if not self._live.is_started:
                self._live.start()
            self._live.update(Group(*lines), refresh=True)
        except (OSError, ValueError):
            self._is_silent = True

    def note(self, text: str) -> None:
        self._print(plain(text, LONGEST_NOTE))

    def close(self, summary: Summary | None) -> None:
        try:
            self._live.stop()
        except (OSError, ValueError):
            self._is_silent = True
        if summary is not None:
            self._print("\n" + render_summary(summary))

    def _print(self, text: str) -> None:
        if self._is_silent:
            return
        try:
            self._console.print(Text(text), soft_wrap=True)
        except (OSError, ValueError):
            self._is_silent = True


def render(now: Snapshot, left: TimeLeft, width: int, height: int, ascii_only: bool = False) -> list[Text]:
    """The lines of the display: never wider than the terminal, and one lower, so that it does not scroll. A row
    stays where it is as long as the terminal keeps its size."""
    width = min(width, WIDEST)
    top = [_header(now, width), *_sentence(now, width)]
    if now.max_pages:
        top.append(_bar(now.pages_in_all / now.max_pages, width, ascii_only))
    body = [line for row in _rows(now, left, width) for line in _laid_out(row, width)]
    hint = Text(_hint(now), style="dim")
    lines = [*top, Text(), *body, Text(), hint]
    if len(lines) > height - 1:
        top = [line for line in top if line.plain]
        lines = [*top, *body[: max(0, height - 2 - len(top))], hint][: max(1, height - 1)]
    for line in lines:
        line.truncate(max(1, width - 1), overflow="crop" if ascii_only else "ellipsis")
    return lines


def _hint(now: Snapshot) -> str:
    if now.phase is Phase.PAUSED:
        # without a headline nothing is open: it is the disk that has no room
        how = "skitter resume: go on." if now.headline else "Make room on the disk and it goes on."
        return f"{how} {HINTS[now.phase]}"
    return HINTS.get(now.phase, "")


def _header(now: Snapshot, width: int) -> Text:
    name, doing, elapsed = "skitter", phase_words(now), span(now.elapsed)
    gap = max(2, width - 1 - len(name) - 2 - len(doing) - len(elapsed))
    style = "green" if now.phase is Phase.CRAWLING else "yellow"
    return Text.assemble((name, "bold"), "  ", (doing, style), " " * gap, elapsed)


def _sentence(now: Snapshot, width: int) -> list[Text]:
    """How the crawl does and what sets its pace: two lines, however short it is, so that what is below stays."""
    words = textwrap.wrap(plain(now.headline, 400), max(20, width - 1)) or [""]
    return [Text(line) for line in (*words, "")[:SENTENCE_LINES]]


def _bar(share: float, width: int, ascii_only: bool) -> Text:
    percent = f" {min(100, int(share * 100)):3d} %"
    room = max(4, width - 1 - len(percent))
    full = min(room, int(share * room))
    done, todo = ("#", ".") if ascii_only else ("━", "─")
    return Text.assemble((done * full, "green"), (todo * (room - full), "dim"), percent)


def _rows(now: Snapshot, left: TimeLeft, width: int) -> Iterator[Row]:
    """In the order of what matters: a low terminal loses the last ones."""
    so_far, of = (now.pages_in_all, f"of {now.max_pages:,}") if now.max_pages else (now.pages, "fetched")
    yield Row(
        "pages",
        [Part(f"{so_far:,}", of), Part(rate(now.rate_now), "now"), Part(rate(now.rate_mean), "mean")],
    )
    is_ending = now.phase in (Phase.DRAINING, Phase.DONE)
    yield Row("time left", [Part("", "until it has stopped" if is_ending else left.words(now))])
    yield Row(
        "received",
        [
            Part(size(now.bytes), ""),
            Part(f"{now.requests:,}", "requests"),
            Part(f"{now.in_flight:,}", "in flight"),
        ],
    )
    backing_off = Part(
        f"{now.hosts_backing_off:,}", "backing off", "yellow" if now.hosts_backing_off else "bold"
    )
    yield Row(
        "hosts",
        [Part(f"{now.hosts_active:,}", "active"), Part(f"{now.hosts_waiting:,}", "waiting"), backing_off],
    )
    yield Row("queue", [Part(f"{now.queued:,}", "queued"), Part(f"{now.waiting_retry:,}", "to retry")])
    room = max(8, width - LABEL - 2)
    yield from _last(now, room)
    yield Row("left out", list(_left_out(now)) or [Part("", "nothing")], 1)
    yield Row("errors", _errors(now.errors) or [Part("", "none")], ERROR_LINES)
    yield Row("answers", _answers(now.statuses) or [Part("", "none yet")], 1)
    slowest = [Part(_response_time(ms), plain(host, room - FIGURE - 1)) for host, ms in now.slowest]
    yield Row("slowest", slowest, SLOWEST_LINES)


def _last(now: Snapshot, room: int) -> Iterator[Row]:
    """Always as many lines: the latest requests, and the latest error."""
    shown = [f"{plain(became, 18):<{BECAME}} {plain(url, 2000)}" for became, url in now.last[:LAST_LINES]]
    for number in range(LAST_LINES):
        words = shown[number] if number < len(shown) else ""
        yield Row("" if number else "last", [Part("", plain(words, room))], 1)
    yield Row("last error", [Part("", plain(now.last_error, room) or "none")], 1)


def _left_out(now: Snapshot) -> Iterator[Part]:
    kinds = ((now.refused, "refused"), (now.denied, "by robots.txt"), (now.gone, "gone"), (now.dead, "dead"))
    for count, words in kinds:
        if count:
            yield Part(f"{count:,}", words, "red" if words == "dead" else "bold", False)


def _errors(counts: dict[str, int]) -> list[Part]:
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    shown, rest = ranked[:MOST_ERRORS], sum(count for _, count in ranked[MOST_ERRORS:])
    shown += [("others", rest)] if rest else []
    return [Part(f"{n:,}", plain(kind, 40).replace("_", " "), "yellow", False) for kind, n in shown]


def _answers(counts: dict[str, int]) -> list[Part]:
    return [Part("", f"{name}: {count:,}", in_columns=False) for name, count in sorted(counts.items())]


def _response_time(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 999.5 else span(ms / 1000)


def _laid_out(row: Row, width: int) -> list[Text]:
    """A row as one line, or as several: as many as it always takes, or as its parts need."""
    lines = [Text.assemble((f"{row.label:<{LABEL}}", "cyan"))]
    for part in row.parts:
        in_columns = part.in_columns and width >= THREE_COLUMNS
        text = _part(part, FIGURE if in_columns else 0)
        used = lines[-1].cell_len
        if used > LABEL and used + text.cell_len > width - 1:
            lines.append(Text(" " * LABEL))
        lines[-1].append_text(text)
        columns = -((LABEL - lines[-1].cell_len) // CELL) if in_columns else 0
        lines[-1].pad_right(max(2, LABEL + columns * CELL - lines[-1].cell_len))
    for line in lines:
        line.rstrip()
    if row.lines:
        lines = [*lines, *(Text() for _ in range(row.lines))][: row.lines]
    return lines


def _part(part: Part, figure_width: int) -> Text:
    if not part.figure or not part.words:
        return Text.assemble(
            (f"{part.figure:>{figure_width}}" if part.figure else "", part.style), part.words
        )
    return Text.assemble((f"{part.figure:>{figure_width}}", part.style), " ", part.words)
