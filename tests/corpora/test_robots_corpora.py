"""The robots rules against Google's own tests and the examples of RFC 9309."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skitter.robots.rules import escape_pattern, parse_robots, path_of
from tests.corpora import corpus


def google(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((corpus("robots-google") / f"{name}.json").read_text())
    return cases


def test_all_145_of_google_are_answered_as_google_does() -> None:
    cases = google("allowed")
    wrong = [
        case["name"]
        for case in cases
        if parse_robots(case["robots"].encode(), case["agent"]).decide(case["url"]).allowed
        != case["expected_allowed"]
    ]
    assert len(cases) == 145
    assert wrong == []


def test_the_path_of_a_url_is_what_google_takes() -> None:
    cases = google("path_params_query")
    assert [path_of(case["url"]) for case in cases] == [case["expected_path"] for case in cases]


def test_patterns_are_escaped_as_google_does() -> None:
    cases = google("escape_pattern")
    octets = [case["pattern"].encode().decode("latin-1") for case in cases]
    assert list(map(escape_pattern, octets)) == [case["expected"] for case in cases]


def test_lines_are_counted_as_google_does() -> None:
    cases = [case for case in google("parse_report") if "expected_last_line_seen" in case]
    for case in cases:
        ruling = parse_robots(bytes.fromhex(case["robots_hex"]), "bar").decide("/x")
        assert (ruling.allowed, ruling.line) == (False, case["expected_last_line_seen"])
    assert len(cases) == 5


def test_a_byte_order_mark_is_skipped_where_google_skips_it() -> None:
    cases = [case for case in google("parse_report") if "expected_unknown_directives" in case]
    for case in cases:
        ruling = parse_robots(bytes.fromhex(case["robots_hex"]), "foo").decide("/AnyValue")
        assert (ruling.line > 0) == (case["expected_unknown_directives"] == 0)
    assert len(cases) == 5


def test_sitemaps_are_found_where_google_finds_them() -> None:
    cases = [case for case in google("parse_report") if "expected_sitemap" in case]
    for case in cases:
        assert parse_robots(bytes.fromhex(case["robots_hex"]), "foo").sitemaps == (case["expected_sitemap"],)
    assert len(cases) == 2


def test_a_product_that_is_no_valid_token_is_never_named_by_a_group() -> None:
    for case in google("valid_user_agent"):
        body = f"User-agent: {case['agent']}\nDisallow: /".encode()
        denied = not parse_robots(body, case["agent"]).decide("/x").allowed
        assert denied == case["expected_valid"], case["name"]


@pytest.mark.parametrize(
    ("agent", "target", "allowed"),
    [
        ("anybot", "/picture.gif", False),
        ("anybot", "/example/", False),
        ("anybot", "/publications/", True),
        ("anybot", "/other", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/publications/", False),
        ("barbot", "/example/page.html", False),
        ("BazBot", "/example/page.html", False),
        ("barbot", "/picture.gif", True),
        ("quxbot", "/example/page.html", True),
    ],
)
def test_the_simple_example_of_rfc_9309(agent: str, target: str, allowed: bool) -> None:
    body = (corpus("robots-rfc9309") / "rfc9309-example-simple-robots.txt").read_bytes()
    assert parse_robots(body, agent).decide(target).allowed is allowed


@pytest.mark.parametrize(
    ("target", "allowed"), [("/example/page/", True), ("/example/page/disallowed.gif", False), ("/", True)]
)
def test_the_longest_match_example_of_rfc_9309(target: str, allowed: bool) -> None:
    body = (corpus("robots-rfc9309") / "rfc9309-example-longest-match-robots.txt").read_bytes()
    assert parse_robots(body, "foobot").decide(target).allowed is allowed


@pytest.mark.parametrize(
    ("agent", "denied"),
    [
        ("ExampleBot", {"/foo", "/bar", "/baz"}),
        ("BazBot", {"/baz"}),
        ("anybot", {"/foo", "/bar"}),
    ],
)
def test_the_group_merging_example_of_rfc_9309(agent: str, denied: set[str]) -> None:
    body = (corpus("robots-rfc9309") / "rfc9309-example-rule-group-merging.txt").read_bytes()
    read = parse_robots(body, agent)
    assert {
        target for target in ("/foo", "/bar", "/baz", "/qux") if not read.decide(target).allowed
    } == denied
