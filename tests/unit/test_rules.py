"""Rules of what is in scope and what links mean: pure parts."""

from __future__ import annotations

import pytest

from skitter.model import Link, UrlKey
from skitter.settings import KeySettings
from skitter.settings.rules import SeedRule
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader
from skitter.urls.rewriting import Rewriting
from skitter.urls.seed_rules import SeedRules, surt_prefix


@pytest.mark.parametrize(
    ("prefix", "url", "covers"),
    [
        ("org,example,", "https://example.org/x", True),
        ("org,example,", "https://www.example.org/x", True),
        ("org,example,", "https://example.organ/x", False),
        ("org,example,)", "https://www.example.org/x", False),
        ("org,example,)/docs", "http://example.org/docs/a", True),
        ("org,example,)/docs", "http://example.org:8080/docsy", True),
        ("org,example,)/docs", "http://example.org/", False),
        ("http://(org,example,www,)/", "https://www.example.org/", True),
        ("ORG,Example", "https://example.org/", True),
    ],
)
def test_a_surt_prefix_is_a_host_with_those_below_it_or_a_path(prefix: str, url: str, covers: bool) -> None:
    assert surt_prefix(prefix).covers(url) is covers


@pytest.mark.parametrize("text", ["", ")", "/docs", "org,example,/docs", "http://("])
def test_what_is_no_surt_prefix_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no SURT prefix"):
        surt_prefix(text)


def test_the_narrowest_seed_governs() -> None:
    rules = SeedRules(
        {
            "https://a.test/docs/x.html": SeedRule(scope="prefix"),
            "https://a.test/": SeedRule(scope="host"),
            "https://www.b.test/": SeedRule(scope="domain"),
        },
        "host",
    )
    seeds = {
        url: (found.seed if (found := rules.governing(url)) else None)
        for url in ("https://a.test/docs/y", "https://a.test/other", "https://c.b.test/z", "https://d.test/")
    }
    assert [*seeds.values()] == [
        "https://a.test/docs/x.html",
        "https://a.test/",
        "https://www.b.test/",
        None,
    ]
    assert rules.are_for_host("https://c.b.test/")
    assert not rules.are_for_host("https://d.test/")


@pytest.mark.parametrize(
    ("rules", "url", "meant"),
    [
        ([r"^(https?://)m\. -> \1www."], "http://m.a.test/x", "http://www.a.test/x"),
        (["/print$ -> ", r"\?.* -> "], "http://a.test/x/print", "http://a.test/x"),
        (["^http: -> https:"], "http://a.test/", "https://a.test/"),
        (["^http:// -> nonsense"], "http://a.test/", "http://a.test/"),
        (["a -> b"], "http://c.test/", "http://c.test/"),
    ],
)
def test_a_link_means_what_the_rules_say(rules: list[str], url: str, meant: str) -> None:
    assert Rewriting(rules).meant(url) == meant
    keys = Keys(KeySettings())
    (found,) = LinkReader(keys, Rewriting(rules)).resolve("http://base.test/", [Link(url)])
    assert found is not None
    assert found[:2] == (meant, UrlKey(keys.key_of(meant)))


@pytest.mark.parametrize("rule", ["a", " -> b", "( -> b", r"a -> \9"])
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="is no rule"):
        Rewriting([rule])
