"""`skitter serve` as its users run it: archived copies of a real crawl, restarts, refusals at the start."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skitter.cli import main
from tests.e2e.command import said, serving_site, skitter
from tests.raw_server import page
from tests.service_kit import asked
from tests.serving import served

SCRIPT = (
    b"<title>Hi</title><script>alert(1)</script><main><p>These words are the text of the page.</p></main>"
)
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n"


def test_an_archived_page_is_shown_and_never_run(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text(CONFIG)
    with serving_site({"/": SCRIPT, "/robots.txt": page(b"User-agent: *\nDisallow: /no\n")}) as site:
        said(skitter("crawl", f"{site.url}/", "--into", tmp_path / "crawl", "--config", config))
        with served(tmp_path / "crawl") as server:
            where = server.where
            key = asked(where, "GET", f"/v1/explain?url={site.url}/").json["key"]
            body = asked(where, "GET", f"/v1/urls/{key}/body")
            text = asked(where, "GET", f"/v1/urls/{key}/text")
            headers = asked(where, "GET", f"/v1/urls/{key}/headers")
            robots = asked(where, "GET", f"/v1/hosts/{site.url.replace('/', '%2F')}/robots")
    assert body.body == SCRIPT
    assert body.headers["content-type"] == "application/octet-stream"
    assert body.headers["content-disposition"] == "attachment"
    assert "These words are the text" in text.body.decode()
    assert "alert" not in text.body.decode()
    assert headers.body.startswith(b"HTTP/1.1 200 OK\r\n")
    assert robots.body == b"User-agent: *\nDisallow: /no\n"
    for answer in (body, text, headers, robots):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "html" not in answer.headers["content-type"]


def test_a_page_reported_to_the_server_that_follows_a_killed_one_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    with served(folder) as server:
        where = server.where
        asked(where, "POST", "/v1/seeds", {"urls": ["http://127.0.0.1:81/a"]})
        (robots,) = asked(where, "POST", "/v1/tasks/lease", {"worker_id": "w"}).json["tasks"]
        assert (
            asked(where, "POST", f"/v1/tasks/{robots['task_id']}/result", {"http_status": 404}).status == 200
        )
        put = asked(where, "PUT", "/v1/hosts/127.0.0.1:81/policy", {"delay": 0})
        assert put.status == 200
        tasks: list[dict[str, str]] = []
        while not tasks:
            tasks = asked(where, "POST", "/v1/tasks/lease", {"worker_id": "w"}).json["tasks"]
        server.process.kill()
        server.process.wait()
    assert stat.S_IMODE(os.stat(folder / "service.key").st_mode) == 0o600
    with served(folder) as after:
        path = f"/v1/tasks/{tasks[0]['task_id']}/result"
        assert asked(after.where, "POST", path, {"http_status": 200}).json["status"] == "accepted"
        assert asked(after.where, "POST", path, {"http_status": 200}).json["status"] == "stale"
        assert asked(after.where, "GET", "/v1/stats").json["stats"]["pages"] == 1


def test_a_start_that_cannot_be_is_one_line_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crawl"
    for arguments, told in (
        (("--listen", "0.0.0.0:0"), "without a token"),
        (("--listen", "nowhere"), "HOST:PORT"),
        (("--listen", f"unix:{folder}/control.sock"), "is for commands"),
        (("--tokens", str(tmp_path / "none")), "cannot read tokens"),
    ):
        assert main(["serve", str(folder), "--new", *arguments]) == 2
        printed = capsys.readouterr().err
        assert told in printed
        assert printed.count("\n") == 1
        assert not folder.exists()
