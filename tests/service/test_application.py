"""What holds for every route: who may call, what is read, how a refusal looks."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.errors import UsageError
from skitter.service.http.access import Access, Role, read_tokens
from tests.service_kit import Service, running_service

READER, WORKER, OPERATOR = "reader-0123456789", "worker-0123456789", "operator-0123456789"
TOKENS = ((Role.READ, READER), (Role.WORKER, WORKER), (Role.OPERATOR, OPERATOR))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("crawl"), tokens=Access(TOKENS)) as service:
        yield service


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("crawl")) as service:
        yield service


def test_a_request_without_a_token_is_told_to_bring_one(guarded: Service) -> None:
    answer = guarded.get("/v1/stats")
    assert (answer.status, answer.problem) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("token", ["wrong-0123456789", READER[:-1], READER + "x", READER.upper(), "ä" * 20])
def test_a_wrong_token_is_no_token(guarded: Service, token: str) -> None:
    assert guarded.get("/v1/stats", authorization=f"Bearer {token}".encode().decode("latin-1")).status == 401


def test_each_role_may_do_what_the_lesser_ones_may(guarded: Service) -> None:
    assert [guarded.get("/v1/stats", token=token).status for _, token in TOKENS] == [200, 200, 200]
    paused = [guarded.post("/v1/crawl/pause", token=token).status for _, token in TOKENS]
    assert paused == [403, 403, 200]
    assert guarded.post("/v1/crawl/resume", token=OPERATOR).json == {"paused": False}


def test_a_lesser_role_is_told_which_one_is_needed(guarded: Service) -> None:
    answer = guarded.post("/v1/crawl/pause", token=READER)
    assert answer.problem == "forbidden"
    assert "operator" in answer.json["detail"]


def test_health_needs_no_token_and_tells_nothing_of_the_crawl(guarded: Service) -> None:
    assert set(guarded.get("/v1/health").json) == {"status", "version"}


def test_an_unknown_path_is_a_problem(unguarded: Service) -> None:
    assert unguarded.get("/v1/nothing").problem == "no-such-path"


def test_no_path_leads_to_another(unguarded: Service) -> None:
    assert unguarded.get("/v1/stats/").problem == "no-such-path"


def test_a_wrong_method_names_the_right_ones(unguarded: Service) -> None:
    answer = unguarded.post("/v1/stats")
    assert (answer.problem, answer.headers["allow"]) == ("no-such-method", "GET")


def test_a_page_of_another_site_cannot_call(unguarded: Service) -> None:
    assert unguarded.post("/v1/crawl/pause", origin="https://evil.example").problem == "foreign-origin"
    assert unguarded.post("/v1/crawl/pause", origin="null").problem == "foreign-origin"
    assert unguarded.get("/v1/stats").json["paused"] is False


def test_a_name_that_was_made_to_lead_here_is_not_answered(unguarded: Service) -> None:
    assert unguarded.get("/v1/stats", host="rebound.example:8600").problem == "foreign-origin"


@pytest.mark.parametrize("name", ["localhost:8600", "127.0.0.1", "[::1]:8600"])
def test_this_machine_is_answered_by_its_names(unguarded: Service, name: str) -> None:
    assert unguarded.get("/v1/stats", host=name).status == 200


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0", ":0"])
def test_without_a_token_nothing_but_loopback_is_listened_on(tmp_path: Path, listen: str) -> None:
    with pytest.raises(UsageError, match="token"), running_service(tmp_path, listen=listen):
        pass


def test_with_a_token_any_address_may_be_listened_on(tmp_path: Path) -> None:
    with running_service(tmp_path, listen="0.0.0.0:0", tokens=Access(TOKENS)) as service:
        assert service.get("/v1/stats", token=READER).status == 200


def private(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text)
    return file


def test_a_token_has_a_name_and_without_one_it_is_named_by_its_digest(tmp_path: Path) -> None:
    other = OPERATOR[::-1]
    lines = f"read {READER}\ntrusted-worker east {WORKER}\nOperator ops {OPERATOR}\noperator ops {other}\n"
    access = read_tokens(private(tmp_path / "tokens", lines))
    callers = [access.caller_of(f"Bearer {token}") for token in (READER, WORKER, OPERATOR, other)]
    unnamed, *named = callers
    assert named == [(Role.TRUSTED_WORKER, "east"), (Role.OPERATOR, "ops"), (Role.OPERATOR, "ops")]
    assert unnamed is not None
    assert unnamed.name.startswith("read-")
    assert READER not in unnamed.name
    assert unnamed == Access([(Role.READ, READER)]).caller_of(f"Bearer {READER}")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660])
def test_a_tokens_file_that_others_may_read_or_write_is_refused_with_what_to_do(
    tmp_path: Path, mode: int
) -> None:
    file = private(tmp_path / "tokens", f"read {READER}")
    file.chmod(mode)
    with pytest.raises(UsageError, match=f"chmod 600 {file}") as told:
        read_tokens(file)
    assert READER not in str(told.value)


def test_tokens_come_from_a_file_and_the_environment(tmp_path: Path) -> None:
    file = private(tmp_path / "tokens", f"# who\n\nread {READER}\noperator   {OPERATOR}\n")
    access = read_tokens(file, f"worker {WORKER}")
    roles = [access.role_of(f"Bearer {token}") for _, token in TOKENS]
    assert roles == [Role.READ, Role.WORKER, Role.OPERATOR]
    assert access.role_of(f"Basic {READER}") is None


@pytest.mark.parametrize(
    "text",
    [
        "king 0123456789012345",
        "read short",
        "read",
        "read a name words-0123456789",
        "read na/me 0123456789012345",
        "read 0123456789012345 short",
        "",
    ],
)
def test_a_bad_tokens_file_stops_the_start_without_showing_a_token(tmp_path: Path, text: str) -> None:
    file = private(tmp_path / "tokens", text)
    with pytest.raises(UsageError) as told:
        read_tokens(file)
    assert "0123456789" not in str(told.value)


def test_a_unix_socket_is_its_owners_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    path.write_text("left behind by a killed server")
    with running_service(tmp_path, listen=f"unix:{path}") as service:
        assert service.where == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /v1/stats HTTP/1.1\r\nHost: skitter\r\nConnection: close\r\n\r\n")
            assert client.makefile("rb").read().startswith(b"HTTP/1.1 200 ")
    assert not path.exists()


def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match="another server"), running_service(tmp_path, listen=listen):
            pass
