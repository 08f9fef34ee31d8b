from __future__ import annotations

import time

import pytest

from skitter.robots.matching import Ruling
from skitter.robots.rules import ALLOW_ALL, MAX_BYTES, MAX_SITEMAPS, Rules, parse_robots
from skitter.urls.canonical import normalise

LONG_TARGET = "/" + "a" * 2047


def rules(text: str) -> Rules:
    return parse_robots(text.encode(), "skitter")


def allows(text: str, target: str) -> bool:
    return rules(text).decide(target).allowed


def test_the_ruling_names_the_line_and_the_rule_that_decided() -> None:
    read = rules("# hello\nUser-agent: *\nDisallow: /private # not for you\nAllow: /private/open\n")
    assert read.decide("/private/x") == Ruling(False, 3, "Disallow: /private")
    assert read.decide("/private/open") == Ruling(True, 4, "Allow: /private/open")
    assert read.decide("/") == Ruling(True, 0, "")


def test_an_empty_file_allows_everything() -> None:
    assert ALLOW_ALL.decide("/x") == Ruling(True, 0, "")
    assert allows("", "/x")


def test_robots_txt_itself_is_always_allowed() -> None:
    read = rules("User-agent: *\nDisallow: /")
    assert read.decide("/robots.txt").allowed
    assert read.decide("http://example.org/robots.txt").allowed
    assert not read.decide("/robots.txt.bak").allowed


def test_all_groups_of_our_token_are_merged_and_the_star_group_then_does_not_count() -> None:
    text = (
        "User-agent: skitter\nDisallow: /a\nUser-agent: *\nDisallow: /c\n"
        "User-agent: other\nUser-agent: SKITTER/2.0\nDisallow: /b"
    )
    assert not allows(text, "/a")
    assert not allows(text, "/b")
    assert allows(text, "/c")


def test_a_token_that_only_begins_like_ours_is_not_ours() -> None:
    assert allows("User-agent: skitterbot\nDisallow: /", "/x")
    assert allows("User-agent: skit\nDisallow: /", "/x")


def test_an_empty_group_of_ours_frees_us_from_the_star_group() -> None:
    assert allows("User-agent: skitter\nDisallow:\nUser-agent: *\nDisallow: /", "/x")


def test_rules_before_any_group_are_ignored() -> None:
    assert allows("Disallow: /\nUser-agent: *\nDisallow: /x", "/y")


@pytest.mark.parametrize(
    "record", ["Sitemap: http://e.org/s.xml", "Crawl-delay: 3", "Noindex: /x", "Host: e.org"]
)
def test_other_records_do_not_end_a_group(record: str) -> None:
    assert not allows(f"User-agent: skitter\n{record}\nUser-agent: other\nDisallow: /", "/x")


@pytest.mark.parametrize(
    ("pattern", "target", "matched"),
    [
        ("/a", "/ab", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/a*b", "/axxbxx", True),
        ("/a*b$", "/axxbxx", False),
        ("/a*b$", "/axxbxb", True),
        ("/a*ab$", "/ab", False),
        ("/*a*a$", "/a", False),
        ("/a$b", "/a$bc", True),
        ("/a$*", "/a$c", True),
        ("/a*b$*", "/axb$c", True),
        ("/a*b$*", "/axb", False),
        ("/a**b", "/ab", True),
        ("*", "/x", True),
        ("*$", "/x", True),
        ("$", "/", False),
        ("a", "/a", False),
        ("*a", "/a", True),
        ("/?x=1", "/?x=1&y=2", True),
        ("/a.c", "/abc", False),
    ],
)
def test_a_pattern_matches_as_the_standard_says(pattern: str, target: str, matched: bool) -> None:
    assert allows(f"User-agent: *\nDisallow: {pattern}", target) is not matched


def test_the_longest_pattern_wins_whatever_its_kind() -> None:
    text = (
        "User-agent: *\nDisallow: /fish***********\nAllow: /fishfood\nDisallow: /*.gif$\nAllow: /pic/*.gif$\n"
    )
    assert not allows(text, "/fishfood")
    assert not allows(text, "/a.gif")
    assert allows(text, "/pic/a.gif")
    assert allows("User-agent: *\nDisallow: /a\nAllow: /a$", "/a")
    assert allows("User-agent: *\nDisallow: /*b\nAllow: /ab", "/ab")


def test_percent_encoding_is_compared_as_octets() -> None:
    assert not allows("User-agent: *\nDisallow: /ツ", "/%e3%83%84")
    assert not allows("User-agent: *\nDisallow: /%e3%83%84", "/%E3%83%84")
    assert allows("User-agent: *\nDisallow: /a/b", "/a%2Fb")


def test_an_escaped_letter_does_not_slip_past_a_rule() -> None:
    assert not allows("User-agent: *\nDisallow: /private", "/%70rivate")
    assert not allows("User-agent: *\nDisallow: /%70rivate", "/private")
    assert not allows("User-agent: *\nDisallow: /%7Ejoe/", "/~joe/")


# A backslash in a path is a slash to browsers, and so to us; # begins a comment in robots.txt.
PRINTABLE = [chr(code) for code in range(0x20, 0x7F) if chr(code) not in "#\\"]


@pytest.mark.parametrize("where", ["/a{}b", "/a?x={}b"])
@pytest.mark.parametrize("character", PRINTABLE)
def test_a_rule_matches_the_url_that_it_spells_however_either_is_escaped(where: str, character: str) -> None:
    escaped = where.format(f"%{ord(character):02X}")
    raw = where.format(character)
    fetched = normalise(f"http://h.test{raw}")
    assert fetched is not None
    assert not allows(f"User-agent: *\nDisallow: {raw}", fetched)
    if character in ' "<>^`{|}':
        assert not allows(f"User-agent: *\nDisallow: {raw}", escaped)
        assert not allows(f"User-agent: *\nDisallow: {escaped}", fetched)
        assert allows(f"User-agent: *\nDisallow: {raw}", where.format("-"))


def test_a_url_is_fetched_only_if_both_readings_of_a_raw_character_allow_it() -> None:
    assert not allows("User-agent: *\nDisallow: /\nAllow: /a b", "/a%20b")
    assert not allows("User-agent: *\nAllow: /\nDisallow: /a b", "/a%20b")


@pytest.mark.parametrize(
    ("pattern", "target", "matched"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2a.html", "/path/file-with-a-%2A.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-b.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/path/foo-%24", "/path/foo-$bar", True),
        ("/path/foo-%24", "/path/foo-", False),
        ("/path/foo-%24$", "/path/foo-$", True),
        ("/path/foo-%24$", "/path/foo-$bar", False),
        ("/a$b%24", "/a$b$", True),
        ("/*%2A$", "/a/*", True),
        ("/*%2A$", "/a/b", False),
    ],
)
def test_an_escaped_star_or_dollar_in_a_rule_means_itself(pattern: str, target: str, matched: bool) -> None:
    assert allows(f"User-agent: *\nDisallow: {pattern}", target) is not matched


def test_a_whole_url_or_its_path_may_be_asked() -> None:
    read = rules("User-agent: *\nDisallow: /a?b")
    for target in ("/a?b=1", "https://example.org/a?b=1", "https://u:p@example.org:8443/a?b#c", "/a?b#c"):
        assert not read.decide(target).allowed
    assert read.decide("https://example.org").allowed
    assert read.decide("//a?b").allowed


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_ending_counts_lines_alike(end: str) -> None:
    read = rules(end.join(["User-agent: *", "", "", "Disallow: /x"]))
    assert read.decide("/x").line == 4


def test_form_feeds_and_unicode_line_ends_do_not_end_a_line() -> None:
    read = rules("User-agent: *\nAllow: /\x0b\x1c\u2028\nDisallow: /x")
    assert read.decide("/x").line == 3


def test_a_nul_ends_its_line_only() -> None:
    read = parse_robots(b"User-agent: *\nDisallow: /x\0y\nDisallow: /z", "skitter")
    assert not read.decide("/xq").allowed
    assert not read.decide("/z").allowed


@pytest.mark.parametrize("order", ["le", "be"])
def test_a_file_in_utf_16_with_a_byte_order_mark_is_read(order: str) -> None:
    text = "\ufeffUser-agent: *\r\nDisallow: /privé\r\nDisallow: /x"
    read = parse_robots(text.encode(f"utf-16-{order}"), "skitter")
    assert read.decide("/priv%C3%A9").line == 2
    assert read.decide("/x").line == 3
    assert read.decide("/y").allowed


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("odd", [0, 1])
def test_a_long_file_in_utf_16_is_cut_at_a_line(order: str, odd: int) -> None:
    head = "\ufeffUser-agent: *\nDisallow: /first\n#"
    filled = head + "#" * (MAX_BYTES // 2 - len(head) - 12) + "\nDisallow: /private"
    read = parse_robots(filled.encode(f"utf-16-{order}") + b"\0" * odd, "skitter")
    assert not read.decide("/first").allowed
    assert read.decide("/pr").allowed


def test_what_lies_beyond_the_limit_is_cut_at_a_line() -> None:
    head = b"User-agent: *\nDisallow: /first\n"
    body = head + b"#" * (MAX_BYTES - len(head) - 15) + b"\nAllow: /\nDisallow: /private"
    read = parse_robots(body, "skitter")
    assert not read.decide("/first").allowed
    assert read.decide("/pr").line == 4
    assert read.decide("/private").allowed


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 2.5", 2.5),
        ("User-agent: *\nCrawl-delay: 0", 0.0),
        ("User-agent: *\nCrawl-delay: .5", 0.5),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: nan", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: *\nCrawl-delay: 1e9", None),
        ("User-agent: *\nCrawl-delay: " + "9" * 400, None),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("Crawl-delay: 5", None),
        ("User-agent: *\nCrawl-delay: 9\nUser-agent: skitter\nCrawl-delay: 1", 1.0),
        ("User-agent: skitter\nCrawl-delay: 1\nUser-agent: *\nCrawl-delay: 9", 1.0),
        ("User-agent: skitter\nDisallow:\nUser-agent: *\nCrawl-delay: 9", None),
        ("User-agent: other\nUser-agent: skitter\nCrawl-delay: 4\nCrawl-delay: 3", 4.0),
    ],
)
def test_crawl_delay_is_that_of_our_group(text: str, delay: float | None) -> None:
    assert rules(text).crawl_delay == delay


def test_sitemaps_are_kept_once_wherever_they_stand_and_bounded() -> None:
    text = "Sitemap: http://e.org/a.xml\nUser-agent: x\nDisallow: /\nSITEMAP : http://e.org/b.xml\nsite-map: http://e.org/a.xml"
    assert rules(text).sitemaps == ("http://e.org/a.xml", "http://e.org/b.xml")
    many = "\n".join(f"Sitemap: http://e.org/{number}" for number in range(MAX_SITEMAPS + 5))
    assert len(rules(many).sitemaps) == MAX_SITEMAPS


def test_the_content_signal_of_our_group_is_recorded() -> None:
    text = "User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /"
    assert rules(text).content_signal == "search=yes, ai-train=no"
    assert rules("User-agent: other\nContent-Signal: search=yes\nAllow: /").content_signal == ""


def hostile(pattern: bytes) -> bytes:
    """As many numbered rules of one shape as the size limit takes."""
    return b"User-agent: *\n" + b"".join(pattern % number + b"\n" for number in range(40_000))


@pytest.mark.parametrize(
    "body",
    [
        hostile(b"Disallow: /*a*a*%dz"),
        hostile(b"Disallow: *aaba%d"),
        hostile(b"Disallow: /*a*aaaaaaaaaaaaaaa*b%d"),
        hostile(b"Disallow: /%%61*%%62%d"),
        b"User-agent: *\n"
        + b"Disallow: /"
        + b"*a" * 8000
        + b"b$\n"
        + (b"Disallow: /" + b"*a" * 8000 + b"b$\n") * 30,
        b"User-agent: *\n" + b"".join(b"Disallow: /" + b"a" * depth + b"b\n" for depth in range(1000)),
        b"User-agent: *\n"
        + b"Disallow: *"
        + b"a" * 400
        + b"b"
        + b"a" * 400
        + b"\n"
        + hostile(b"Disallow: *" + b"a" * 300 + b"b%d"),
    ],
    ids=[
        "stars",
        "near misses",
        "all parts occur",
        "escaped",
        "thousands of stars",
        "nested prefixes",
        "long needles",
    ],
)
def test_no_file_makes_a_question_slow(body: bytes) -> None:
    # Measured 0.3 to 2.5 ms, and 0.4 s to parse; the bounds are generous to a busy machine.
    read = parse_robots(body, "skitter")
    began = time.process_time()
    for _ in range(10):
        read.decide(LONG_TARGET)
        read.decide("/" + "%61" * 680)
    assert time.process_time() - began < 1.0


def test_a_file_that_would_make_a_question_slow_gets_no_permission() -> None:
    read = parse_robots(hostile(b"Disallow: /*a*aaaaaaaaaaaaaaa*b%d"), "skitter")
    ruling = read.decide(LONG_TARGET)
    assert (ruling.allowed, "too many wildcards" in ruling.rule) == (False, True)
    assert ruling.line > 1
    assert read.decide("/something/else").allowed


def test_the_one_matching_rule_among_thousands_is_found() -> None:
    body = hostile(b"Disallow: /*a*a*%dz") + b"Disallow: /hidden"
    read = parse_robots(
        body[: MAX_BYTES - 100].rpartition(b"\n")[0] + b"\nDisallow: /*b*c$\nAllow: /q*\n", "skitter"
    )
    assert read.decide("/a-b-c").rule == "Disallow: /*b*c$"
    assert read.decide("/qaa77z").rule == "Disallow: /*a*a*77z"
    assert read.decide("/q").rule == "Allow: /q*"
