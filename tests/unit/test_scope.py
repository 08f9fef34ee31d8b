"""Which URLs belong to a crawl, and the rule that said so."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.model import Discovered, Refusal, Via
from skitter.settings import CrawlSettings
from skitter.urls.canonical import host_of
from skitter.urls.scope import SCOPES, Scope, anchors_of, registrable_domain
from tests.keys import key_of


def found(url: str, *, depth: int = 1, via: Via = Via.LINK, hops: int = 0) -> Discovered:
    return Discovered(url=url, key=key_of(url), host=host_of(url), depth=depth, via=via, hops=hops)


def in_scope(kind: str, seed: str, url: str) -> bool:
    wanted = Scope(CrawlSettings(scope=kind), 5).anchors_for(url)
    return not wanted or not set(wanted).isdisjoint(anchors_of(seed))


SEED = "https://www.example.co.uk/docs/intro?x=/y/"


@pytest.mark.parametrize(
    ("url", "scopes"),
    [
        ("https://www.example.co.uk/docs/", "prefix host domain any"),
        ("https://www.example.co.uk/docs/deep/er?q", "prefix host domain any"),
        ("http://www.example.co.uk/docs/page", "prefix host domain any"),
        ("https://www.example.co.uk/", "host domain any"),
        ("https://www.example.co.uk/docs", "host domain any"),
        ("https://www.example.co.uk/docsother/", "host domain any"),
        ("https://www.example.co.uk/Docs/", "host domain any"),
        ("https://example.co.uk/docs/", "domain any"),
        ("https://www.example.co.uk:8443/docs/", "domain any"),
        ("https://other.co.uk/docs/", "any"),
        ("https://www.example.co.uk.evil.org/docs/", "any"),
        ("https://notexample.co.uk/", "any"),
    ],
)
def test_a_url_is_in_the_scopes_that_its_seed_opens(url: str, scopes: str) -> None:
    assert [kind for kind in SCOPES if in_scope(kind, SEED, url)] == [
        kind for kind in SCOPES if kind in scopes.split()
    ]


@pytest.mark.parametrize(
    ("authority", "domain"),
    [
        ("www.example.co.uk:8080", "example.co.uk"),
        ("a.b.example.org.", "example.org"),
        ("user.github.io", "user.github.io"),
        ("co.uk", "co.uk"),
        ("localhost:8080", "localhost"),
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:8080", "192.0.2.7:8080"),
        ("[2001:db8::1]:8080", "[2001:db8::1]:8080"),
        ("WWW.Example.CO.UK", "example.co.uk"),
        ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
        ("a.b.xn--fiqs8s", "b.xn--fiqs8s"),
        ("h.unlisted-suffix", "h.unlisted-suffix"),
        ("a.h.unlisted-suffix", "h.unlisted-suffix"),
    ],
)
def test_the_registrable_domain_is_the_suffix_and_one_label(authority: str, domain: str) -> None:
    assert registrable_domain(authority) == domain


def test_two_addresses_are_never_one_domain() -> None:
    assert not in_scope("domain", "http://192.0.2.7/", "http://198.51.0.7/")
    assert not in_scope("domain", "http://[2001:db8::1]/", "http://[2001:db8::2]/")


def refused(url: str, settings: CrawlSettings, **kwargs: object) -> tuple[Refusal, str] | None:
    return Scope(settings, 5).refusal(found(url, **kwargs))  # type: ignore[arg-type]


def test_a_rule_that_refuses_names_itself_and_its_value() -> None:
    settings = CrawlSettings(max_url_length=40, max_depth=3, exclude=("/private",), include=("/a", "/p"))
    long = refused("http://h.org/a" + "x" * 40, settings)
    assert long == (Refusal.LENGTH, "54 characters, crawl.max_url_length is 40")
    assert refused("http://h.org/a", settings, depth=4) == (
        Refusal.DEPTH,
        "4 links from a seed, crawl.max_depth is 3",
    )
    assert refused("http://h.org/private", settings) == (Refusal.EXCLUDED, "matches exclude '/private'")
    assert refused("http://h.org/b", settings) == (Refusal.EXCLUDED, "matches none of the include patterns")
    assert refused("http://h.org/a.JPG?x", settings) == (
        Refusal.EXTENSION,
        ".jpg is in crawl.skip_extensions",
    )
    assert refused("http://h.org/a", settings, via=Via.REDIRECT, hops=6) == (
        Refusal.REDIRECTS,
        "6 redirects in a row, fetch.max_redirects is 5",
    )
    assert refused("http://h.org/a", settings, depth=3, hops=5) is None


def test_a_seed_is_exempt_from_depth_and_patterns_but_not_from_length() -> None:
    settings = CrawlSettings(max_url_length=30, max_depth=0, exclude=("h",), include=("x",))
    assert refused("http://h.org/a.zip", settings, depth=9, via=Via.SEED) is None
    assert refused("http://h.org/" + "a" * 30, settings, via=Via.SEED) is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://photos.jpg/",
        "http://h.zip/",
        "http://h.org/a.jpg/page",
        "http://h.org/zip",
        "http://h.org/a.zipped",
        "http://h.org/page?file=a.jpg&b=1",
        "http://h.org/v1.7",
    ],
)
def test_only_the_end_of_a_path_is_an_extension(url: str) -> None:
    assert refused(url, CrawlSettings()) is None


def test_no_skipped_extensions_means_none() -> None:
    assert refused("http://h.org/a.jpg", CrawlSettings(skip_extensions=())) is None


def test_the_refusal_of_an_outsider_says_what_no_seed_has() -> None:
    for kind, named in (("host", "host"), ("domain", "registrable domain"), ("prefix", "host and path")):
        reason, rule = Scope(CrawlSettings(scope=kind), 5).outside("http://h.org/a")
        assert reason is Refusal.SCOPE
        assert rule == f"scope is {kind} and no seed has this {named} (h.org)"


@given(
    st.lists(st.sampled_from(["zip", "GZ", "tar.gz", "", "s", "ß", "z?p", "a/b"]), unique=True),
    st.lists(
        st.sampled_from([*"./?&", "zip", "ZIP", "gz", "tar.gz", "s", "\u017f", "ß", "html", "z?p", "a/b"])
    ),
)
def test_a_url_is_skipped_for_its_ending_whatever_is_looked_at_first(
    endings: list[str], parts: list[str]
) -> None:
    url = "http://www.zip/" + "".join(parts)
    pattern = "|".join(re.escape(ending) for ending in endings)
    skipped = pattern and re.compile(rf"\.({pattern})(?:\?|\Z)", re.IGNORECASE).search(url, 14)
    scope = Scope(CrawlSettings(skip_extensions=tuple(endings)), 5)
    assert scope.passes(url) == (not skipped)
