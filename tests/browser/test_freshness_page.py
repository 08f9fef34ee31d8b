"""The page that says how fresh our copies are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.browser.kept_fresh import PAGES, RATES
from tests.browser.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def test_the_page_shows_what_is_expected_and_what_audits_found(page: Page, fresh_server: Served) -> None:
    told = fresh_server.call("GET", "/v1/freshness")
    expected, revisits = told["expected"], told["revisits"]
    assert expected["pages"] == PAGES * len(RATES)
    page.goto(fresh_server.url + "#/freshness")
    figures = page.locator(".figure")
    expect(figures.nth(0)).to_contain_text(percent(expected["expected"]))
    expect(figures.nth(0)).to_contain_text(f"audited {percent(expected['audited'])}")
    expect(figures.nth(1)).to_contain_text(f"{revisits['watched']} pages watched")
    expect(figures.nth(3)).to_contain_text(percent(1 - revisits["changed"] / revisits["visits"]))
    expect(figures.nth(3)).to_contain_text(f"of {revisits['visits']:,} visits")
    expect(page.locator("#tiers tbody tr")).to_have_count(len(expected["by_tier"]))
    stalest = page.locator("#stalest tbody tr")
    expect(stalest.first).to_contain_text("http://news.test")
    expect(page.locator("figure.chart")).to_have_count(6)
    expect(page.locator("figure.chart svg").first).to_have_attribute(
        "aria-label", re.compile("by importance")
    )
    stalest.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("http://news.test")


def test_the_past_is_shown_over_the_time_that_is_chosen(page: Page, fresh_server: Served) -> None:
    page.goto(fresh_server.url + "#/freshness")
    picture = page.locator("figure.chart svg").first
    expect(picture).to_have_attribute("aria-label", re.compile(r"by importance [\d.]+ %"))
    page.get_by_role("button", name="7 days").click()
    expect(page.get_by_role("button", name="7 days")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("figure.chart .line")).not_to_have_count(0)


def test_a_crawl_that_is_not_kept_fresh_says_so(page: Page, server: Served) -> None:
    page.goto(server.url + "#/freshness")
    expect(page.locator("#freshness-state")).to_contain_text("not kept fresh")
    expect(page.locator("figure.chart").first).to_be_hidden()
