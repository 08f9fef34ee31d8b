"""Link extraction against another crawler's recorded cases, as far as they are about what is followed."""

from __future__ import annotations

import json
from typing import Any

import ada_url

from skitter.parse.page import read_page
from tests.corpora import corpus

# Options of that extractor which choose among links: here the frontier's scope does, or nothing does. What
# they let through must still be among what we find.
CHOOSING = frozenset(
    "allow deny allow_domains deny_domains restrict_text restrict_xpaths restrict_css unique".split()
)
# Not about what a crawler follows, or decided elsewhere here: `canonicalize` is the dedup key's business
# (urls), `process_value` runs code on javascript: links, and the rest name other elements than those that are
# links in HTML.
OTHER = frozenset("canonicalize process_value tags attrs deny_tags deny_attrs".split())
ELSEWHERE = {
    "test_ignored_extensions": "path endings are refused at admission, where settings say which",
    "test_ftp_links": "only http and https are fetched",
}


def all_cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        (corpus("links-scrapy") / "link_extractor_cases.json").read_text()
    )
    assert len(found) == 59
    return found


def options(case: dict[str, Any]) -> set[str]:
    return set(case["config"]["kwargs"])


def normal(url: str) -> str:
    return str(ada_url.URL(url).href).partition("#")[0]


def resolved(base: str, href: str) -> str:
    try:
        return str(ada_url.join_url(base, href))
    except ValueError:
        return ""


def extracted(case: dict[str, Any]) -> list[tuple[str, str, bool]]:
    declared = case["declared_encoding"]
    content_type = f"text/html; charset={declared}" if declared else "text/html"
    page = read_page(bytes.fromhex(case["body_hex"]), url=case["url"], content_type=content_type)
    found: dict[str, tuple[str, str, bool]] = {}
    for link in page.links:
        url = resolved(page.base, link.href)
        if url:
            found.setdefault(url, (url, link.text, "nofollow" in link.rel.split()))
    return list(found.values())


def expected(case: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """One link a resource: that extractor keeps `page` and `page#part` apart, a crawler fetches one."""
    found: dict[str, tuple[str, str, bool]] = {}
    for link in case["expected"]:
        url = normal(link["url"])
        found.setdefault(url, (url, link["text"], link["nofollow"]))
    return list(found.values())


def test_every_link_of_a_page_is_found_once_with_its_text_and_rel() -> None:
    whole = [case for case in all_cases() if not options(case) and case["test"] not in ELSEWHERE]
    assert len(whole) == 14
    # Areas come after anchors here; otherwise the order is the page's.
    wrong = [
        (case["test"], extracted(case)) for case in whole if sorted(extracted(case)) != sorted(expected(case))
    ]
    assert wrong == []


def test_every_link_that_a_choice_lets_through_is_found() -> None:
    chosen = [case for case in all_cases() if options(case) and options(case) <= CHOOSING]
    assert len(chosen) == 21
    wrong = [
        (case["test"], extracted(case)) for case in chosen if not set(expected(case)) <= set(extracted(case))
    ]
    assert wrong == []


def test_the_cases_left_out_are_those_that_are_not_about_following() -> None:
    left_out = [case for case in all_cases() if options(case) - CHOOSING or case["test"] in ELSEWHERE]
    assert len(left_out) == 59 - 14 - 21
    assert all(options(case) & OTHER or case["test"] in ELSEWHERE for case in left_out)


def test_links_of_other_schemes_are_not_followed() -> None:
    assert [extracted(case) for case in all_cases() if case["test"] == "test_ftp_links"] == [[]]
