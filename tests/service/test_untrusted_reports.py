"""What a worker cannot get away with: reports told twice, too late, forged, out of range, or none at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skitter.service.http.access import Access, Role
from skitter.telemetry import Metric
from tests.service.work_kit import SITE, START, Work
from tests.service_kit import running_service


def test_a_result_told_twice_is_stale_the_second_time(work: Work) -> None:
    page = work.lease_page()
    assert work.result(page, extracted_urls=["b"]).json["new_urls_enqueued"] == 1
    assert work.result(page, extracted_urls=["c"]).json == {
        "status": "stale",
        "new_urls_enqueued": 0,
        "duplicates_skipped": 0,
        "urls_refused": 0,
    }
    assert work.explain(f"{SITE}/c")["state"] == "unknown"
    assert work.fail(page).json["status"] == "stale"


def test_a_task_id_that_was_not_given_out_is_unknown(work: Work) -> None:
    page = work.lease_page()
    real = page["task_id"]
    flipped = real[:-5] + ("A" if real[-5] != "A" else "B") + real[-4:]
    for forged in (real[:-4], real + "AAAA", flipped, "-", "A" * 13_000, "%00%C3%A9%2F"):
        answer = work.service.post(f"/v1/tasks/{forged}/result", {"http_status": 200})
        assert (answer.status, answer.problem) == (404, "unknown-task")
    assert work.result(page).json["status"] == "accepted"


def test_an_id_of_another_crawl_is_unknown(work: Work, tmp_path: Path) -> None:
    page = work.lease_page()
    with running_service(tmp_path / "other") as other:
        answer = other.post(f"/v1/tasks/{page['task_id']}/result", {"http_status": 200})
        assert answer.problem == "unknown-task"


def test_a_failure_after_the_lease_is_stale_and_the_url_stays_queued(work: Work) -> None:
    page = work.lease_page()
    work.clock.advance(61)
    assert work.reap() == 1
    assert work.fail(page).json["status"] == "stale"
    assert work.explain(f"{SITE}/a")["state"] == "queued"


def test_a_page_after_the_lease_is_kept_once(work: Work) -> None:
    page = work.lease_page()
    work.clock.advance(61)
    work.reap()
    assert work.result(page).json["status"] == "accepted"
    assert work.result(page).json["status"] == "stale"
    assert work.explain(f"{SITE}/a")["state"] == "completed"


def test_an_expired_lease_cannot_settle_over_a_newer_one(work: Work) -> None:
    page = work.lease_page()
    work.clock.advance(61)
    work.reap()
    work.clock.advance(1)
    (newer,) = work.lease(worker_id="other")
    assert newer["url"] == page["url"]
    assert work.result(page).json["status"] == "stale"
    assert work.result(newer).json["status"] == "accepted"


def test_times_outside_the_lease_are_refused(work: Work) -> None:
    page = work.lease_page()
    work.clock.advance(5)
    for times in (
        {"sent_at": START + 100},
        {"sent_at": START - 100},
        {"sent_at": START + 1, "ended_at": START + 100},
        {"sent_at": START + 1, "ended_at": START + 0.5},
        {"sent_at": 1e300},
    ):
        assert work.result(page, **times).problem in ("contradictory", "invalid")
        assert work.fail(page, **times).problem in ("contradictory", "invalid")
    assert work.result(page, sent_at=work.clock.now() - 2, ended_at=work.clock.now()).status == 200


def test_values_out_of_range_are_refused_and_nothing_is_settled(work: Work) -> None:
    page = work.lease_page()
    wrong: tuple[dict[str, Any], ...] = (
        {"http_status": 99},
        {"http_status": 1000},
        {"http_status": "200"},
        {"http_status": 200.5},
        {"content_hash": "xyz"},
        {"size": -1},
        {"size": 1 << 70},
        {"title": "x" * 501},
        {"extracted_urls": ["x"] * 10_001},
        {"extracted_urls": "x"},
        {"retry_after_sec": -1},
        {"unknown": 1},
    )
    for said in wrong:
        assert work.result(page, **said).problem == "invalid", said
    assert work.explain(f"{SITE}/a")["state"] == "in_progress"


def test_bytes_that_are_no_report_are_refused(work: Work) -> None:
    page = work.lease_page()
    for raw in (b"", b"{", b"\xff", b'{"http_status": "\\ud800"}', b"[" * 100_000, b"null"):
        answer = work.service.post(f"/v1/tasks/{page['task_id']}/result", raw)
        assert answer.problem in ("malformed", "invalid"), raw[:20]


def test_a_huge_body_is_refused(work: Work) -> None:
    for body in (b" " * 16_000_001, iter([b" " * 1_000_000] * 20)):
        answer = work.service.post("/v1/seeds", body)
        assert (answer.status, answer.problem) == (413, "too-large")


def test_another_media_type_is_refused(work: Work) -> None:
    assert work.service.post("/v1/seeds", b"{}", content_type="text/plain").problem == "wrong-media"


ONE, OTHER = "one-0123456789abcdef", "other-0123456789abcdef"


def test_another_workers_task_can_be_neither_settled_nor_renewed_nor_released(tmp_path: Path) -> None:
    """Its id may have leaked; it is worth nothing without the token that it was given to."""
    tokens = Access([(Role.WORKER, ONE, "one"), (Role.WORKER, OTHER, "other"), (Role.OPERATOR, "o" * 16)])
    with running_service(tmp_path, tokens=tokens) as service:
        service.post("/v1/seeds", {"urls": [SITE]}, token="o" * 16)
        (task,) = service.post("/v1/tasks/lease", {"worker_id": "w"}, token=ONE).json["tasks"]
        path, ids = f"/v1/tasks/{task['task_id']}", {"task_ids": [task["task_id"]]}
        said = {"http_status": 404}
        attacks: list[tuple[str, dict[str, Any]]] = [
            (f"{path}/result", said),
            (f"{path}/fail", {"error": "connect_refused"}),
            ("/v1/tasks/renew", ids),
            ("/v1/tasks/release", ids),
        ]
        for where, body in attacks:
            answer = service.post(where, body, token=OTHER)
            assert (answer.status, answer.problem) == (403, "not-your-task")
        batch = {"results": [{"task_id": task["task_id"], **said}]}
        (refused,) = service.post("/v1/tasks/results", batch, token=OTHER).json["results"]
        assert refused["status"] == "refused"
        assert service.context.telemetry.value(Metric.LEASES_REFUSED) == 5
        assert service.get("/v1/leases", token=ONE).json["leases"][0]["worker"] == "remote:one/w"
        assert service.post(f"{path}/result", said, token=ONE).json["status"] == "accepted"
