"""A blocklist: what each line forbids, and what is said of a line that means nothing."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.urls.blocklist import BadLine, Blocklist, parse_blocklist

TEXT = """\ufeff# a list
example.org   # with what lies below
*.wild.test
||adblock.test^
0.0.0.0 hosts.test
127.0.0.1 localhost
::1 ip6-localhost
! a comment of another kind

BÜCHER.example
192.0.2.7
[2001:db8::1]
shop.test/cart
https://only.test/tls/*/print$
*/wp-login.php
/[?&]replytocom=\\d+/
/(?i)SECRET(.)\\1/
"""


@pytest.fixture(scope="module")
def blocklist() -> Blocklist:
    return parse_blocklist("list.txt", TEXT.splitlines())


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("example.org", "list.txt line 2: example.org"),
        ("a.b.example.org", "list.txt line 2: example.org"),
        ("wild.test", "list.txt line 3: wild.test"),
        ("x.adblock.test", "list.txt line 4: adblock.test"),
        ("hosts.test", "list.txt line 5: hosts.test"),
        ("xn--bcher-kva.example", "list.txt line 10: xn--bcher-kva.example"),
        ("192.0.2.7", "list.txt line 11: 192.0.2.7"),
        ("[2001:db8::1]", "list.txt line 12: [2001:db8::1]"),
    ],
)
def test_a_host_is_refused_with_its_subdomains_by_the_line_that_names_it(
    blocklist: Blocklist, host: str, line: str
) -> None:
    assert blocklist.line_of_host(host) == line


@pytest.mark.parametrize(
    "host",
    ["org", "notexample.org", "example.org.evil.test", "localhost", "ip6-localhost", "2.7", "shop.test", ""],
)
def test_no_other_host_is(blocklist: Blocklist, host: str) -> None:
    assert blocklist.line_of_host(host) == ""


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://shop.test/cart", 13),
        ("https://shop.test/cart/1?x", 13),
        ("https://only.test/tls/a/b/print", 14),
        ("http://any.test/blog/wp-login.php?x", 15),
        ("http://any.test/?a=1&replytocom=3", 16),
        ("http://any.test/secretxx", 17),
        ("http://shop.test/", 0),
        ("http://only.test/tls/a/print", 0),
        ("https://only.test/tls/a/print?x", 0),
        ("http://any.test/secretxy", 0),
        ("http://evil.test/?u=http://shop.test/cart", 0),
    ],
)
def test_a_url_is_refused_by_the_pattern_it_matches(blocklist: Blocklist, url: str, line: int) -> None:
    expected = f"list.txt line {line}: {TEXT.splitlines()[line - 1]}" if line else ""
    assert blocklist.line_of_url(url) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("two words", "no host"),
        ("exa*mple.org", "no host"),
        ("a..b@c", "no host"),
        ("example.org:8443", "no host"),
        ("\ufffd\ufffd\x1f\x8b", "no host"),
        ("/(/", "not a regular expression"),
    ],
)
def test_a_line_that_means_nothing_is_named(line: str, why: str) -> None:
    with pytest.raises(BadLine, match=rf"bad.txt line 3: .*{why}.*correct or remove it"):
        parse_blocklist("bad.txt", ["# fine", "fine.test", line])


@given(st.text(alphabet="abc.*$/", min_size=1, max_size=12), st.text(alphabet="abc./", max_size=14))
def test_a_pattern_matches_what_its_stars_say(pattern: str, rest: str) -> None:
    """Against the plain meaning, by trying every split."""
    found = parse_blocklist("l", ["h.test/" + pattern])
    assert bool(found.line_of_url("http://h.test/" + rest)) == _matches(pattern, rest)


def _matches(pattern: str, text: str) -> bool:
    if pattern == "$":
        return text == ""
    if not pattern:
        return True
    if pattern[0] == "*":
        return any(_matches(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
    return text.startswith(pattern[0]) and _matches(pattern[1:], text[1:])


def test_no_url_makes_a_pattern_slow() -> None:
    found = parse_blocklist("l", ["*a*a*a*a*a*b/", "h.test/" + "*a" * 20 + "$"])
    began = time.process_time()
    assert found.line_of_url("http://h.test/" + "a" * 2_000 + "/") == ""
    assert time.process_time() - began < 5


def test_a_hundred_thousand_hosts_take_twelve_bytes_each() -> None:
    rng = random.Random(1)
    names = [f"h{rng.randrange(10**9)}.test" for _ in range(100_000)]
    found = parse_blocklist("l", names)
    assert len(found.hosts) == 1_200_000
    for name in names[:1_000]:
        assert found.line_of_host("www." + name)
        assert not found.line_of_host("x" + name)
