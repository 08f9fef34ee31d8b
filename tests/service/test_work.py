"""Work over the API: what a worker of anybody's making can rely on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from skitter.service.http.access import Access, Role
from skitter.settings import CrawlSettings, RetrySettings, Settings
from tests.service.work_kit import SITE, START, Work, working
from tests.service_kit import running_service

# -- leasing


def test_a_hosts_first_task_is_its_robots_txt(work: Work) -> None:
    work.seed(f"{SITE}/a", f"{SITE}/b")
    (task,) = work.lease()
    assert (task["kind"], task["url"], task["host"]) == ("robots", f"{SITE}/robots.txt", SITE)
    assert (task["domain"], task["crawl_delay_ms"]) == ("127.0.0.1", 1000)
    assert task["timeout_at"] == START + 60


def test_a_host_is_one_workers_alone_and_one_task_at_a_time(work: Work) -> None:
    page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
    assert work.lease(worker_id="other") == []
    assert work.result(page).json["status"] == "accepted"
    assert work.lease(worker_id="other") == [], "the delay has not passed"
    work.clock.advance(1)
    assert [task["url"] for task in work.lease(worker_id="other")] == [f"{SITE}/b"]


def test_several_tasks_of_a_host_are_a_delay_apart(work: Work) -> None:
    work.seed(*(f"{SITE}/{number}" for number in range(5)))
    (robots,) = work.lease()
    work.result(robots, http_status=404)
    work.clock.advance(1)
    tasks = work.lease(batch_size=3, tasks_per_host=3)
    starts = [task["not_before"] for task in tasks]
    assert [later - earlier for earlier, later in pairwise(starts)] == [1, 1]
    assert [task["wait_ms"] for task in tasks] == [0, 1000, 2000]


def test_no_more_tasks_than_asked_for(work: Work) -> None:
    work.seed(*(f"http://127.0.0.1:{port}/" for port in range(1000, 1010)))
    assert len(work.lease(batch_size=4, tasks_per_host=3)) <= 4
    assert len(work.lease(batch_size=2)) == 2


def test_a_host_rests_when_the_server_starts_anew_while_a_worker_may_be_asking_it(tmp_path: Path) -> None:
    settings = Settings(crawl=CrawlSettings(scope="any"))
    with working(tmp_path / "crawl", settings) as work:
        work.seed(f"{SITE}/a")
        (before,) = work.lease(lease_duration_sec=300.0)
    with working(tmp_path / "crawl", settings) as work:
        work.clock.advance(299)
        assert work.lease() == []
        work.clock.advance(3)
        assert [task["url"] for task in work.lease()] == [before["url"]]


def test_a_lease_says_when_nothing_is_left_to_do(work: Work) -> None:
    page = work.lease_page()
    answer = work.service.post("/v1/tasks/lease", {"worker_id": "w"}).json
    assert (answer["tasks"], answer["finished"]) == ([], False), "somebody else is at work"
    work.result(page)
    answer = work.service.post("/v1/tasks/lease", {"worker_id": "w"}).json
    assert (answer["tasks"], answer["finished"], answer["next_at"]) == ([], True, None)


def test_a_paused_crawl_leases_nothing_and_takes_results(work: Work) -> None:
    page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
    work.service.post("/v1/crawl/pause")
    assert work.result(page).json["status"] == "accepted"
    work.clock.advance(5)
    assert work.lease() == []
    work.service.post("/v1/crawl/resume")
    assert len(work.lease()) == 1


# -- results


def test_links_are_resolved_canonicalised_and_counted(work: Work) -> None:
    page = work.lease_page(f"{SITE}/dir/a")
    links = ["b", "./b#fragment", "/c?utm_source=x", "http://127.0.0.1:82/", "a", "mailto:x@y", "http://["]
    taken = work.result(page, extracted_urls=[*links, f"{SITE}/dir/a"]).json
    assert taken == {"status": "accepted", "new_urls_enqueued": 3, "duplicates_skipped": 0, "urls_refused": 0}
    assert work.explain(f"{SITE}/dir/b")["state"] == "queued"
    assert work.explain(f"{SITE}/c")["url"] == f"{SITE}/c?utm_source=x"


def test_a_link_of_megabytes_is_left_out_and_the_rest_taken(work: Work) -> None:
    page = work.lease_page()
    taken = work.result(page, extracted_urls=["/" + "x" * 2_000_000, "b"]).json
    assert (taken["status"], taken["new_urls_enqueued"], taken["urls_refused"]) == ("accepted", 1, 0)


def test_known_links_are_duplicates(work: Work) -> None:
    page = work.lease_page(f"{SITE}/a", f"{SITE}/b")
    assert work.result(page, extracted_urls=["b", "new"]).json["duplicates_skipped"] == 1


def test_what_was_fetched_is_explained_with_where_its_worker_keeps_it(work: Work) -> None:
    page = work.lease_page()
    said = {"title": "A page", "content_type": "text/html", "size": 12, "content_hash": "ab" * 32}
    work.result(page, storage_path="s3://bucket/a", **said)
    known = work.explain(f"{SITE}/a")
    assert (known["state"], known["title"]) == ("completed", "A page")
    assert "s3://bucket/a" in known["fetches"][0]["detail"]
    assert work.service.get(f"/v1/urls/{known['key']}").json["url"] == f"{SITE}/a"


def test_robots_txt_is_obeyed_as_the_worker_brought_it(work: Work) -> None:
    work.seed(f"{SITE}/private/a", f"{SITE}/b")
    (robots,) = work.lease()
    body = "User-agent: *\nDisallow: /private/\nCrawl-delay: 3\n"
    assert work.result(robots, body=body).json["status"] == "accepted"
    work.clock.advance(3)
    (page,) = work.lease(tasks_per_host=5)
    assert (page["url"], page["crawl_delay_ms"]) == (f"{SITE}/b", 3000)
    assert work.explain(f"{SITE}/private/a")["state"] == "denied"
    assert work.service.get("/v1/hosts/127.0.0.1:81/robots").body.decode() == body


def test_a_robots_txt_without_its_body_is_not_taken_for_permission(work: Work) -> None:
    work.seed(f"{SITE}/a")
    (robots,) = work.lease()
    assert work.result(robots).problem == "contradictory"
    work.clock.advance(5)
    assert work.lease() == [], "the lease is still out"


def test_a_redirect_leads_through_admission(work: Work) -> None:
    page = work.lease_page()
    assert work.result(page, http_status=301, location="/moved").json["new_urls_enqueued"] == 1
    assert "redirect" in work.explain(f"{SITE}/moved")["found"]


def test_a_redirect_to_nowhere_is_a_failure(work: Work) -> None:
    for number, location in enumerate(("", "javascript:alert(1)", "http://[")):
        page = work.lease_page(f"http://127.0.0.1:{100 + number}/a")
        work.result(page, http_status=302, location=location)
        assert "bad_redirect" in work.explain(page["url"])["reason"]


def test_an_unasked_304_is_a_failure(work: Work) -> None:
    page = work.lease_page()
    work.result(page, http_status=304)
    assert "304, unasked" in work.explain(f"{SITE}/a")["reason"]


def test_a_revisit_comes_with_validators_and_304_is_its_answer(work: Work) -> None:
    page = work.lease_page()
    work.result(page, etag='"v1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
    work.service.do(work.service.context.frontier.refresh(url=f"{SITE}/a"))
    work.clock.advance(1)
    (again,) = work.lease()
    assert (again["etag"], again["last_modified"]) == ('"v1"', "Thu, 01 Jan 2026 00:00:00 GMT")
    assert work.result(again, http_status=304).json["status"] == "accepted"
    assert work.explain(f"{SITE}/a")["state"] == "completed"


def test_429_slows_the_host_and_its_retry_after_is_obeyed(work: Work) -> None:
    page = work.lease_page()
    work.result(page, http_status=429, retry_after_sec=100)
    host = work.service.get("/v1/hosts/127.0.0.1:81").json
    assert host["delay"] == 2
    assert host["next_start"] >= work.clock.now() + 100


# -- failures


def test_a_failure_says_when_it_is_tried_again(work: Work) -> None:
    page = work.lease_page()
    taken = work.fail(page, error="total_timeout").json
    assert (taken["status"], taken["will_retry"], taken["retry_count"]) == ("accepted", True, 1)
    assert taken["next_attempt_at"] > work.clock.now()


def test_the_last_failure_is_a_dead_letter_that_can_be_requeued(tmp_path: Path) -> None:
    with working(tmp_path, Settings(retry=RetrySettings(attempts=1))) as work:
        page = work.lease_page()
        taken = work.fail(page, error="protocol", detail="no status line").json
        assert (taken["will_retry"], taken["retry_count"], taken["next_attempt_at"]) == (False, 1, None)
        (letter,) = work.service.get("/v1/dead-letters").json["dead_letters"]
        assert (letter["url"], letter["kind"], letter["detail"]) == (
            page["url"],
            "protocol",
            "no status line",
        )
        assert work.service.get("/v1/dead-letters?host=127.0.0.1:82").json["dead_letters"] == []
        requeued = work.service.post("/v1/dead-letters/requeue", {"url": letter["url"]}).json
        assert requeued == {"requeued": 1}
        assert work.explain(letter["url"])["state"] == "queued"


def test_nothing_is_requeued_that_was_not_named(work: Work) -> None:
    for asked in ({}, {"all": False}, {"all": True, "host": "127.0.0.1:99"}, {"url": "nothing"}):
        assert work.service.post("/v1/dead-letters/requeue", asked).json == {"requeued": 0}


def test_a_failed_robots_txt_makes_its_host_wait(work: Work) -> None:
    work.seed(f"{SITE}/a")
    (robots,) = work.lease()
    taken = work.fail(robots).json
    assert (taken["status"], taken["will_retry"], taken["retry_count"]) == ("accepted", True, 1)
    assert taken["next_attempt_at"] >= work.clock.now() + 60


# -- many at once, leases, repeated calls


def test_of_many_results_each_is_judged_on_its_own(work: Work) -> None:
    page = work.lease_page()
    good = {"task_id": page["task_id"], "http_status": 200, "extracted_urls": ["b"]}
    late = {**good, "sent_at": START - 1000}
    unknown = {**good, "task_id": "nothing"}
    taken = work.service.post("/v1/tasks/results", {"results": [late, unknown, good, good]}).json["results"]
    assert [one["status"] for one in taken] == ["refused", "refused", "accepted", "stale"]
    assert taken[2]["new_urls_enqueued"] == 1
    assert taken[0]["detail"]


def test_of_many_failures_each_is_judged_on_its_own(work: Work) -> None:
    page = work.lease_page()
    failed = {"task_id": page["task_id"], "error": "stalled"}
    asked = {"failures": [{**failed, "task_id": "nothing"}, failed, failed]}
    taken = work.service.post("/v1/tasks/failures", asked).json["failures"]
    assert [one["status"] for one in taken] == ["refused", "accepted", "stale"]
    assert taken[1]["will_retry"]


def test_a_renewed_lease_lives_on_and_a_lost_one_is_told(work: Work) -> None:
    page = work.lease_page()
    work.clock.advance(50)
    renewed = work.service.post("/v1/tasks/renew", {"task_ids": [page["task_id"]]}).json["leases"]
    assert renewed == [{"task_id": page["task_id"], "timeout_at": work.clock.now() + 60}]
    work.clock.advance(50)
    assert work.reap() == 0
    work.clock.advance(50)
    work.reap()
    (lost,) = work.service.post("/v1/tasks/renew", {"task_ids": [page["task_id"]]}).json["leases"]
    assert lost["timeout_at"] is None


def test_what_is_released_goes_to_others_after_the_delay(work: Work) -> None:
    page = work.lease_page()
    assert work.service.post("/v1/tasks/release", {"task_ids": [page["task_id"]]}).json == {"leases": 1}
    assert work.lease(worker_id="other") == []
    work.clock.advance(1)
    assert [task["url"] for task in work.lease(worker_id="other")] == [page["url"]]


def test_a_lease_sent_again_with_its_key_is_answered_again(work: Work) -> None:
    work.seed(f"{SITE}/a", "http://127.0.0.1:82/")
    asked = {"worker_id": "w", "batch_size": 1}
    first = work.service.post("/v1/tasks/lease", asked, idempotency_key="k1")
    again = work.service.post("/v1/tasks/lease", asked, idempotency_key="k1")
    assert again.body == first.body
    other = work.service.post("/v1/tasks/lease", asked, idempotency_key="k2")
    assert other.json["tasks"][0]["host"] != first.json["tasks"][0]["host"]


def test_a_result_sent_again_with_its_key_is_accepted_again(work: Work) -> None:
    page = work.lease_page()
    path, said = f"/v1/tasks/{page['task_id']}/result", {"http_status": 200, "extracted_urls": ["b"]}
    first = work.service.post(path, said, idempotency_key="k")
    assert work.service.post(path, said, idempotency_key="k").json == first.json
    assert work.service.post(path, {"http_status": 404}, idempotency_key="k").problem == "key-reused"


def test_a_refused_call_may_be_put_right_under_its_key(work: Work) -> None:
    assert work.service.post("/v1/seeds", {"urls": []}, idempotency_key="k").problem == "invalid"
    assert work.service.post("/v1/seeds", {"urls": [SITE]}, idempotency_key="k").status == 202


def test_keys_of_different_callers_do_not_meet(tmp_path: Path) -> None:
    tokens = Access(((Role.WORKER, "one-0123456789abc"), (Role.OPERATOR, "two-0123456789abc")))
    with running_service(tmp_path, tokens=tokens) as service:
        service.post("/v1/seeds", {"urls": [SITE]}, token="two-0123456789abc")
        asked = {"worker_id": "w"}
        one = service.post("/v1/tasks/lease", asked, token="one-0123456789abc", idempotency_key="k")
        two = service.post("/v1/tasks/lease", asked, token="two-0123456789abc", idempotency_key="k")
    assert (len(one.json["tasks"]), len(two.json["tasks"])) == (1, 0)
