"""The judge of the trap benchmark, on logs that have one thing wrong."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from bench._crawls import Usage
from bench.docs_equal import Pass as DocsPass
from bench.docs_equal import differences, probes
from bench.traps import settings

from skitter.errors import UsageError
from skitter.testing.traps.audit import by_kind, faults, tallies, trapped_share, whole
from skitter.testing.traps.log import Row, read_log
from skitter.testing.traps.plan import TrapPlan

PLAN = TrapPlan(scale=0.01, kinds=("calendar", "session-query", "shop", "docs"))
SHOP, CALENDAR, SESSIONS = "shop-0.test", "calendar-0.test", "session-query-0.test"


def perfect() -> list[Row]:
    """Every content once, and nothing else."""
    return [
        Row(site.name, f"/{number}", 200, site.name, meaning)
        for site in PLAN.sites
        for number, meaning in enumerate(sorted(site.contents()))
    ]


def judged(rows: list[Row]) -> list[str]:
    return faults(whole(tallies(PLAN, rows)))


def trapped(count: int) -> list[Row]:
    return [Row(CALENDAR, f"/calendar/{number}", 200, CALENDAR) for number in range(count)]


def test_all_content_and_no_trap_is_as_it_should_be() -> None:
    everything = whole(tallies(PLAN, perfect()))
    assert everything.share == 1.0
    assert faults(everything) == []


def test_dropping_honest_pages_fails() -> None:
    rows = perfect()
    few = len(rows) // 100
    assert judged(rows[few - 1 :]) == []
    assert any("honest content" in line for line in judged(rows[few + 1 :]))


def test_fetching_too_much_of_a_trap_fails() -> None:
    rows = perfect()
    allowed = int(len(rows) * 0.03 / 0.97)
    assert judged(rows + trapped(allowed)) == []
    assert any("in traps" in line for line in judged(rows + trapped(allowed + 1)))


def test_a_trap_that_is_fetched_does_not_make_up_for_a_page_that_is_not() -> None:
    rows = [row for row in perfect() if row.site != CALENDAR]
    found = tallies(PLAN, rows + trapped(30))
    assert (found[CALENDAR].seen, found[CALENDAR].wasted) == (0, 30)


def test_a_real_page_seen_again_on_a_trap_host_is_a_waste() -> None:
    rows = [Row(SESSIONS, f"/?sid={number}", 200, SESSIONS, "/") for number in range(5)]
    tally = tallies(PLAN, rows)[SESSIONS]
    assert (tally.seen, tally.wasted) == (1, 4)


def test_another_url_of_the_same_content_will_do_on_an_honest_host() -> None:
    rows = [
        Row(SHOP, "/?sort=price", 200, SHOP, "/"),
        Row(SHOP, "/", 200, SHOP, "/"),
        Row(SHOP, "/x", 404, SHOP),
    ]
    tally = tallies(PLAN, rows)[SHOP]
    assert (tally.seen, tally.repeats, tally.others, tally.wasted) == (1, 1, 1, 0)


def test_robots_txt_counts_for_nothing() -> None:
    rows = [Row(CALENDAR, "/robots.txt", 404, CALENDAR)] * 500
    assert whole(tallies(PLAN, rows)).requests == 0


def test_requests_of_hosts_that_nobody_has_are_counted() -> None:
    assert whole(tallies(PLAN, [Row("nobody.example", "/", 404)])).others == 1


def test_kinds_add_up_to_the_whole() -> None:
    found = tallies(PLAN, perfect() + trapped(7))
    kinds = by_kind(PLAN, found)
    assert [kind.name for kind in kinds] == list(PLAN.kinds)
    assert sum(kind.seen for kind in kinds) == whole(found).seen
    assert sum(kind.wasted for kind in kinds) == 7
    assert trapped_share(whole(found)) == 7 / whole(found).requests


def test_a_log_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"hello\n")
    with pytest.raises(UsageError, match="no request log"):
        read_log(tmp_path / "log")
    with pytest.raises(UsageError, match="cannot read"):
        read_log(tmp_path / "none")


def test_a_half_written_row_is_left_out(tmp_path: Path) -> None:
    rows = [Row("a.test", "/", 200, "a.test", "/"), Row("a.test", "/b", 404, "a.test")]
    lines = [msgspec.json.encode(PLAN), *map(msgspec.json.encode, rows)]
    (tmp_path / "log").write_bytes(b"\n".join(lines)[:-1])
    plan, found = read_log(tmp_path / "log")
    assert (plan, found) == (PLAN, rows[:1])


def test_without_the_defences_every_trap_has_a_budget_and_no_honest_host_has() -> None:
    text = settings(msgspec.structs.replace(PLAN, cut=9), defended=False)
    assert f'[hosts."http://{CALENDAR}"]\nbudget = 9\n' in text
    assert SHOP not in text
    assert "budget" not in settings(PLAN, defended=True)


def test_documentation_lost_to_the_defences_is_named() -> None:
    usage = Usage(0, 1.0, 1.0, 0.0, 0)
    some = DocsPass({("http://a.test/", 200)}, usage)
    more = DocsPass({("http://a.test/", 200), ("http://a.test/b", 200)}, usage)
    assert differences(some, more) == ["lost with the defences: http://a.test/b 200"]
    assert differences(more, some) == ["fetched with them only: http://a.test/b 200"]
    assert differences(more, more) == []


def test_a_probe_of_the_defences_is_no_difference_and_a_page_that_turns_404_is() -> None:
    usage = Usage(0, 1.0, 1.0, 0.0, 0)
    page, probe = ("http://a.test/", 200), ("http://a.test/no-such-page", 404)
    assert differences(DocsPass({page, probe}, usage), DocsPass({page}, usage)) == []
    assert probes(DocsPass({page, probe}, usage), DocsPass({page}, usage)) == [probe[0]]
    assert differences(DocsPass({("http://a.test/", 404)}, usage), DocsPass({page}, usage)) != []
