"""Which URLs are one page: the rules of [keys], each by itself, and all of them at once."""

from __future__ import annotations

import random
from hashlib import sha256
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.settings import KeySettings
from skitter.urls.canonical import host_id, host_of, normalise, robots_url
from skitter.urls.keys import Keys, robots_key, tracking_parameters
from tests.keys import KEYS

EVERYTHING = KeySettings(
    drop_parameters=("q*",),
    keep_parameters=("gclid",),
    drop_empty=True,
    default_documents=("index.html", "default.asp"),
    trailing_slash=True,
    www=True,
    scheme=True,
)
PIECES = st.lists(
    st.sampled_from(
        "(S(0123456789abcdef01234567)) /(F(0123456789ab)A(0123456789ab))/ "
        "/ // . .. %2e %2E %7e %c3%A9 %25 %2 a B index.html INDEX.html default.asp ;jsessionid=1 ;sid= (S( )) ( "
        ";x=1 ; | ^ ` { } \\ % %7c "
        "? & = a= q1=2 utm_source=x gclid=1 sid=0123456789abcdef0123456789abcdef phpsessid + é".split()
    ),
    max_size=12,
)
HOSTS = st.sampled_from(
    ("http://h.org", "https://www.h.org", "http://www.www.h.org", "http://www.org", "https://h.org:80")
)


def form(url: str, settings: KeySettings | None = None) -> str:
    normalised = normalise(url)
    assert normalised is not None
    keys = KEYS if settings is None else Keys(settings)
    found = keys.form(normalised)
    assert keys.key_of(normalised) == keys.key_of(found)
    return found


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("http://h.org/%7euser/%c3%a9%2f", "http://h.org/~user/%C3%A9%2F"),
        ("http://h.org/?a=%7E%3d", "http://h.org/?a=~%3D"),
        ("http://h.org/%257e", "http://h.org/%257e"),
        ("http://h.org/a;jsessionid=0A1B.node2?b=1", "http://h.org/a?b=1"),
        ("http://h.org/a;jsessionid=1/b;x=2", "http://h.org/a/b;x=2"),
        ("http://h.org/a/..;jsessionid=1/b", "http://h.org/b"),
        ("http://h.org/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "http://h.org/a.aspx"),
        ("http://h.org/?PHPSESSID=1&a=2", "http://h.org/?a=2"),
        ("http://h.org/?ASPSESSIONIDQABC=1", "http://h.org/"),
        ("http://h.org/?sid=0123456789abcdef0123456789ABCDEF", "http://h.org/"),
        ("http://h.org/?sessid=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "http://h.org/"),
        ("http://h.org/?session_id=k2b3lq7rtf9v1m0c8n5x4d6s7a", "http://h.org/"),
        ("http://h.org/?b=1&a=2&", "http://h.org/?a=2&b=1"),
        ("http://h.org/?utm_content=x&UTM_anything=1&fbclid=2", "http://h.org/"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http://h.org./a", "http://h.org/a"),
        ("http://h.org/a|b?c|d", "http://h.org/a%7Cb?c%7Cd"),
        ("http://h.org/a^b?c^d", "http://h.org/a%5Eb?c%5Ed"),
        ("http://h.org/a`b?c`d", "http://h.org/a%60b?c%60d"),
        ("http://h.org/{a}?{c}", "http://h.org/%7Ba%7D?%7Bc%7D"),
        ("http://h.org/?a\\b", "http://h.org/?a%5Cb"),
        ("http://h.org/100%?c%", "http://h.org/100%25?c%25"),
        ("http://h.org/%%36%31?%4", "http://h.org/%2561?%254"),
        ("http://h.org/a?b=1;jsessionid=0A1B.node2", "http://h.org/a?b=1"),
        ("http://h.org/a?b=1;JSESSIONID=0A1B&c=2", "http://h.org/a?b=1&c=2"),
        ("http://h.org/a?;jsessionid=0A1B", "http://h.org/a"),
        ("http://h.org/a?b=1;%6asessionid=0A1B;x=2", "http://h.org/a?b=1;x=2"),
        ("http://h.org/a?b=1;sid=0123456789abcdef0123456789abcdef", "http://h.org/a?b=1"),
    ],
)
def test_what_makes_no_other_page_by_default(said: str, meant: str) -> None:
    assert form(said) == meant


@pytest.mark.parametrize(
    "url",
    [
        "http://h.org/?sid=42",
        "http://h.org/?session=0123456789abcdef0123456789abcdef",
        "http://h.org/?sid=black-friday-sale-of-2024",
        "http://h.org/?sid=507f1f77bcf86cd799439011",
        "http://h.org/?sid=123e4567-e89b-12d3-a456-426614174000",
        "http://h.org/?sid=11111111111111111111111111111111",
        "http://h.org/?sid=abcdefabcdefabcdefabcdefabcdefab",
        "http://h.org/?id=0123456789abcdef0123456789abcdef",
        "http://h.org/;sid=42",
        "http://h.org/?a=1;sid=42",
        "http://h.org/?a=1;jsessionids=2",
        "http://h.org/?a=1%3Bjsessionid=2",
        "http://h.org/?a;b;c",
        "http://h.org/a%27b",
        "http://h.org/a'b",
        "http://h.org/(S(x))/a",
        "http://h.org/a;v=1/b",
        "http://h.org/?from=z&ref=x&source=y",
        "http://h.org/index.html",
        "http://h.org/a/",
        "http://h.org/?a=",
        "https://www.h.org/",
    ],
)
def test_what_may_be_another_page_is_one_by_default(url: str) -> None:
    assert form(url) == url


@pytest.mark.parametrize(
    ("settings", "said", "meant"),
    [
        (KeySettings(default_documents=("index.html",)), "http://h.org/a/Index.HTML?b", "http://h.org/a/?b"),
        (KeySettings(trailing_slash=True), "http://h.org/a//", "http://h.org/a"),
        (KeySettings(trailing_slash=True), "http://h.org/", "http://h.org/"),
        (KeySettings(drop_empty=True), "http://h.org/?a=&b&c=1", "http://h.org/?b&c=1"),
        (KeySettings(www=True), "https://www.h.org:81/", "https://h.org:81/"),
        (KeySettings(www=True), "http://www.org/", "http://www.org/"),
        (KeySettings(scheme=True), "https://h.org/", "http://h.org/"),
        (KeySettings(scheme=True), "https://[::1]/", "http://[::1]/"),
        (KeySettings(scheme=True), "https://h.org:80/", "https://h.org:80/"),
        (KeySettings(tracking=False), "http://h.org/?utm_source=x", "http://h.org/?utm_source=x"),
        (KeySettings(sessions=False), "http://h.org/a;jsessionid=1", "http://h.org/a;jsessionid=1"),
        (KeySettings(sort_query=False), "http://h.org/?b&a", "http://h.org/?b&a"),
        (KeySettings(drop_parameters=("ref", "x_*")), "http://h.org/?Ref=1&x_y=2&y", "http://h.org/?y"),
        (KeySettings(keep_parameters=("gclid",)), "http://h.org/?gclid=1&dclid=2", "http://h.org/?gclid=1"),
    ],
)
def test_each_setting_folds_what_it_says(settings: KeySettings, said: str, meant: str) -> None:
    assert form(said, settings) == meant


@given(HOSTS, PIECES)
@pytest.mark.parametrize("settings", [KeySettings(), EVERYTHING, KeySettings(rules=1)])
def test_a_canonical_form_is_its_own(settings: KeySettings, host: str, pieces: list[str]) -> None:
    once = form(host + "/" + "".join(pieces), settings)
    again = normalise(once)
    assert again is not None
    assert form(again, settings) == once


def test_the_first_rules_give_the_keys_that_lie_on_disk() -> None:
    keys = Keys(KeySettings(rules=1, trailing_slash=True, www=True, default_documents=("index.html",)))
    known = {
        "http://example.org/": "755799b42ca4437cbf3828289c471d90",
        "http://example.org/a/?utm_source=x&b=2&a=1": "755799b42ca4437c2707a8ff8138de15",
        "https://www.example.org/%7e;jsessionid=1?srsltid=1": "05a6af3b9b76c98dbf788dc3511332af",
    }
    assert {url: keys.key_of(url).hex() for url in known} == known
    assert not keys.folds_hosts


def test_the_list_of_tracking_parameters_changes_only_with_the_number_of_the_rules() -> None:
    """Keys on disk were made with it: a name more or less would fetch what is known again, or lose it."""
    raw = files("skitter.urls").joinpath("tracking.txt").read_bytes()
    names = [line for line in raw.splitlines() if line and not line.startswith(b"#")]
    assert KeySettings().rules == 2
    assert sha256(b"\n".join(names)).hexdigest()[:16] == "2308786a541d9c65"
    assert len(names) == len(set(names)) == len(tracking_parameters())


def test_hosts_share_keys_only_where_they_are_folded() -> None:
    urls = ["http://h.org/a", "https://h.org/a", "http://www.h.org/a", "https://www.h.org/a"]
    assert len({KEYS.key_of(url) for url in urls}) == 4
    folding = Keys(KeySettings(www=True, scheme=True))
    assert folding.folds_hosts
    assert len({folding.key_of(url) for url in urls}) == 1
    assert {folding.prefix(host_of(url)) for url in urls} == {host_id("http://h.org")}
    assert len({robots_key(host_of(url)) for url in urls}) == 4
    assert KEYS.key_of(robots_url(host_of(urls[0]))) == robots_key(host_of(urls[0]))


def test_no_rule_takes_long_on_a_long_url() -> None:
    rng = random.Random(1)
    for piece in (";jsessionid=", "/(S(000000000000", "%2e", "sid=0&", "a" * 31, "www.", "/index.html"):
        path = piece * 5_000 + str(rng.random())
        for settings in (KeySettings(), EVERYTHING):
            assert form("http://h.org/" + path, settings)
