"""Sitemaps and feeds against the tests of crawler-commons, with the options that each was recorded with."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from skitter.parse.sitemaps.sitemap import Entry, Format, Limits, SitemapReader, pieces_of
from skitter.urls.canonical import host_of, normalise
from skitter.urls.sitemap_rules import absolute_loc, may_speak_for
from tests.corpora import corpus

_TYPES = {
    "XML": Format.SITEMAP,
    "INDEX": Format.INDEX,
    "TEXT": Format.TEXT,
    "RSS": Format.RSS,
    "ATOM": Format.ATOM,
}


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        (corpus("sitemaps-crawler-commons") / "sitemap_cases.json").read_text()
    )
    return found


def read(case: dict[str, Any]) -> tuple[SitemapReader, list[Entry]]:
    body = bytes.fromhex(case["content_hex"]) if "content_hex" in case else case["content"].encode()
    reader = SitemapReader(
        Limits(allow_doctype=case["allow_doctype"], strict_namespace=case["strict_namespace"])
    )
    entries = [entry for piece in pieces_of(body) for entry in reader.feed(piece)]
    return reader, entries + reader.close()


def test_all_54_of_crawler_commons_are_read_as_asked() -> None:
    everything = cases()
    wrong = [case["name"] for case in everything if not _is_as_asked(case)]
    assert len(everything) == 54
    assert wrong == []


def test_the_four_that_must_fail_say_why() -> None:
    failing = [case for case in cases() if case.get("expected_error")]
    assert len(failing) == 4
    assert all(read(case)[0].problem for case in failing)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_size_of_pieces_makes_no_difference(size: int) -> None:
    for case in cases():
        body = bytes.fromhex(case["content_hex"]) if "content_hex" in case else case["content"].encode()
        plain = b"".join(pieces_of(body))
        limits = Limits(allow_doctype=case["allow_doctype"], strict_namespace=case["strict_namespace"])
        reader = SitemapReader(limits)
        found = [
            e for at in range(0, len(plain), size) for e in reader.feed(plain[at : at + size])
        ] + reader.close()
        whole, entries = read(case)
        assert (found, reader.format) == (entries, whole.format), case["name"]


def _is_as_asked(case: dict[str, Any]) -> bool:
    reader, entries = read(case)
    if case.get("expected_error"):
        return bool(reader.problem)
    if reader.problem and not case["allow_partial"]:
        return False
    kept = [_told(case, entry) for entry in entries if not entry.is_alternate and _is_kept(case, entry)]
    asked = [{name: item.get(name) for name in kept[0]} for item in case["expected_items"]] if kept else []
    return (
        reader.format is _TYPES[case["expected_type"]]
        and kept == asked
        and bool(asked) == bool(case["expected_items"])
    )


def _is_kept(case: dict[str, Any], entry: Entry) -> bool:
    """Their strict parser drops what a sitemap of that place may not name; their indexes are never checked."""
    if case["expected_is_index"] or not case["strict"]:
        return True
    url = absolute_loc(entry.loc, case["url"])
    return url is not None and (
        case["expected_type"] in ("RSS", "ATOM") or may_speak_for(case["url"], url, host_of(url))
    )


def _told(case: dict[str, Any], entry: Entry) -> dict[str, Any]:
    at = None if entry.lastmod is None else datetime.fromtimestamp(entry.lastmod, UTC)
    told: dict[str, Any] = {
        "loc": absolute_loc(entry.loc, case["url"]),
        "lastmod": at and at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if not case["expected_is_index"]:
        told["changefreq"] = entry.changefreq.upper() or None
        told["priority"] = 0.5 if entry.priority is None else entry.priority
    assert normalise(told["loc"] or "") == told["loc"]
    return told
