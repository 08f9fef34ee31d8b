"""What an operator sees and decides over the API, and that it holds at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skitter.settings import CrawlSettings, Settings
from tests.service.work_kit import SITE, working
from tests.service_kit import Service, running_service

HOST = "/v1/hosts/http:%2F%2F127.0.0.1:81"


def policy(service: Service, **decided: Any) -> Any:
    answer = service.call("PUT", f"{HOST}/policy", decided)
    assert answer.status == 200, answer
    (in_force,) = answer.json["hosts"]
    return in_force


# -- seeds


def test_of_seeds_the_new_the_known_and_the_refused_are_counted(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        urls = [
            f"{SITE}/a",
            f"{SITE}/a#b",
            "nothing",
            "ftp://127.0.0.1/",
            "https://example.org/",
            f"{SITE}/" + "x" * 3000,
        ]
        taken = service.post("/v1/seeds", {"urls": urls}).json
        assert (taken["accepted"], taken["duplicates_skipped"]) == (1, 1)
        reasons = {refused["url"][:20]: refused["reason"] for refused in taken["refused"]}
        assert len(taken["refused"]) == 4
        assert "contact" in reasons["https://example.org/"]
        assert "http or https" in reasons["nothing"]
        assert service.post("/v1/seeds", {"urls": urls[:1]}).json["duplicates_skipped"] == 1


def test_a_bare_domain_is_a_seed(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        assert service.post("/v1/seeds", {"urls": ["localhost/a"]}).json["accepted"] == 1
        assert service.get("/v1/explain?url=https://localhost/a").json["state"] == "queued"


@pytest.mark.parametrize(("priority", "meant"), [("high", 95), ("normal", 80), ("low", 30), (10, 10), (0, 0)])
def test_a_seed_is_as_urgent_as_it_was_said_to_be(tmp_path: Path, priority: object, meant: int) -> None:
    with running_service(tmp_path) as service:
        service.post("/v1/seeds", {"urls": [f"{SITE}/a"], "priority": priority})
        assert service.get(f"/v1/explain?url={SITE}/a").json["priority"] == meant


def test_a_priority_out_of_range_is_refused(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        for priority in (-1, 101, "urgent", None, 1.5):
            assert service.post("/v1/seeds", {"urls": [SITE], "priority": priority}).problem == "invalid"


# -- changes


def test_of_changed_pages_the_known_are_due_again_and_the_unknown_are_admitted(tmp_path: Path) -> None:
    with working(tmp_path, Settings()) as work:
        done, service = work.lease_page(), work.service
        work.result(done, content_type="text/html")
        told: dict[str, Any] = {
            "host": "127.0.0.1",
            "key": "abc",
            "urlList": [done["url"], f"{SITE}/never-seen"],
        }
        far = ["https://example.org/", "nothing"]
        answer = service.post("/v1/changed", {**told, "urlList": [*told["urlList"], *far]}).json
        assert (answer["due"], answer["added"], answer["refusals"]) == (1, 1, 2)
        assert {one["url"] for one in answer["refused"]} == set(far)
        again = service.post("/v1/changed", told).json
        assert (again["due"], again["added"], again["waiting"]) == (0, 0, 2)
        assert "told of as changed" in work.explain(f"{SITE}/never-seen")["found"]


def test_a_push_brings_nothing_in_that_is_out_of_scope(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        service.post("/v1/seeds", {"urls": [f"{SITE}/a"]})
        told = {"host": "other.test", "urlList": ["http://other.test/"]}
        answer = service.post("/v1/changed", told).json
        assert answer["added"] == 0
        assert answer["refused"][0]["reason"].startswith("scope")


# -- policies


def test_a_slower_pace_holds_from_the_next_lease_on(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        page = work.lease_page(*(f"{SITE}/{number}" for number in range(4)))
        assert page["crawl_delay_ms"] == 1000
        in_force = policy(work.service, rps=0.2)
        assert (in_force["delay"], in_force["policy"]["delay"]) == (5, 5)
        work.result(page)
        work.clock.advance(4.9)
        assert work.lease() == []
        work.clock.advance(0.1)
        (after,) = work.lease()
        assert after["crawl_delay_ms"] == 5000
        assert "policy" in work.service.get(HOST).json["delay_why"]


def test_a_blocked_host_is_left_alone_at_once_and_taken_up_again(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
        policy(work.service, blocked=True)
        assert work.result(page).json["status"] == "accepted"
        work.clock.advance(10)
        assert work.lease() == []
        assert work.service.get(HOST).json["standing"] == "blocked"
        policy(work.service)
        assert [task["url"] for task in work.lease()] == [f"{SITE}/b"]


def test_a_budget_stops_a_host_from_growing(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        page = work.lease_page()
        policy(work.service, budget=1)
        taken = work.result(page, extracted_urls=["b", "c"]).json
        assert (taken["new_urls_enqueued"], taken["urls_refused"]) == (0, 2)


def test_a_policy_replaces_the_one_before_and_can_be_read(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        policy(service, delay=3, rps=1, parallel=2)
        assert policy(service, verify_tls=False)["policy"]["delay"] is None
        (read,) = service.get(f"{HOST}/policy").json["hosts"]
        assert (read["policy"]["verify_tls"], read["delay"]) == (False, 1.0)


def test_a_bare_name_means_both_schemes(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        hosts = service.call("PUT", "/v1/hosts/example.org/policy", {"blocked": True}).json["hosts"]
        assert [one["host"] for one in hosts] == ["https://example.org", "http://example.org"]
        assert service.get("/v1/hosts/example.org").json["host"] == "https://example.org"


# -- hosts and URLs


def test_hosts_can_be_searched_and_filtered(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        work.seed(f"{SITE}/a", "http://127.0.0.1:82/", "http://127.0.0.2:83/")
        work.lease(batch_size=1)
        get = work.service.get
        assert len(get("/v1/hosts").json["hosts"]) == 3
        assert len(get("/v1/hosts?limit=2").json["hosts"]) == 2
        assert len(get("/v1/hosts?standing=active").json["hosts"]) == 1
        assert [one["host"] for one in get("/v1/hosts?search=0.2:83").json["hosts"]] == [
            "http://127.0.0.2:83"
        ]
        for wrong in ("limit=0", "limit=x", "standing=asleep", "unknown=1", "limit=1&limit=2"):
            assert get(f"/v1/hosts?{wrong}").problem == "invalid", wrong


def test_what_is_not_known_is_a_problem_that_says_so(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        for path, told in (
            ("/v1/hosts/example.org", "unknown-host"),
            ("/v1/hosts/http:%2F%2F%5B", "unknown-host"),
            ("/v1/hosts/example.org/robots", "unknown-host"),
            ("/v1/urls/" + "0" * 32, "unknown-url"),
            ("/v1/urls/nothing", "unknown-url"),
            ("/v1/urls/" + "0" * 32 + "/text", "unknown-url"),
        ):
            answer = service.get(path)
            assert (answer.status, answer.problem) == (404, told), path


def test_a_url_that_was_never_archived_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    with running_service(tmp_path) as service:
        service.post("/v1/seeds", {"urls": [f"{SITE}/a"]})
        key = service.get(f"/v1/explain?url={SITE}/a").json["key"]
        for part in ("text", "headers", "body"):
            assert service.get(f"/v1/urls/{key}/{part}").problem == "not-archived"


def test_explain_tells_of_unknown_urls_too(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        assert service.get(f"/v1/explain?url={SITE}/never").json["state"] == "unknown"
        assert "not an http" in service.get("/v1/explain?url=mailto:x").json["reason"]


# -- asked again, looked at again


def test_a_host_that_backs_off_is_asked_again_now(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        page = work.lease_page()
        work.fail(page)
        work.clock.advance(2)
        assert work.lease() == []
        (host,) = work.service.post(f"{HOST}/retry").json["hosts"]
        assert (host["host"], host["standing"], host["retries"]) == (SITE, "waiting", 1)
        assert [task["url"] for task in work.lease()] == [f"{SITE}/a"]
        assert work.service.post("/v1/hosts/nobody.test/retry").problem == "unknown-host"


def test_what_was_fetched_is_looked_at_again_by_url_by_host_or_all_of_it(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        for asked in ({"urls": [f"{SITE}/a"]}, {"host": SITE}, {"all": True}):
            work.result(work.lease_page() if asked == {"urls": [f"{SITE}/a"]} else work.lease()[0])
            work.clock.advance(1)
            assert work.service.post("/v1/refresh", asked).json == {"refreshed": 1, "not_refreshed": []}
            assert work.explain(f"{SITE}/a")["state"] == "queued"
        assert work.service.post("/v1/refresh", {}).json["refreshed"] == 0
        again = work.service.post("/v1/refresh", {"urls": [f"{SITE}/a"]}).json
        assert again == {"refreshed": 0, "not_refreshed": [{"url": f"{SITE}/a", "state": "queued"}]}


def test_a_refresh_that_names_an_unknown_url_queues_nothing(tmp_path: Path) -> None:
    with working(tmp_path, Settings(crawl=CrawlSettings(scope="any"))) as work:
        work.result(work.lease_page())
        told = work.service.post("/v1/refresh", {"urls": [f"{SITE}/a", f"{SITE}/never"]}).json
        assert told == {"refreshed": 0, "not_refreshed": [{"url": f"{SITE}/never", "state": "unknown"}]}
        assert work.explain(f"{SITE}/a")["state"] == "completed"
        assert work.service.post("/v1/refresh", {"host": "http://["}).problem == "unknown-host"


# -- settings


def test_settings_are_told_and_none_of_them_changes_without_a_part_that_takes_it_over(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        told = service.get("/v1/settings").json
        assert (told["settings"]["crawl"]["max_depth"], told["can_change"]) == (15, [])
        refused = service.call("PATCH", "/v1/settings", {"settings": {"crawl.max_depth": 3}})
        assert (refused.status, refused.problem) == (409, "needs-restart")
        for wrong, problem in (
            ({"crawl.nothing": 1}, "unknown-setting"),
            ({"nothing": 1}, "unknown-setting"),
            ({"hosts.a": 1}, "unknown-setting"),
            ({"crawl.max_depth": "x"}, "bad-setting"),
            ({}, "invalid"),
        ):
            assert service.call("PATCH", "/v1/settings", {"settings": wrong}).problem == problem, wrong


# -- signals


def test_signals_from_downstream_are_heard_for_known_hosts_and_all_or_none(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        service.post("/v1/seeds", {"urls": [f"{SITE}/a"]})
        told = [{"host": SITE, "useful": 1.0}, {"host": SITE, "path": "/old/", "useful": -1.0}]
        heard = service.post("/v1/signals", {"signals": told}).json["heard"]
        assert [(one["path"], one["worth"]) for one in heard] == [("", 0.3), ("/old/", -0.3)]
        refused = service.post("/v1/signals", {"signals": [*told, {"host": "nobody.test", "useful": 1}]})
        assert refused.status == 404
        again = service.post("/v1/signals", {"signals": told[:1]}).json["heard"]
        assert again[0]["worth"] == pytest.approx(0.51), "what came with an unknown host did not count"
        assert service.post("/v1/signals", {"signals": [{"host": SITE, "useful": 3}]}).status == 422
