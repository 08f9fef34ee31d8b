"""Quiet hours and days by a time zone's clock, also on the days when it is put forward or back."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from skitter.schedule.quiet_hours import day_of, is_quiet, next_day, quiet_from, quiet_until
from skitter.settings.quiet_hours import Span, read_spans, zone_of

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (Span(22 * 60, 6 * 60),)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_hours_are_read_as_people_write_them() -> None:
    assert read_spans("22:00-06:00") == NIGHT
    assert read_spans(" 9:30 - 10:00 , 12:00-24:00") == (Span(570, 600), Span(720, 0))


@pytest.mark.parametrize(
    "text",
    ["", "22-6", "25:00-26:00", "10:00-10:00", "00:00-24:00", "00:00-12:00,12:00-00:00", "24:30-02:00"],
)
def test_what_is_no_hours_or_all_of_the_day_is_refused(text: str) -> None:
    assert read_spans(text) is None


def test_unknown_zones_are_none() -> None:
    assert zone_of("") is UTC
    assert zone_of("Europe/Berlin") is not None
    assert [zone_of(name) for name in ("Mars/Olympus", "../../etc/passwd", "Europe", "/etc/localtime")] == [
        None
    ] * 4


def test_a_night_in_winter() -> None:
    # 22:00 in Berlin is 21:00 UTC
    assert not is_quiet(NIGHT, BERLIN, at("2026-01-10T20:59:59"))
    assert is_quiet(NIGHT, BERLIN, at("2026-01-10T21:00"))
    assert quiet_until(NIGHT, BERLIN, at("2026-01-10T23:17:31.5")) == at("2026-01-11T05:00")
    assert quiet_until(NIGHT, BERLIN, at("2026-01-10T12:00:01.5")) == at("2026-01-10T12:00:01.5")
    assert quiet_from(NIGHT, BERLIN, at("2026-01-10T12:00:01.5")) == at("2026-01-10T21:00")
    assert quiet_from(NIGHT, BERLIN, at("2026-01-10T20:59:30")) == at("2026-01-10T21:00")


@pytest.mark.parametrize("day", ["2026-03-28", "2026-03-29", "2026-10-24", "2026-10-25"])
@pytest.mark.parametrize("hours", ["22:00-06:00", "02:30-05:00", "01:00-02:30", "02:15-02:45", "00:00-03:00"])
def test_no_minute_of_the_quiet_hours_is_open_when_the_clock_changes(day: str, hours: str) -> None:
    spans = read_spans(hours)
    assert spans is not None
    start = at(f"{day}T00:00")
    for minute in range(0, 48 * 60, 37):
        now = start + 60 * minute + 13
        if is_quiet(spans, BERLIN, now):
            opens = quiet_until(spans, BERLIN, now)
            assert now < opens < now + 90_000
            assert not is_quiet(spans, BERLIN, opens)
        else:
            closes = quiet_from(spans, BERLIN, now)
            assert is_quiet(spans, BERLIN, closes)
            between = range(int(now), int(closes), 300)
            assert not any(is_quiet(spans, BERLIN, second) for second in between)


def test_a_day_is_the_zones_own() -> None:
    evening = at("2026-01-10T23:30")
    assert day_of(BERLIN, evening) == day_of(BERLIN, at("2026-01-11T12:00"))
    assert next_day(BERLIN, evening) == at("2026-01-11T23:00")
    assert next_day(UTC, evening) == at("2026-01-11T00:00")
    # of 23 hours, where it is an hour late, and of 25
    assert next_day(BERLIN, at("2026-03-28T23:00")) == at("2026-03-29T23:00")
    assert next_day(BERLIN, at("2026-10-24T22:00")) == at("2026-10-25T23:00")
