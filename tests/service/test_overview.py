"""The crawl at a glance over the API: a sentence, who works, what was fetched last, URLs by state."""

from __future__ import annotations

from pathlib import Path

import pytest

from skitter.settings import CrawlSettings, Settings
from tests.service.work_kit import SITE, Work, working
from tests.service_kit import running_service

ANY = Settings(crawl=CrawlSettings(scope="any"))


def test_the_headline_follows_the_crawl(tmp_path: Path) -> None:
    with working(tmp_path / "news", ANY) as work:
        found = work.service.get("/v1/crawl").json
        assert (found["name"], found["anchors"]) == ("news", [])
        assert found["headline"]["sentence"] == "Nothing to do yet: the crawl has no seeds."
        work.seed(f"{SITE}/a")
        (robots,) = work.lease()
        assert work.service.get("/v1/crawl").json["headline"]["doing"] == "crawling"
        work.result(robots, http_status=500)
        found = work.service.get("/v1/crawl").json
        assert found["headline"]["sentence"].startswith("Waiting: 1 host answers 500 to robots.txt; next at ")
        assert found["anchors"] == ["127.0.0.1:81/"]
        assert found["disk_used"] > 0
        work.service.post("/v1/crawl/pause")
        paused = work.service.get("/v1/crawl").json["headline"]
        assert (paused["doing"], paused["sentence"]) == ("paused", "Paused: by the operator; 1 URL queued.")


def test_workers_are_listed_also_when_they_have_nothing_to_do(work: Work) -> None:
    assert work.service.get("/v1/workers").json == {"workers": []}
    work.seed(f"{SITE}/a")
    work.lease()
    work.lease(worker_id="idler")
    rows = {row["worker"]: row for row in work.service.get("/v1/workers").json["workers"]}
    assert (rows["remote:w"]["doing"], rows["remote:w"]["hosts"], rows["remote:w"]["tasks"]) == (
        "working",
        1,
        1,
    )
    assert (rows["remote:idler"]["doing"], rows["remote:idler"]["hosts"]) == ("idle", 0)
    work.clock.advance(70)
    assert {row["doing"] for row in work.service.get("/v1/workers").json["workers"]} == {"silent"}


def test_the_latest_requests_are_told_with_their_urls_and_the_latest_failure_apart(work: Work) -> None:
    assert work.service.get("/v1/fetches").json == {"fetches": [], "last_failure": None}
    page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
    work.fail(page, detail="nobody there")
    found = work.service.get("/v1/fetches").json
    assert [one["url"] for one in found["fetches"]] == [page["url"], f"{SITE}/robots.txt"]
    assert (found["last_failure"]["failure"], found["last_failure"]["detail"]) == (
        "connect_refused",
        "nobody there",
    )
    assert len(work.service.get("/v1/fetches?limit=1").json["fetches"]) == 1


def test_urls_are_listed_by_state_by_kind_and_by_host(work: Work) -> None:
    page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
    work.seed("http://127.0.0.2:82/c")

    def listed(query: str) -> set[str]:
        return {one["url"] for one in work.service.get(f"/v1/urls?{query}").json["urls"]}

    assert listed("state=in_progress") == {page["url"]}
    work.fail(page)
    assert listed("state=failed") == listed("why=connect_refused") == {page["url"]}
    assert len(listed("state=queued")) == 2
    assert listed("host=127.0.0.2:82") == set()  # https is another host
    assert listed("host=http:%2F%2F127.0.0.2:82") == {"http://127.0.0.2:82/c"}
    assert work.service.get("/v1/urls?state=lost").problem == "invalid"
    assert work.service.get("/v1/urls?after=zz").problem == "invalid"


def test_a_list_of_urls_goes_on_where_it_ended(tmp_path: Path) -> None:
    with running_service(tmp_path, ANY) as service:
        wanted = {f"{SITE}/{number}" for number in range(25)}
        service.post("/v1/seeds", {"urls": sorted(wanted)})
        found: list[str] = []
        after = ""
        while True:
            part = service.get(f"/v1/urls?limit=10&after={after}").json
            found += [one["url"] for one in part["urls"]]
            after = part["after"]
            if not after:
                break
        assert sorted(found) == sorted(wanted)


def test_a_host_says_why_it_has_this_pace(work: Work) -> None:
    page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
    path = "/v1/hosts/http:%2F%2F127.0.0.1:81"
    pace = work.service.get(f"{path}/explain").json["pace"]
    assert pace == "It is asked every 1 s (politeness.delay)."
    work.fail(page)
    assert work.service.get(f"{path}/explain").json["pace"] == (
        "It is left alone for a while after 1 failure in a row (connect_refused)."
    )
    work.service.call("PUT", f"{path}/policy", {"blocked": True})
    blocked = work.service.get(f"{path}/explain").json["pace"]
    assert blocked == "It is not asked: the operator blocked it."


def test_what_is_left_is_told_with_its_band(tmp_path: Path) -> None:
    with working(tmp_path / "news", Settings()) as work:
        work.seed(*(f"{SITE}/{number}" for number in range(30)))
        found = work.service.get("/v1/estimate").json["estimate"]
        assert found["urls"][1] == 30
        low, likely, high = found["seconds"]
        assert likely == pytest.approx(30)
        assert low < likely < high
        assert found["hosts"][0]["host"] == SITE
        assert work.service.get("/v1/crawl").json["left"][1] == pytest.approx(30, abs=20)
