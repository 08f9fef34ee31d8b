"""The display: it tells the figures, fits the terminal, and lets nothing from the web act on it."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.console.display.display import (
    JsonDisplay,
    Lines,
    PlainDisplay,
    Timetable,
    choose_display,
    plain_line,
)
from skitter.console.display.live import LiveDisplay, Terminal, render
from skitter.console.display.summary import HEADLINES, Summary, render_summary
from skitter.console.display.wording import TimeLeft, amounts, plain, rate, size, span
from skitter.telemetry import Ended, Phase, Snapshot

BUSY = Snapshot(
    at=1_000_000.0,
    elapsed=83.0,
    pages=12_345,
    requests=13_002,
    bytes=345_200_000,
    rate_now=148.2,
    rate_mean=13.7,
    in_flight=120,
    hosts_active=118,
    hosts_waiting=1_030,
    hosts_backing_off=12,
    hosts_total=1_500,
    queued=45_678,
    in_progress=119,
    waiting_retry=34,
    pages_in_all=12_345,
    denied=56,
    refused=345,
    gone=78,
    dead=9,
    refusals={"scope": 300, "extension": 45},
    errors={"connect_timeout": 21, "dns_not_found": 3},
    statuses={"2xx": 12_001, "4xx": 120},
    slowest=[("https://slow.example.org", 1_234.0), ("http://evil\x1b[2J[bold].example", 56.0)],
    next_at=1_000_754.0,
)


def text_of(snapshot: Snapshot, width: int = 80, height: int = 24) -> str:
    return "\n".join(line.plain for line in render(snapshot, TimeLeft(), width, height))


def test_numbers_are_written_for_people() -> None:
    assert [size(n) for n in (0, 999, 1_000, 3_449_000, 99_960, 345_200_000, 999_600, 5e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "3.4 MB",
        "100 kB",
        "345 MB",
        "1.0 MB",
        "5,000 TB",
    ]
    assert [span(s) for s in (0, 0.44, 9.96, 42, 59.6, 185, 3720, 3 * 86400 + 4 * 3600, -5)] == [
        "0 s",
        "0.4 s",
        "10 s",
        "42 s",
        "1 m 00 s",
        "3 m 05 s",
        "1 h 02 m",
        "3 d 04 h",
        "0 s",
    ]
    assert [rate(r) for r in (0.0, 3.33, 99.6, 12_345.0)] == ["0.0/s", "3.3/s", "100/s", "12,345/s"]
    assert amounts({"a": 1, "b_c": 2_000, "d": 3}, 2) == "b c 2,000, d 3, others 1"


@given(st.text())
def test_plain_text_never_holds_a_character_that_a_terminal_acts_on(text: str) -> None:
    assert plain(text).isprintable()
    assert len(plain(text, 20)) <= 20


FIGURES = (
    "12,345 fetched|148/s now|13.7/s mean|345 MB|13,002 requests|120 in flight|118 active|1,030 waiting"
    "|12 backing off|45,678 queued|34 to retry|345 refused|56 by robots.txt|78 gone|9 dead|21 connect timeout"
    "|3 dns not found|2xx: 12,001|1.2 s https://slow.example.org|1 m 23 s"
)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
@pytest.mark.parametrize("figure", FIGURES.split("|"))
def test_the_live_display_tells_every_figure(figure: str, size: tuple[int, int]) -> None:
    assert figure in text_of(BUSY, *size)


small_or_huge = st.integers(0, 10**4) | st.integers(0, 10**15)
seconds = st.floats(0, 1e9)
COUNTS = (
    "pages",
    "requests",
    "reused",
    "dns_hits",
    "dns_lookups",
    "bytes",
    "queued",
    "dead",
    "refused",
    "max_pages",
    "hosts_active",
)
snapshots = st.builds(
    Snapshot,
    at=seconds,
    phase=st.sampled_from(Phase),
    elapsed=seconds,
    **dict.fromkeys(COUNTS, small_or_huge),
    rate_now=seconds,
    errors=st.dictionaries(st.text(), small_or_huge, max_size=20),
    statuses=st.dictionaries(st.sampled_from(["2xx", "5xx"]), small_or_huge),
    refusals=st.dictionaries(st.text(), small_or_huge, max_size=9),
    slowest=st.lists(st.tuples(st.text(), seconds), max_size=5),
    next_at=st.none() | seconds,
)


@given(snapshot=snapshots, width=st.integers(1, 220), height=st.integers(1, 60), ascii_only=st.booleans())
def test_the_live_display_never_outgrows_the_terminal(
    snapshot: Snapshot, width: int, height: int, ascii_only: bool
) -> None:
    lines = render(snapshot, TimeLeft(), width, height, ascii_only)
    assert 1 <= len(lines) <= max(1, height - 1)
    assert all(line.cell_len <= max(1, width - 1) for line in lines)
    assert all(line.plain.isprintable() for line in lines)


QUIET = Snapshot(at=1_000_000.0, elapsed=1.0)
TALKATIVE = msgspec.structs.replace(
    BUSY,
    headline="Crawling 148 pages a second: 118 hosts set the pace, most asked every 1 s (politeness.delay). "
    * 2,
    last=[("200", "https://a.example/" + "x" * 300), ("connect timeout", "https://b.example/")],
    last_error="connect timeout https://b.example/ after 10 s",
    errors={f"kind_{number}": 10**number for number in range(12)},
    slowest=[(f"https://slow-{number}.example", 5000.0) for number in range(5)],
)
LABELS = (
    "pages",
    "time left",
    "received",
    "hosts",
    "queue",
    "last",
    "last error",
    "left out",
    "errors",
    "answers",
)


@pytest.mark.parametrize("size", [(80, 24), (80, 30), (100, 30), (200, 50)])
def test_rows_stay_where_they_are_whatever_there_is_to_say(size: tuple[int, int]) -> None:
    places = []
    for snapshot in (QUIET, BUSY, TALKATIVE):
        for phase in Phase:
            shown = text_of(msgspec.structs.replace(snapshot, phase=phase), *size).splitlines()
            rows = {
                label: i for label in LABELS for i, line in enumerate(shown) if line[:11].rstrip() == label
            }
            places.append(rows)
    assert all(rows == places[0] for rows in places)
    assert set(places[0]) == set(LABELS)


def test_the_live_display_says_what_sets_the_pace_and_shows_the_last_urls_and_the_last_error() -> None:
    shown = text_of(TALKATIVE, 100, 30)
    assert "118 hosts set the pace, most asked every 1 s" in shown
    assert "200  https://a.example/xxx" in shown
    assert "connect timeout https://b.example/ after 10 s" in shown


def test_a_low_terminal_keeps_what_matters_most() -> None:
    lines = text_of(BUSY, 80, 6).splitlines()
    assert len(lines) == 5
    assert "12,345 fetched" in lines[1]
    assert "Ctrl-C" in lines[-1]


def test_a_page_limit_has_a_bar_and_a_time_left() -> None:
    text = text_of(msgspec.structs.replace(BUSY, max_pages=49_380, rate_now=100.0))
    assert "12,345 of 49,380" in text
    assert " 25 %" in text
    assert "about 6 m 10 s" in text


def feed(left: TimeLeft, queue: Callable[[int], int], seconds: int = 20) -> Snapshot:
    last = BUSY
    for second in range(seconds + 1):
        last = msgspec.structs.replace(BUSY, at=BUSY.at + second, queued=queue(second))
        left.seen(last)
    return last


def test_the_time_left_is_known_when_the_queue_shrinks() -> None:
    left = TimeLeft()
    last = feed(left, lambda second: 1_000 - 10 * second)
    assert left.seconds(last) == pytest.approx(80.0)
    assert left.words(last) == "about 1 m 20 s"


def test_the_time_left_is_unknown_while_pages_are_being_found() -> None:
    left = TimeLeft()
    assert left.words(feed(left, lambda second: 1_000 + second)) == "unknown, still finding pages"
    early = TimeLeft()
    assert early.seconds(feed(early, lambda second: 1_000 - second, seconds=3)) is None


def test_the_memory_of_the_time_left_is_bounded() -> None:
    left = TimeLeft()
    for tick in range(10_000):
        left.seen(msgspec.structs.replace(BUSY, at=tick / 4))
    assert len(left._seen) <= 32


class CountedStream(io.StringIO):
    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


def live_on(stream: io.StringIO) -> LiveDisplay:
    return LiveDisplay(stream, Terminal(file=stream, force_terminal=True, width=80, height=24, markup=False))


def test_the_live_display_redraws_four_times_a_second_in_one_write_each() -> None:
    stream = CountedStream()
    live = live_on(stream)
    live.update(BUSY)
    begun = stream.writes
    for tick in range(1, 101):
        live.update(msgspec.structs.replace(BUSY, at=BUSY.at + tick / 100))
    assert stream.writes - begun == 4
    live.close(None)


def test_a_change_of_phase_is_shown_at_once() -> None:
    stream = io.StringIO()
    live = live_on(stream)
    live.update(BUSY)
    live.update(msgspec.structs.replace(BUSY, phase=Phase.DRAINING))
    live.close(None)
    assert "finishing 120 requests in flight" in stream.getvalue()


def test_nothing_from_the_web_reaches_the_terminal_as_control_or_markup() -> None:
    stream = io.StringIO()
    live = live_on(stream)
    live.update(BUSY)
    live.note("title \x1b]0;owned\x07 [red]x[/red]")
    live.close(Summary(ended=Ended.COMPLETE, last=BUSY, folder="a\x1b[31mb"))
    shown = stream.getvalue()
    assert "evil?[2J[bold].example" in shown
    assert "title ?]0;owned? [red]x[/red]" in shown
    assert "\x1b[31mb" not in shown


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_reader_that_left_does_not_disturb_the_crawl() -> None:
    summary = Summary(ended=Ended.COMPLETE, last=BUSY, folder="x")
    for display in (PlainDisplay(Gone()), JsonDisplay(Gone()), live_on(Gone())):
        display.update(BUSY)
        display.note("still here")
        display.update(msgspec.structs.replace(BUSY, at=BUSY.at + 100))
        display.close(summary)


def test_a_closed_stream_is_silence_too() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    stream.close()
    lines.write("x")
    lines.write("y")


def due_at(until: int) -> list[float]:
    timetable = Timetable()
    return [tick / 4 for tick in range(until * 4) if timetable.is_due(tick / 4)]


def test_a_line_comes_within_two_seconds_then_every_ten_then_every_minute() -> None:
    times = due_at(400)
    assert times == [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 180, 240, 300, 360]


def test_the_plain_line_is_readable_and_harmless() -> None:
    stream = io.StringIO()
    display = PlainDisplay(stream)
    display.update(msgspec.structs.replace(BUSY, errors={"tls\x1b[2J": 2}))
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    for figure in (
        "1 m 23 s: 12,345 pages",
        "148/s now",
        "345 MB",
        "118 hosts active",
        "45,678 queued",
        "errors 2",
    ):
        assert figure in line


def test_json_lines_carry_the_same_figures_and_end_with_a_summary() -> None:
    stream = io.StringIO()
    display = JsonDisplay(stream)
    display.update(BUSY)
    display.update(BUSY)
    display.note("draining")
    display.close(Summary(ended=Ended.LIMIT, last=BUSY, folder="x"))
    progress, note, summary = map(json.loads, stream.getvalue().splitlines())
    assert (progress["event"], progress["pages"], progress["phase"]) == ("progress", 12_345, "crawling")
    assert (note["event"], note["text"], note["level"]) == ("note", "draining", "info")
    assert list(note)[:3] == list(progress)[:3] == list(summary)[:3] == ["time", "level", "event"]
    assert (summary["event"], summary["ended"], summary["last"]["pages"]) == ("summary", "limit", 12_345)
    assert msgspec.convert(progress | {"slowest": []}, Snapshot).errors == BUSY.errors


FULL = Summary(
    ended=Ended.INTERRUPTED,
    last=BUSY,
    folder="my crawl",
    archives=tuple(f"my crawl/archive/{number}.warc.gz" for number in range(5)),
    index="my crawl/index.cdxj",
    log="my crawl/skitter.log",
    resume="skitter crawl 'my crawl'",
)


@pytest.mark.parametrize(
    "promise",
    [
        "12,345 pages of 1,500 hosts in 1 m 23 s",
        "345  refused: scope 300, extension 45",
        "56  denied by robots.txt",
        "78  gone",
        "9  dead letters",
        "34  to be tried again, the next in 12 m 34 s (",
        "45,797  queued, not asked for yet",
        "21  connect timeout",
        "my crawl/archive/0.warc.gz",
        "and 2 more",
        "my crawl/index.cdxj",
        "my crawl/skitter.log",
        "skitter crawl 'my crawl'",
        "skitter stats 'my crawl'",
        "skitter explain URL --in 'my crawl'",
        "skitter dead 'my crawl'",
    ],
)
def test_the_summary_tells_what_happened_where_it_is_and_what_to_do(promise: str) -> None:
    assert promise in render_summary(FULL)


def test_a_complete_crawl_is_not_told_to_go_on_and_has_no_empty_parts() -> None:
    last = Snapshot(at=10.0, elapsed=2.0, pages=1, requests=2, hosts_total=1)
    text = render_summary(Summary(ended=Ended.COMPLETE, last=last, folder="x", resume="skitter crawl x"))
    assert "1 page of 1 host in 2 s" in text
    assert "skitter crawl" not in text
    assert "Not fetched" not in text
    assert "Errors" not in text


@pytest.mark.parametrize(
    ("refused", "refusing", "headline"),
    [
        (945, 1, "Complete but for 945 pages of 1 kind taken for a trap: skitter traps x"),
        (1, 1, "Complete but for 1 page of 1 kind taken for a trap: skitter traps x"),
        (12_000, 3, "Complete but for 12,000 pages of 3 kinds taken for traps: skitter traps x"),
        (0, 0, "Complete: nothing is left to fetch."),
    ],
)
def test_the_headline_names_what_was_taken_for_a_trap(refused: int, refusing: int, headline: str) -> None:
    last = Snapshot(at=9.0, refusals={"trap": refused, "scope": 7}, verdicts=refusing, refusing=refusing)
    lines = render_summary(Summary(ended=Ended.COMPLETE, last=last, folder="x")).splitlines()
    assert lines[0] == headline
    assert any("skitter traps x --undo ID" in line for line in lines) is bool(refused)


@pytest.mark.parametrize(
    ("last", "headline"),
    [
        (Snapshot(at=9.0, dead=1), ["Complete but for 1 dead letter: skitter dead x"]),
        (
            Snapshot(at=9.0, unrendered=3),
            ["Complete but for 3 pages that could not be rendered: skitter render x"],
        ),
        (
            Snapshot(at=9.0, refusals={"depth": 485}, over_defaults={"depth": 485}),
            [
                "Complete but for 485 URLs further than 15 links from a seed: "
                "skitter crawl --into x --max-depth N"
            ],
        ),
        (
            Snapshot(
                at=9.0, refusals={"trap": 9, "budget": 3}, refusing=2, dead=4, over_defaults={"budget": 3}
            ),
            [
                "Complete but for",
                "  9 pages of 2 kinds taken for traps: skitter traps x",
                "  4 dead letters: skitter dead x",
                "  3 URLs over the budget of their hosts: skitter policy x HOST --budget N",
            ],
        ),
        (Snapshot(at=9.0, refusals={"depth": 485}), ["Complete: nothing is left to fetch."]),
    ],
)
def test_the_headline_names_every_loss_that_nobody_asked_for_and_what_undoes_it(
    last: Snapshot, headline: list[str]
) -> None:
    lines = render_summary(Summary(ended=Ended.COMPLETE, last=last, folder="x")).splitlines()
    assert lines[: len(headline)] == headline
    waiting = render_summary(Summary(ended=Ended.WAITING, last=last, folder="x"))
    assert "Complete" not in waiting


def test_the_summary_tells_how_warm_the_connections_were_and_what_dns_took() -> None:
    last = Snapshot(at=9.0, requests=200, reused=150, dns_hits=190, dns_lookups=10, dns_ms=123)
    text = render_summary(Summary(ended=Ended.COMPLETE, last=last, folder="x"))
    assert "received in 200 requests, 75% on open connections\n" in text
    assert "10 DNS lookups of 12 ms each; 95% of names were known\n" in text
    nothing = Summary(ended=Ended.COMPLETE, last=Snapshot(at=9.0), folder="x")
    assert "DNS" not in render_summary(nothing)


@given(last=snapshots, ended=st.sampled_from(Ended))
def test_the_summary_fits_in_80_columns_and_is_harmless(last: Snapshot, ended: Ended) -> None:
    lines = render_summary(
        Summary(ended=ended, last=last, folder="crawl", resume="skitter crawl x")
    ).splitlines()
    lost = ended is Ended.COMPLETE and (last.dead or last.refusals.get("trap"))
    assert lines[0].startswith("Complete but for") if lost else lines[0] == HEADLINES[ended]
    assert all(line.isprintable() and len(line) <= 80 for line in lines)


def test_only_a_terminal_gets_the_live_display(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with open(follower, "w") as terminal:
        monkeypatch.setenv("TERM", "xterm")
        assert isinstance(choose_display(terminal), LiveDisplay)
        assert isinstance(choose_display(terminal, json=True), JsonDisplay)
        monkeypatch.setenv("TERM", "dumb")
        assert isinstance(choose_display(terminal), PlainDisplay)
    os.close(leader)
    assert isinstance(choose_display(io.StringIO()), PlainDisplay)


ON_A_TERMINAL = """
import sys
from skitter.console.display.display import choose_display
from skitter.console.display.summary import Ended, Summary
from skitter.telemetry import Snapshot
display = choose_display(sys.stderr)
for tick in range(8):
    display.update(Snapshot(at=tick / 4, pages=tick, slowest=[("http://a\\x1b[41m.example", 1.0)]))
print("for the pipe")
display.note("a line that stays")
display.close(Summary(ended=Ended.COMPLETE, last=Snapshot(at=2.0, pages=7), folder="x"))
"""


def read_all(leader: int) -> bytes:
    found = b""
    while True:
        try:
            block = os.read(leader, 65_536)
        except OSError:  # Linux: EIO once the other side is closed
            return found
        if not block:
            return found
        found += block


def test_a_real_terminal_is_given_back_with_its_cursor_and_a_pipe_stays_a_pipe() -> None:
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ON_A_TERMINAL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = read_all(leader)
        piped, _ = process.communicate(timeout=30)
    os.close(leader)
    assert process.returncode == 0
    assert piped == b"for the pipe\n"
    assert shown.count(b"\x1b[?25l") == 1
    assert shown.rindex(b"\x1b[?25h") < shown.index(b"Complete: nothing is left")
    assert b"a line that stays" in shown
    assert b"\x1b[41m" not in shown


def test_rich_is_not_imported_where_there_is_no_terminal() -> None:
    program = (
        "import sys; from skitter.console.display.display import choose_display;"
        " choose_display(sys.stderr); print('rich' in sys.modules)"
    )
    environment: dict[str, Any] = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"


def test_a_plain_line_of_a_crawl_that_waits_says_for_whom() -> None:
    sentence = "Waiting: 9 hosts answer 500 to robots.txt; next at 20:29 UTC."
    waiting = msgspec.structs.replace(BUSY, phase=Phase.WAITING, headline=sentence)
    assert plain_line(waiting, TimeLeft()).endswith(
        "; Waiting: 9 hosts answer 500 to robots.txt; next at 20:29 UTC"
    )
