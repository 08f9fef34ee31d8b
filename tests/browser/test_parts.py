"""The parts of which pages are made, by themselves: charts, rows, numbers and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


@pytest.fixture
def blank(page: Page, server: Served) -> Page:
    """A page of the dashboard's own origin with nothing on it."""
    page.goto(server.url + "#/nowhere")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    return page


CHART = """async ([stacked, values]) => {
  const { TimeChart } = await import("/js/chart.js");
  const names = values[0].map((_, place) => `series ${place}`);
  const tints = names.map((_, place) => `series-${place + 1}`);
  const chart = new TimeChart({ title: "Made up", series: names, tints, words: (v) => `${v} units`, stacked });
  document.getElementById("main").replaceChildren(chart.element);
  chart.show(values.map((row, place) => ({ at: 1e9 + 60 * place, values: row })), 1e9, 1e9 + 60 * values.length);
}"""


def test_a_chart_leaves_gaps_open_and_is_read_with_arrow_keys(blank: Page) -> None:
    blank.evaluate(CHART, [False, [[1], [3], [None], [2], [7]]])
    expect(blank.locator("polyline")).to_have_count(2)
    picture = blank.get_by_role("img", name="Made up, 5 points")
    expect(picture).to_have_attribute("aria-label", re.compile("now series 0 7 units$"))
    picture.focus()
    blank.keyboard.press("ArrowLeft")
    blank.keyboard.press("ArrowLeft")
    expect(blank.locator(".readout b")).to_have_text("2 units")


def test_areas_lie_upon_each_other_up_to_the_sum(blank: Page) -> None:
    blank.evaluate(CHART, [True, [[1, 1], [2, 6]]])
    expect(blank.locator("polygon")).to_have_count(2)
    highest = "[...document.querySelectorAll('polygon')].map(e => e.getBBox().y)"
    lower, upper = blank.evaluate(highest)
    top = blank.evaluate("Math.min(...[...document.querySelectorAll('.rule')].map(e => e.getBBox().y))")
    assert upper == pytest.approx(top, abs=0.1)
    assert lower > upper


@pytest.mark.parametrize(("stacked", "shape"), [(False, "polyline.dot"), (True, "rect.area")])
def test_the_first_figures_of_a_crawl_are_seen_in_its_charts(blank: Page, stacked: bool, shape: str) -> None:
    blank.evaluate(CHART, [stacked, [[9]]])
    drawn = blank.locator(shape)
    expect(drawn).to_have_count(1)
    wide = "e => e.getBBox().width + parseFloat(getComputedStyle(e).strokeWidth) * (e.tagName == 'polyline')"
    assert drawn.evaluate(wide) >= 3


def test_marks_of_whole_numbers_are_whole_numbers(page: Page, own_server: Served) -> None:
    page.goto(own_server.url)
    axis = (
        "[...document.querySelectorAll('figure.chart')].map(f => [...f.querySelectorAll('text')].slice(0, 3)"
    )
    page.wait_for_function(f"{axis}.length).every(n => n === 3)")
    for marks in page.evaluate(f"{axis}.map(e => e.textContent))"):
        assert len(set(marks)) == 3, marks


def test_a_chart_of_nothing_is_drawn_too(blank: Page) -> None:
    blank.evaluate(CHART, [False, [[None]]])
    expect(blank.locator("svg .rule")).to_have_count(3)


def test_rows_that_did_not_change_keep_their_elements_and_the_focus(blank: Page) -> None:
    kept = """async () => {
      const { Rows, el, table } = await import("/js/dom.js");
      const { element, body } = table("Name", "Number#");
      document.getElementById("main").replaceChildren(element);
      const rows = new Rows(body, (one) => el("tr", {}, el("td", {}, el("button", { id: one.name }, one.name))));
      rows.show([{ name: "a" }, { name: "b" }, { name: "c" }], (one) => one.name);
      document.getElementById("b").focus();
      rows.show([{ name: "z" }, { name: "b" }, { name: "c", more: 1 }], (one) => one.name);
      return [document.activeElement.id, [...body.children].map((row) => row.textContent).join("")];
    }"""
    assert blank.evaluate(kept) == ["b", "zbc"]


WORDS: list[tuple[str, Any, str]] = [
    ("size", 0, "0 B"),
    ("size", 999, "999 B"),
    ("size", 1234, "1.2 kB"),
    ("size", 56_000_000, "56 MB"),
    ("seconds", 0.05, "50 ms"),
    ("seconds", 0.0001, "<1 ms"),
    ("seconds", 1.5, "1.5 s"),
    ("seconds", 90, "90 s"),
    ("seconds", 7000, "117 min"),
    ("seconds", 86_400, "24 h"),
    ("short", 9_999, "9,999"),
    ("short", 18_234, "18k"),
    ("short", 4_200_000, "4.2M"),
    ("rate", 0.01, "<0.1/s"),
    ("rate", 38.4, "38/s"),
    ("plain", "dead_letter", "dead letter"),
]


def test_numbers_have_units(blank: Page) -> None:
    said = "async ([call, given]) => (await import('/js/words.js'))[call](given)"
    assert [blank.evaluate(said, [call, given]) for call, given, _ in WORDS] == [words for *_, words in WORDS]
