"""What an operator's page asks besides: who am I, who has leases, all of a host, traps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from skitter.service.http.access import Access, Role
from tests.frontier_kit import discovered, seed
from tests.service_kit import Service, running_service

A = "http://a.test"
TOKENS = {role: f"a-long-token-for-{role.name.lower()}" for role in Role}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("operators")) as running:
        yield running


def test_a_caller_is_told_its_role(tmp_path: Path) -> None:
    with running_service(tmp_path, tokens=Access(TOKENS.items())) as service:
        for role, token in TOKENS.items():
            assert service.get("/v1/whoami", token=token).json["role"] == role.word
        assert service.get("/v1/whoami").problem == "unauthenticated"
        assert service.post("/v1/traps/1/undo", token=TOKENS[Role.WORKER]).problem == "forbidden"


def test_who_may_reach_a_service_without_tokens_is_the_operator(service: Service) -> None:
    assert service.get("/v1/whoami").json == {"role": "operator", "name": ""}


def test_leases_and_hosts_are_told_as_they_stand(service: Service) -> None:
    frontier = service.context.frontier
    service.do(frontier.admit([seed(A + "/"), discovered(A + "/more")]))
    assert service.get("/v1/leases").json == {"leases": []}
    (lease,) = service.do(frontier.lease("w1", 5, 60))
    (told,) = service.get("/v1/leases").json["leases"]
    assert told == {"host": A, "worker": "w1", "deadline": lease.deadline, "tasks": 1}
    host = service.get("/v1/hosts/http:%2F%2Fa.test/explain?fetches=3").json
    assert (host["view"]["host"], host["worker"], host["lease_until"]) == (A, "w1", lease.deadline)
    assert (host["robots_text"], host["robots_at"], host["fetches"]) == ("", 0, [])


@pytest.mark.parametrize("path", ["/v1/leases?limit=0", "/v1/hosts/http:%2F%2Fa.test/explain?fetches=-1"])
def test_limits_are_checked(service: Service, path: str) -> None:
    assert service.get(path).problem == "invalid"


@pytest.mark.parametrize("host", ["http:%2F%2Fnobody.test", "nobody", "%00", "http:%2F%2F", "%F0%9F"])
def test_a_host_that_is_not_known_is_a_problem_that_says_so(service: Service, host: str) -> None:
    assert service.get(f"/v1/hosts/{host}/explain").problem == "unknown-host"


def test_a_verdict_that_does_not_exist_releases_nothing(service: Service) -> None:
    assert service.get("/v1/traps").json == {"traps": []}
    assert service.post("/v1/traps/77/undo").json == {"released": 0}


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "٣", "9" * 19])
def test_the_number_of_a_verdict_is_a_number(service: Service, number: str) -> None:
    assert service.post(f"/v1/traps/{quote(number)}/undo").problem == "unknown-trap"
