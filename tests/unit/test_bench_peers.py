"""What is said of peers must be right: duties, why one is absent, what was lost, the arithmetic of tables."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from bench._duties import duties, duties_of, duty_rows, first_of_those_with_a_frontier, notes, read_duties
from bench._installed import complaint
from bench._lost import Loss, asked
from bench._names import address_of, answer
from bench._nginx import Asked, logged, read_access_log, secure
from bench._other_mirrors import heritrix_job, katana_pages
from bench._roster import ALL, COMPILED, chosen
from bench.mirror import rows_of as mirror_rows
from bench.mirror import targets
from bench.tls import FRESH, KEPT, PLAIN, Reading, fresh_cost
from bench.tls import rows_of as tls_rows

ONE = """
[swift]
language = "C"
writes = "files"
robots = true
delay = "none"
frontier = "memory"
goes_on = "no"
duplicates = "URLs"
http2 = false
note = "it forgets"

[careful]
language = "Go"
writes = "WARC"
robots = true
delay = "by host"
frontier = "disk"
goes_on = "after kill -9"
duplicates = "URLs and bodies"
http2 = true
"""


def test_every_crawler_that_can_take_part_has_duties() -> None:
    known = duties()
    runnable = [title for title, _, crawler in COMPILED.values() if crawler is not None]
    for name in ["skitter", "wget2, 5 threads", "Scrapy (lean)", "Crawlee", "BUbiNG", *runnable]:
        assert duties_of(name, known).language


def test_duties_are_a_table_with_one_row_a_crawler_whatever_its_forms() -> None:
    rows = duty_rows(["careful", "swift, 5 threads", "swift (lean)"], read_duties(ONE))
    assert [row[0] for row in rows[1:]] == ["careful", "swift"]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert notes(["swift (lean)", "careful"], read_duties(ONE)) == ["swift: it forgets"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [('frontier = "memory"', 'frontier = "cloud"'), ("robots = true", 'robots = "yes"'), ("http2", "http3")],
)
def test_a_slip_in_the_duties_stops_the_benchmark(right: str, wrong: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_duties(ONE.replace(right, wrong))


def test_a_crawler_without_duties_is_named() -> None:
    with pytest.raises(KeyError, match="stranger has no duties"):
        duties_of("stranger, 2 threads", read_duties(ONE))


def test_only_those_that_keep_a_frontier_compete_for_the_first_place() -> None:
    cpu = {"swift": 1.0, "careful, debian": 9.0, "careful": 8.0}
    assert first_of_those_with_a_frontier(cpu, read_duties(ONE)) == "careful"


def test_skitter_misses_its_target_when_another_with_a_frontier_is_cheaper() -> None:
    known = duties()
    measured = {"skitter": {"cpu_us_per_page": [900.0]}, "Heritrix": {"cpu_us_per_page": [800.0]}}
    assert not targets(measured, known)[-1].met
    measured["Heritrix"] = {"cpu_us_per_page": [9000.0]}
    assert targets(measured, known)[-1].met


def test_why_a_peer_is_absent_is_in_its_clients_own_words() -> None:
    said = "downloading\n\x1b[1mgo: module x: reading list: 403 Forbidden\x1b[0m\n\tserver response: no\n"
    assert complaint(said) == "go: module x: reading list: 403 Forbidden"
    assert complaint("building\nstopped\n") == "stopped"
    assert complaint("") == "it ended without a word"
    assert len(complaint("error: " + "x" * 1000)) <= 160


def test_peers_are_chosen_by_name_and_a_wrong_name_is_told() -> None:
    assert chosen("all") == [*ALL]
    assert chosen("none") == []
    assert chosen("colly,wget2") == ["colly", "wget2"]
    with pytest.raises(SystemExit, match="weget is not known"):
        chosen("wget2,weget")


# -- nginx's log, and what a kill cost


def test_the_access_log_is_read_from_a_place_on_and_without_a_torn_line(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    assert read_access_log(log) == []
    first = "1 HTTP/1.1 200 /a.html\n"
    log.write_text(first + "2 HTTP/2.0 404 /with space.html\n3 HTTP/2.0 20")
    assert read_access_log(log)[0] == Asked(1, "HTTP/1.1", 200, "/a.html")
    assert read_access_log(log, len(first)) == [Asked(2, "HTTP/2.0", 404, "/with space.html")]


def test_pages_are_counted_as_often_as_they_were_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("1 HTTP/1.1 200 /a\n1 HTTP/1.1 200 /robots.txt\n2 HTTP/1.1 200 /a\n2 HTTP/1.1 200 /b\n")
    assert asked(log, 0, {"/a", "/b", "/c"}) == {"/a": 2, "/b": 1}


def test_a_crawler_that_did_not_end_again_says_so() -> None:
    loss = Loss(reachable=9, killed_at=5, missing=2, stored_twice=0, asked_again=1, code=None)
    assert loss.row("x") == ("x", 5, 2, 0, 1, "did not end")


def test_the_servers_keep_their_places_for_port_and_root(tmp_path: Path) -> None:
    plain = logged(tmp_path / "log").format(port=1, root="/docs")
    assert "listen 127.0.0.1:1;" in plain
    assert "root /docs;" in plain
    assert f"access_log {tmp_path}/log bench;" in plain
    fresh = secure(tmp_path / "log", tmp_path / "pem", 1).format(port=2, root="/docs")
    assert "listen 127.0.0.1:2 ssl;" in fresh
    assert "keepalive_requests 1;" in fresh
    assert " ssl http2;" in secure(tmp_path / "log", tmp_path / "pem")


# -- tables


def test_a_row_has_the_median_and_the_spread() -> None:
    rows = mirror_rows({"x": {"pages": [3.0, 1.0, 2.0], "wall_seconds": [5.0, 5.0, 5.0]}})
    assert rows == [("", "pages", "spread", "wall seconds", "spread"), ("x", 2.0, "1.0 to 3.0", 5.0, "none")]


def reading(us: float, connections: int) -> Reading:
    return Reading(us=us, pages=100, rate=1.0, connections=connections, protocol="HTTP/2.0", missing=0)


def test_a_connection_costs_what_the_further_ones_took() -> None:
    assert fresh_cost(reading(500.0, 10), reading(1500.0, 110)) == pytest.approx(1000.0)
    # two pages shared one
    assert fresh_cost(reading(500.0, 0), reading(1500.0, 50)) == pytest.approx(2000.0)
    nothing = fresh_cost(reading(500.0, 10), reading(900.0, 10))
    assert nothing != nothing


def test_the_table_of_https_has_a_crawler_a_row() -> None:
    by_way = {PLAIN: [reading(100, 5)], KEPT: [reading(200, 5)], FRESH: [reading(700, 105)]}
    heading, row = tls_rows({"x": by_way})
    assert len(heading) == len(row)
    assert list(row) == [
        "x",
        100.0,
        "100 to 100",
        200.0,
        "200 to 200",
        700.0,
        "700 to 700",
        500.0,
        5,
        105,
        "HTTP/2.0",
    ]


# -- the web's names, and a job that is filled in


def test_every_name_has_an_address_on_loopback_and_no_other_kind() -> None:
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x02h1\x04test\x00"
    said = answer(question + b"\x00\x01\x00\x01")
    assert said[:2] == b"\x12\x34"
    assert said[6:8] == b"\x00\x01"
    assert said[-4:] == address_of("H1.test")
    assert said[-4] == 127
    assert answer(question + b"\x00\x1c\x00\x01")[6:8] == b"\x00\x00"


def test_of_an_index_of_answers_only_pages_count() -> None:
    index = "/r/a.txt http://h/a%20b.html (200 OK)\n/r/b.txt http://h/b (404 Not Found)\ntorn"
    assert katana_pages(index) == {"/a b.html": 1}


def test_a_profile_without_the_places_to_fill_in_is_refused() -> None:
    with pytest.raises(ValueError, match="the profile has no"):
        heritrix_job("<beans/>", "http://a.test/", {})
