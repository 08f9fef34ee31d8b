"""A crawl behind the API whose clock is the test's, and the calls of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skitter.settings import Settings
from skitter.testing.clock import FakeClock
from tests.frontier_audit import audit
from tests.service_kit import Answer, Service, running_service

START = 1_800_000_000.0
SITE = "http://127.0.0.1:81"


class Work:
    """A crawl of one site whose clock is ours, and a worker's calls."""

    def __init__(self, service: Service, clock: FakeClock) -> None:
        self.service = service
        self.clock = clock

    def seed(self, *urls: str, **more: Any) -> Any:
        answer = self.service.post("/v1/seeds", {"urls": urls, **more})
        assert answer.status == 202, answer
        return answer.json

    def lease(self, **asked: Any) -> list[dict[str, Any]]:
        answer = self.service.post("/v1/tasks/lease", {"worker_id": "w", **asked})
        assert answer.status == 200, answer
        tasks: list[dict[str, Any]] = answer.json["tasks"]
        return tasks

    def lease_page(self, *urls: str) -> dict[str, Any]:
        """A page task of a host whose robots.txt is out of the way."""
        self.seed(*(urls or (f"{SITE}/a",)))
        (robots,) = self.lease()
        assert self.result(robots, http_status=404).json["status"] == "accepted"
        self.clock.advance(1)
        (page,) = self.lease()
        return page

    def result(self, task: dict[str, Any], **said: Any) -> Answer:
        return self.service.post(f"/v1/tasks/{task['task_id']}/result", {"http_status": 200, **said})

    def fail(self, task: dict[str, Any], **said: Any) -> Answer:
        return self.service.post(f"/v1/tasks/{task['task_id']}/fail", {"error": "connect_refused", **said})

    def explain(self, url: str) -> Any:
        return self.service.get(f"/v1/explain?url={url}").json

    def reap(self) -> int:
        return self.service.do(self.service.context.frontier.reap(self.clock.now()))


@contextmanager
def working(folder: Path, settings: Settings) -> Iterator[Work]:
    clock = FakeClock(START)
    with running_service(folder, settings, clock=clock) as service:
        yield Work(service, clock)
        audit(service.context.frontier)  # type: ignore[arg-type]
