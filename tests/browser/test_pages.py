"""Every page and every form of the dashboard, in a browser, against a running server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.browser.served import Served
from tests.browser.small_web import BROKEN, CODE, DAYS, ENDLESS, HOSTILE, HOSTILE_URL, LOST, WELL

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect


def host_page(host: str) -> str:
    return f"#/hosts/{quote(host, safe='')}"


def url_page(url: str) -> str:
    return f"#/urls?url={quote(url, safe='')}"


# -- the overview


def test_the_overview_shows_what_the_server_counts(page: Page, server: Served) -> None:
    stats = server.call("GET", "/v1/stats")["stats"]
    page.goto(server.url)
    expect(page.locator("#link")).to_have_text("live")
    figures = page.locator(".figure")
    expect(figures.nth(0)).to_contain_text(f"{stats['pages']} pages from {stats['fetches']} requests")
    expect(page.locator("#politeness")).to_contain_text(f"0breachesin {stats['politeness']['gaps']} gaps")
    expect(page.locator("#politeness")).to_have_class(re.compile("good"))
    expect(page.locator("#alarms")).to_be_empty()
    legend = page.get_by_role("listitem")
    expect(legend.filter(has_text=re.compile(r"^denied1$"))).to_be_visible()
    page.get_by_role("button", name="24 h").click()
    expect(page.get_by_role("button", name="24 h")).to_have_attribute("aria-pressed", "true")


def test_the_crawl_is_paused_and_resumed_by_a_button(page: Page, server: Served) -> None:
    page.goto(server.url)
    page.get_by_role("button", name="Pause the crawl").click()
    expect(page.locator("#link")).to_have_text("paused")
    assert server.call("GET", "/v1/stats")["paused"] is True
    page.get_by_role("button", name="Resume the crawl").click()
    expect(page.locator("#link")).to_have_text("live")
    assert server.call("GET", "/v1/stats")["paused"] is False


def test_seeds_are_told_apart_into_accepted_known_and_refused(page: Page, server: Served) -> None:
    page.goto(server.url)
    page.get_by_label("URLs, one a line").fill(f"{WELL}/seeded\n\n{WELL}/\nftp://{CODE}\n")
    page.get_by_label("Priority").select_option("high")
    page.get_by_role("button", name="Add seeds").click()
    answer = page.locator("#seeding .answer")
    expect(answer).to_contain_text("1 URL accepted, 1 known already, 1 refused.")
    expect(answer.get_by_role("listitem")).to_contain_text(f"ftp://{CODE}")
    expect(page.get_by_label("URLs, one a line")).to_have_value(f"ftp://{CODE}")
    assert server.call("GET", f"/v1/explain?url={WELL}/seeded")["state"] == "queued"
    assert page.evaluate("window.pwned") is None


def leased(server: Served, host: str, worker: str, tasks: int) -> list[dict[str, Any]]:
    """Work for a host, asked for until there is some: hosts rest when a server begins."""
    asked = {"worker_id": worker, "batch_size": tasks, "tasks_per_host": tasks}
    while True:
        given = server.call("POST", "/v1/tasks/lease", asked)
        if found := [{**task, "now": given["now"]} for task in given["tasks"] if task["host"] == host]:
            return found
        assert not given["finished"]


def test_leases_failures_and_breaches_show_up_while_they_happen(page: Page, own_server: Served) -> None:
    page.goto(own_server.url)
    expect(page.locator("#workers")).to_contain_text("No lease is out")
    expect(page.locator("#errors")).to_contain_text("No failures lately.")
    page.goto(own_server.url + "#/dead")
    page.get_by_role("button", name="Requeue all").click()
    page.get_by_role("dialog").get_by_role("button", name="Requeue all").click()
    expect(page.get_by_text("5 URLs are queued again.")).to_be_visible()
    tasks = leased(own_server, BROKEN, "an-impatient-worker", 3)
    page.goto(own_server.url)
    lease = page.locator("#workers tbody tr").filter(has_text=BROKEN)
    expect(lease).to_contain_text("an-impatient-worker")
    for number, task in enumerate(tasks):  # 10 ms apart, where 50 are asked for
        sent = task["now"] + number / 100
        told = {"error": "stalled", "detail": CODE, "sent_at": sent, "ended_at": sent}
        own_server.call("POST", f"/v1/tasks/{task['task_id']}/fail", told)
    row = page.locator("#errors tbody tr")
    expect(row).to_contain_text(BROKEN)
    expect(row.locator("td").first).to_have_text("3")
    expect(page.get_by_role("columnheader", name="stalled")).to_be_visible()
    expect(page.locator("#alarms")).to_contain_text("2 breaches of politeness")
    expect(page.locator("#politeness")).to_have_class(re.compile("bad"))
    page.goto(own_server.url + host_page(BROKEN))
    expect(page.locator("#fetches tbody tr").first).to_contain_text(CODE)
    expect(page.locator("#alarms")).to_contain_text("2 breaches of politeness")
    assert page.evaluate("window.pwned") is None


# -- hosts


def test_hosts_are_searched_and_filtered_and_the_address_remembers_it(page: Page, server: Served) -> None:
    page.goto(server.url + "#/hosts")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(5)
    page.get_by_label("Search hosts").fill("hostile")
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    page.get_by_label("Search hosts").fill("nobody")
    expect(page.get_by_text("No host matches this filter.")).to_be_visible()
    page.get_by_label("Search hosts").fill("")
    page.get_by_label("Standing").select_option("active")
    expect(page.get_by_text("No host matches this filter.")).to_be_visible()
    page.get_by_label("Standing").select_option("")
    page.get_by_role("link", name=WELL).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(WELL)
    page.go_back()
    expect(rows).to_have_count(5)


def test_a_host_page_shows_robots_delay_and_requests(page: Page, server: Served) -> None:
    page.goto(server.url + host_page(WELL))
    expect(page.locator("#standing")).to_contain_text("politeness.delay")
    expect(page.locator("#robots pre")).to_have_text("User-agent: *\nDisallow: /private/\n")
    requests = page.locator("#fetches tbody tr")
    expect(requests).to_have_count(5)
    expect(requests.last).to_contain_text("/robots.txt")
    expect(page.locator("#fetches time").first).to_have_attribute("title", re.compile(r"\(20\d\d-.*Z\)$"))
    requests.first.get_by_role("link").click()
    expect(page.locator("#decision")).to_contain_text("completed")


def test_a_policy_takes_effect_at_once_and_the_page_shows_it(page: Page, server: Served) -> None:
    page.goto(server.url + host_page(HOSTILE))
    expect(page.locator("#delay")).to_have_text("50 ms")
    page.get_by_label("or requests a second").fill("0.2")
    expect(page.get_by_label("Seconds between requests")).to_have_value("5")
    page.get_by_label("Requests in flight").fill("2")
    page.get_by_label("Pages at most").fill("12")
    page.get_by_role("button", name="Save policy").click()
    answer = page.locator("#policy .answer")
    expect(answer).to_contain_text("was 50 ms (politeness.delay) and is now 5 s (the operator's policy)")
    expect(page.locator("#delay")).to_have_text("5 s")
    expect(page.locator("#in-force")).to_have_text("a request every 5 s, 2 in flight, at most 12 pages")
    page.get_by_label("Do not contact this host").check()
    page.get_by_role("button", name="Save policy").click()
    expect(page.locator("#standing .pill")).to_have_text("blocked")
    found = server.call("GET", f"/v1/hosts/{quote(HOSTILE, safe='')}/explain")["view"]
    assert (found["delay"], found["standing"]) == (5, "blocked")
    page.reload()
    expect(page.get_by_label("Pages at most")).to_have_value("12")


def test_a_host_nobody_knows_is_said_to_be_unknown(page: Page, server: Served, complaints: list[str]) -> None:
    page.goto(server.url + host_page("http://nobody.test"))
    expect(page.locator("#standing .fault")).to_contain_text("does not know such a host")
    expect(page.locator("#robots")).to_contain_text("Nothing is known of it.")
    assert {"404" in said for said in complaints} == {True}
    complaints.clear()


# -- one URL


def test_a_url_page_explains_all_of_it(page: Page, server: Served) -> None:
    page.goto(server.url + "#/urls")
    page.get_by_label("URL", exact=True).fill(f"{WELL}/three")
    page.get_by_role("button", name="Explain").click()
    expect(page).to_have_url(server.url + url_page(f"{WELL}/three"))
    decision = page.locator("#decision")
    for words in ("completed", "The third page", "allowed, no rule matches", "text/html"):
        expect(decision).to_contain_text(words)
    expect(page.locator("#trail li")).to_have_text([f"{WELL}/", f"{WELL}/one", f"{WELL}/three"])
    expect(page.locator("#requests tbody tr")).to_have_count(1)
    expect(page.locator("#copy-headers pre")).to_contain_text("Content-Type: text/html")
    expect(page.locator("#copy-text pre")).to_contain_text("The third page says word number 7.")


def test_a_url_that_robots_deny_names_the_line(page: Page, server: Served) -> None:
    page.goto(server.url + url_page(f"{WELL}/private/diary"))
    expect(page.locator("#decision")).to_contain_text("denied by line 2: Disallow: /private/")
    expect(page.locator("#requests")).to_contain_text("It was not requested yet.")


def test_a_url_nobody_named_is_explained_too(page: Page, server: Served) -> None:
    page.goto(server.url + url_page("http://elsewhere.test/"))
    expect(page.locator("#decision")).to_contain_text("no seed and no page crawled so far named it")


# -- dead letters


def test_a_dead_letter_is_requeued_after_a_question(page: Page, server: Served) -> None:
    page.goto(server.url + "#/dead")
    rows = page.locator("tbody tr")
    row = rows.filter(has_text=f"{BROKEN}/b")
    row.get_by_role("button").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert server.call("GET", f"/v1/explain?url={BROKEN}/b")["state"] == "dead_letter"
    row.get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name="Requeue").click()
    expect(page.get_by_text("1 URL is queued again.")).to_be_visible()
    expect(row).to_have_count(0)
    assert server.call("GET", f"/v1/explain?url={BROKEN}/b")["state"] == "queued"


def test_dead_letters_of_a_host_are_requeued_together(page: Page, server: Served) -> None:
    page.goto(server.url + f"#/dead?host={quote(WELL, safe='')}")
    expect(page.get_by_text("This host has no dead letters.")).to_be_visible()
    page.get_by_label("Host").fill(LOST)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Requeue all of this host").click()
    page.get_by_role("dialog").get_by_role("button", name="Requeue all").click()
    expect(page.get_by_text("2 URLs are queued again.")).to_be_visible()
    expect(page.get_by_text("This host has no dead letters.")).to_be_visible()
    assert server.call("GET", f"/v1/explain?url={LOST}/x")["state"] == "queued"


# -- traps


def test_a_trap_is_shown_with_its_evidence_and_undone(page: Page, server: Served) -> None:
    (trap,) = server.call("GET", "/v1/traps")["traps"]
    assert 0 < trap["refused"] < DAYS
    page.goto(server.url + "#/traps")
    row = page.locator("tbody tr")
    for words in (ENDLESS, "/day/", trap["why"], trap["examples"][0]):
        expect(row).to_contain_text(words)
    row.get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo the verdict").click()
    expect(page.get_by_text(f"{trap['refused']} URLs are queued again.")).to_be_visible()
    expect(row.locator(".pill")).to_have_text("undone by the operator")
    expect(row.get_by_role("button")).to_have_count(0)
    host = server.call("GET", f"/v1/hosts/{quote(ENDLESS, safe='')}/explain")
    assert host["view"]["queued"] == trap["refused"]


# -- what the web says


@pytest.mark.parametrize("place", ["url", "copy", "host", "list"])
def test_words_of_a_hostile_page_are_shown_and_never_act(page: Page, server: Served, place: str) -> None:
    where = {
        "url": url_page(HOSTILE_URL),
        "copy": url_page(f"{HOSTILE}/"),
        "host": host_page(HOSTILE),
        "list": "#/hosts",
    }
    page.goto(server.url + where[place])
    shown = {"url": "#decision", "copy": "#copy-text pre", "host": "#robots pre", "list": "main"}
    expect(page.locator(shown[place])).to_contain_text(HOSTILE if place == "list" else CODE)
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script, main iframe").count() == 0


def test_only_http_links_lead_out(page: Page, server: Served) -> None:
    page.goto(server.url)
    made = "async (url) => (await import('/js/dom.js')).outside(url).tagName"
    assert page.evaluate(made, "https://example.org/") == "A"
    for url in ("javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:alert(1)"):
        assert page.evaluate(made, url) == "SPAN"


# -- the crawl at a glance


def test_one_sentence_on_top_says_how_the_crawl_does(page: Page, own_server: Served) -> None:
    page.goto(own_server.url)
    sentence = page.locator("#headline .sentence")
    expect(sentence).to_have_text(own_server.call("GET", "/v1/crawl")["headline"]["sentence"])
    expect(sentence).to_contain_text("Complete but for 5 dead letters and")
    expect(page.locator("#headline .about")).to_contain_text("crawlseeds: broken.test/, well.test/")
    page.get_by_role("button", name="Pause the crawl").click()
    expect(sentence).to_contain_text("Paused: by the operator")


def test_every_worker_has_a_row_also_when_it_is_idle(page: Page, own_server: Served) -> None:
    own_server.call("POST", "/v1/tasks/lease", {"worker_id": "an-idle-worker"})
    page.goto(own_server.url)
    row = page.locator("#workers tbody tr").filter(has_text="an-idle-worker")
    expect(row).to_contain_text("idle")


def test_figures_lead_to_lists_of_what_they_count(page: Page, own_server: Served) -> None:
    page.goto(own_server.url)
    page.get_by_role("link", name="denied", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("URLs denied")
    row = page.locator("#list tbody tr")
    expect(row).to_have_count(1)
    row.get_by_role("link").click()
    expect(page.locator("#decision")).to_contain_text(f"{WELL}/private/diary")
    page.goto(own_server.url + "#/urls?why=server_error")
    expect(page.locator("#list tbody tr")).to_have_count(5)
    page.goto(own_server.url + f"#/urls?host={quote(WELL, safe='')}&state=gone")
    expect(page.get_by_text("There are none.")).to_be_visible()


def test_what_was_fetched_last_is_listed_and_its_kind_of_failure_leads_on(
    page: Page, own_server: Served
) -> None:
    own_server.call("POST", "/v1/dead-letters/requeue", {"host": BROKEN})
    (task,) = leased(own_server, BROKEN, "a-worker", 1)
    own_server.call("POST", f"/v1/tasks/{task['task_id']}/fail", {"error": "stalled", "detail": CODE})
    page.goto(own_server.url)
    last = page.locator("#last tbody tr").first
    expect(last).to_contain_text(task["url"])
    expect(last).to_contain_text(CODE)
    page.get_by_role("link", name="stalled").click()
    expect(page.locator("#list tbody tr")).to_contain_text(task["url"])
    assert page.evaluate("window.pwned") is None


def test_a_host_says_why_it_has_its_pace_and_is_asked_again_by_a_button(
    page: Page, own_server: Served
) -> None:
    own_server.call("POST", "/v1/dead-letters/requeue", {"host": BROKEN})
    (task,) = leased(own_server, BROKEN, "a-worker", 1)
    own_server.call("POST", f"/v1/tasks/{task['task_id']}/fail", {"error": "stalled"})
    page.goto(own_server.url + host_page(BROKEN))
    pace = page.locator("#pace")
    expect(pace).to_contain_text("It is left alone for a while after 1 failure in a row (stalled).")
    expect(pace.locator("svg")).to_be_visible()
    page.get_by_role("button", name="Ask it again now").click()
    expect(page.locator("#notices")).to_contain_text(
        f"{BROKEN} waits for nothing but its delay: 3 URLs queued"
    )
    expect(pace).to_contain_text("It is asked every 0.05 s (politeness.delay)")


def test_charts_begin_with_the_crawl_and_not_a_quarter_of_an_hour_before(
    page: Page, own_server: Served
) -> None:
    page.goto(own_server.url)
    expect(page.get_by_role("button", name="15 min")).to_have_attribute("aria-pressed", "true")
    # marks every ten or thirty seconds: the chart spans the minute that there is
    marks = page.locator("figure.chart text").filter(has_text=re.compile(r"^\d\d:\d\d:\d\d$"))
    expect(marks.first).to_be_visible()
