"""Fetch URLs and registrable domains against the suites of WPT, urlcanon and the Public Suffix List."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import ada_url
import pytest

from skitter.settings import KeySettings
from skitter.urls.canonical import normalise
from skitter.urls.keys import Keys
from skitter.urls.scope import registrable_domain
from tests.corpora import corpus


def cases_of(folder: str, name: str) -> list[dict[str, Any]]:
    found = json.loads((corpus(folder) / f"{name}.json").read_text())
    return [case for case in found if isinstance(case, dict)]


def without_last_dot(authority: str) -> str:
    """`site.test.` is `site.test` here: one server must not be two hosts. Browsers keep them apart."""
    return re.sub(r"(?<=[^.])\.(?=(:\d+)?$)", "", authority)


def fetch_url(case: dict[str, Any]) -> str | None:
    """What the case expects, without credentials, the host's last dot and fragment; None unless it is http(s)."""
    if case.get("failure") or case["protocol"] not in ("http:", "https:"):
        return None
    # `search` is empty both for no query and for an empty one, so the URL itself is cut.
    href: str = case["href"].partition("#")[0]
    scheme, _, rest = href.partition("//")
    authority, slash, path = rest.partition("/")
    return f"{scheme}//{without_last_dot(authority.rpartition('@')[2])}{slash}{path}"


def test_every_whatwg_case_gives_the_fetch_url_that_browsers_ask_for() -> None:
    cases = cases_of("url-wpt", "urltestdata")
    wrong = [
        (case["input"], case["base"], got, expected)
        for case in cases
        if (got := normalise(case["input"], case["base"])) != (expected := fetch_url(case))
    ]
    assert wrong == []
    assert len(cases) > 850
    assert sum(fetch_url(case) is not None for case in cases) > 240


def test_hosts_become_ascii_as_whatwg_says() -> None:
    wrong, checked = [], 0
    for name in ("toascii", "IdnaTestV2"):
        for case in cases_of("url-wpt", name):
            host = case["input"]
            if not host or any(char in host for char in "/?#\\@:[]\t\n\r"):
                continue  # these would end the host, or not be part of it
            checked += 1
            expected = f"http://{without_last_dot(case['output'])}/x" if case["output"] else None
            if normalise(f"http://{host}/x") != expected:
                wrong.append((host, normalise(f"http://{host}/x"), expected))
    assert wrong == []
    assert checked > 2500


def every_url() -> set[str]:
    """Whatever in the corpora can be read as a web address, by itself or on a page."""
    found = {case["input"] for case in cases_of("url-wpt", "urltestdata")}
    found |= {case["href"] for case in cases_of("url-wpt", "urltestdata") if "href" in case}
    for file in sorted(corpus("url-urlcanon").glob("*.json")):
        found |= set(_texts(json.loads(file.read_text())))
    urls = {normalise(text) or normalise(text, "http://example.org/a/b?c") for text in found}
    return {url for url in urls if url is not None}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def test_normalising_twice_changes_nothing_in_any_corpus() -> None:
    urls = every_url()
    assert {url: normalise(url) for url in urls} == {url: url for url in urls}
    assert len(urls) > 600


@pytest.mark.parametrize(
    "settings",
    [
        KeySettings(),
        KeySettings(rules=1),
        KeySettings(
            www=True,
            scheme=True,
            trailing_slash=True,
            drop_empty=True,
            default_documents=("index.html", "foo"),
        ),
    ],
)
def test_the_canonical_form_of_a_canonical_form_is_itself_in_every_corpus(settings: KeySettings) -> None:
    keys = Keys(settings)
    for url in every_url():
        form = keys.form(url)
        again = normalise(form)
        assert again is not None
        assert (keys.form(again), keys.key_of(again)) == (form, keys.key_of(url)), url


def test_dot_segments_are_resolved_in_all_cases_of_urlcanon() -> None:
    cases = json.loads((corpus("url-urlcanon") / "path_dots.json").read_text())["special"]
    wrong = {
        path: normalise(f"http://example.org{path}")
        for path, expected in cases.items()
        if normalise(f"http://example.org{path}") != str(ada_url.URL(f"http://example.org{expected}").href)
    }
    assert wrong == {}
    assert len(cases) > 50


def test_all_registrable_domains_of_the_public_suffix_list_are_found() -> None:
    wrong, checked = [], 0
    for case in cases_of("psl", "psl_tests"):
        host, expected = case["input"], case["expected_registrable"]
        url = normalise(f"http://{host}/") if host else None
        if url is None or host.startswith("."):
            continue  # not a host that a URL of ours can have
        checked += 1
        name = url[7:-1]
        # where nothing is registrable, the name stands for itself
        ascii_expected = str(normalise(f"http://{expected}/"))[7:-1] if expected else name
        if registrable_domain(name) != ascii_expected:
            wrong.append((host, registrable_domain(name), ascii_expected))
    assert wrong == []
    assert checked >= 70
