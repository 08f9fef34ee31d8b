"""The fast matcher against a slow one that is obviously right, and any bytes at all."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from skitter.robots.rules import parse_robots

PATTERNS = st.text("/ab*$", min_size=1, max_size=8)
TARGETS = st.text("/ab$", max_size=10).map(lambda rest: "/" + rest)
FILES = st.lists(st.tuples(st.booleans(), PATTERNS), max_size=12)


def matches(pattern: str, target: str) -> bool:
    """The set of places in the target that the pattern can have reached, character by character."""
    places = {0}
    anchored = pattern.endswith("$")
    for character in pattern[:-1] if anchored else pattern:
        if character == "*":
            places = set(range(min(places), len(target) + 1)) if places else places
        else:
            places = {place + 1 for place in places if target[place : place + 1] == character}
    return len(target) in places if anchored else bool(places)


def slow_answer(rules: list[tuple[bool, str]], target: str) -> bool:
    found = [(len(pattern), allow) for allow, pattern in rules if matches(pattern, target)]
    return max(found)[1] if found else True


def check(rules: list[tuple[bool, str]], target: str) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in rules]
    read = parse_robots("\n".join(["User-agent: *", *lines]).encode(), "skitter")
    ruling = read.decide(target)
    assert ruling.allowed is slow_answer(rules, target)
    if ruling.line:
        allow, pattern = rules[ruling.line - 2]
        assert allow is ruling.allowed
        assert matches(pattern, target)


@given(FILES, TARGETS)
@settings(max_examples=400)
@example([(False, "/a*b$*"), (True, "/a*")], "/axb$")
def test_the_longest_match_wins_as_a_plain_reading_of_the_standard_has_it(
    rules: list[tuple[bool, str]], target: str
) -> None:
    check(rules, target)


# More wildcards than are tried one by one: half that never match, half that do as soon as there is an `ab`.
CROWD = [(n % 2 == 0, f"/*q{n}q*") for n in range(80)] + [(False, f"/*ab*{'*' * n}") for n in range(40)]


@given(FILES, TARGETS)
@settings(max_examples=300)
@example([(True, "/*ba*aab*bb$")], "/xbaxaabxbb")
@example([(False, "/*bba")], "/bba")
def test_the_longest_match_wins_also_among_many_wildcards(rules: list[tuple[bool, str]], target: str) -> None:
    check([*CROWD, *rules], target)


@given(st.binary(max_size=600), st.text(max_size=60))
@settings(max_examples=300)
def test_any_bytes_and_any_target_get_an_answer(body: bytes, target: str) -> None:
    for text in (body, b"User-agent: *\nDisallow:" + body, b"\xef\xbb\xbfuser-agent:*\r" + body):
        read = parse_robots(text, "skitter")
        ruling = read.decide(target)
        assert ruling.line <= text.count(b"\n") + text.count(b"\r") + 1
        assert read.crawl_delay is None or read.crawl_delay >= 0


@given(st.binary(max_size=200), st.sampled_from([b"\n", b"\r", b"\r\n"]))
def test_a_line_of_noise_does_not_disturb_the_rules_around_it(noise: bytes, end: bytes) -> None:
    quiet = b"#" + noise.replace(b"\n", b"").replace(b"\r", b"")
    body = end.join([b"User-agent: *", b"Disallow: /x", quiet, b"Disallow: /y"])
    read = parse_robots(body, "skitter")
    assert read.decide("/x").line == 2
    assert read.decide("/y").line == 4
