"""A worker that waits for its server says so: often at first, then seldom, and never while it is answered."""

from __future__ import annotations

from pathlib import Path

from skitter.log import Log
from skitter.testing.clock import FakeClock
from skitter.worker.remote.server_notes import ServerNotes


def notes_in(folder: Path) -> tuple[ServerNotes, FakeClock, list[str]]:
    clock, said = FakeClock(), list[str]()
    return ServerNotes("http://s", "w", Log(folder / "log", clock), said.append, clock), clock, said


def waited(notes: ServerNotes, clock: FakeClock, seconds: int) -> None:
    for _ in range(seconds):
        clock.advance(1)
        notes.remind()


def test_one_that_was_never_answered_says_so_every_few_seconds_and_later_every_minute(tmp_path: Path) -> None:
    notes, clock, said = notes_in(tmp_path)
    waited(notes, clock, 60)
    assert len(said) == 12
    assert said[0] == "still no answer of http://s after 5 s; asking on"
    waited(notes, clock, 3600)
    assert len(said) == 12 + 60
    assert notes.silent_for == 3660


def test_one_that_is_answered_is_silent(tmp_path: Path) -> None:
    notes, clock, said = notes_in(tmp_path)
    notes.joined()
    waited(notes, clock, 100)
    assert len(said) == 1
    assert notes.silent_for == 0


def test_what_is_lost_is_told_once_then_reminded_of_until_it_is_found(tmp_path: Path) -> None:
    notes, clock, said = notes_in(tmp_path)
    notes.joined()
    waited(notes, clock, 100)
    for _ in range(3):
        notes.lost("refused")
    waited(notes, clock, 11)
    notes.found(7)
    waited(notes, clock, 100)
    assert [line.split(" ")[0] for line in said] == ["joined", "http://s", "still", "still", "http://s"]
    assert "after 5 s" in said[2]
