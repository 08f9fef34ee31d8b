"""What holds on every page: tokens and roles, a server that goes away, themes, small screens, the keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.served import Served
from tests.browser.small_web import BROKEN, ENDLESS, WELL
from tests.browser.test_pages import host_page, url_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect
PLACES = {
    "overview": ("#/", "Workers and leases"),
    "hosts": ("#/hosts", WELL),
    "host": (host_page(BROKEN), "Latest requests"),
    "url": (url_page(f"{WELL}/three"), "word number 7"),
    "dead": ("#/dead", f"{BROKEN}/a"),
    "traps": ("#/traps", ENDLESS),
}


# -- tokens


def test_a_wrong_token_is_refused_and_a_right_one_kept_for_the_tab(
    page: Page, guarded_server: Served, complaints: list[str]
) -> None:
    page.goto(guarded_server.url + "#/hosts")
    page.locator("#secret").fill("some-other-long-token")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("The server does not know this token.")).to_be_visible()
    page.locator("#secret").fill("an-operators-long-token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=WELL)).to_be_visible()
    page.goto(guarded_server.url + host_page(WELL))
    page.reload()
    expect(page.get_by_role("button", name="Save policy")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert {"401" in said for said in complaints} == {True}
    complaints.clear()


def test_a_reader_sees_everything_and_no_button_that_is_not_theirs(
    page: Page, guarded_server: Served, complaints: list[str]
) -> None:
    page.goto(guarded_server.url)
    page.locator("#secret").fill("a-readers-long-token")
    page.keyboard.press("Enter")
    expect(page.locator("#politeness")).to_contain_text("0")
    for place, words in PLACES.values():
        page.goto(guarded_server.url + place)
        expect(page.locator("main")).to_contain_text(words)
        for name in ("Pause the crawl", "Add seeds", "Save policy", "Requeue", "Undo"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert {"401" in said for said in complaints} == {True}
    complaints.clear()


# -- a server that goes away


def test_a_restart_is_lived_through_and_no_typed_word_is_lost(
    page: Page, own_server: Served, complaints: list[str]
) -> None:
    page.goto(own_server.url + host_page(BROKEN))
    page.get_by_label("Pages at most").fill("77")
    own_server.stop()
    expect(page.locator("#link")).to_have_text("reconnecting")
    page.get_by_role("button", name="Save policy").click()
    expect(page.locator("#policy .answer")).to_contain_text("the server does not answer")
    own_server.start()
    expect(page.locator("#link")).to_have_text("live")
    expect(page.get_by_label("Pages at most")).to_have_value("77")
    page.get_by_role("button", name="Save policy").click()
    expect(page.locator("#in-force")).to_have_text("at most 77 pages")
    assert all("ERR_CONNECTION" in said or "ERR_EMPTY" in said for said in complaints)
    complaints.clear()


def test_figures_of_a_server_that_is_gone_are_greyed_and_say_how_old_they_are(
    page: Page, own_server: Served, complaints: list[str]
) -> None:
    page.goto(own_server.url)
    panel = page.locator("#headline")
    expect(panel).to_have_css("filter", "none")
    own_server.stop()
    expect(page.locator("#age")).to_contain_text("figures are ")
    expect(panel).to_have_css("filter", "grayscale(1)")
    expect(panel.locator(".sentence")).to_contain_text("Complete")
    own_server.start()
    expect(page.locator("#age")).to_be_hidden()
    expect(panel).to_have_css("filter", "none")
    assert all("ERR_CONNECTION" in said or "ERR_EMPTY" in said for said in complaints)
    complaints.clear()


# -- looks


@pytest.mark.parametrize("name", PLACES)
def test_every_page_fits_a_phone_and_every_control_can_be_reached(
    page: Page, server: Served, name: str
) -> None:
    place, words = PLACES[name]
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(server.url + place)
    expect(page.locator("main")).to_contain_text(words)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    controls = (
        "[...document.querySelectorAll('main :is(button, select, textarea, input:not([type=checkbox]))')]"
    )
    assert all(height >= 28 for height in page.evaluate(f"{controls}.map(e => e.offsetHeight)"))
    assert (
        page.evaluate(f"{controls}.filter(e => !e.labels.length && !e.ariaLabel && !e.innerText).length") == 0
    )


def test_the_theme_follows_the_system_until_somebody_chooses(browser: Browser, server: Served) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(server.url)
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.emulate_media(color_scheme="light")
    expect(root).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Theme: auto").click()
    page.get_by_role("button", name="Theme: light").click()
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_their_ground(
    page: Page, server: Served, theme: Literal["light", "dark"]
) -> None:
    """WCAG 2.2, 1.4.3: a contrast of 4.5 for text, by the colours' names."""
    page.emulate_media(color_scheme=theme)
    page.goto(server.url)
    pairs = [
        "ink panel",
        "ink-soft panel",
        "ink-soft ground",
        "accent panel",
        "on-accent accent",
        "good good-soft",
    ]
    pairs += [
        "warn warn-soft",
        "bad bad-soft",
        "odd odd-soft",
        "calm calm-soft",
        "ink sunken",
        "ink-soft sunken",
    ]
    contrast = """([one, other]) => {
      const light = (name) => {
        const value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
        const parts = [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16) / 255);
        const linear = parts.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
      };
      const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    }"""
    weak = {pair: found for pair in pairs if (found := page.evaluate(contrast, pair.split())) < 4.5}
    assert weak == {}


# -- the keyboard


def test_the_first_tab_leads_to_the_content_and_focus_is_seen(page: Page, server: Served) -> None:
    page.goto(server.url + "#/hosts")
    expect(page.get_by_role("link", name=WELL)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).boxShadow") != "none"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Search hosts")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("http://")


def test_a_page_that_does_not_exist_says_so(page: Page, server: Served) -> None:
    page.goto(server.url + "#/nowhere/%E0%A4%A")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    page.get_by_role("link", name="To the overview").click()
    expect(page.locator("#politeness")).to_be_visible()
