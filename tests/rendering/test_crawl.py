"""A crawl that renders single-page apps: all routes found, by polite requests alone, each once, and archived."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skitter.collection.members import Member, read_members
from skitter.collection.record import Record, parse_record
from skitter.collection.source import FolderSource
from skitter.testing.apps.sites import AppsPlan
from skitter.testing.apps.web import AppsWeb
from skitter.testing.audit import violations
from tests.e2e.command import ENVIRON, command, complaint, said, skitter

DELAY = 0.05
PLAN = AppsPlan(apps=8, routes=3, sites=1, pages=5)
# Seconds: on a machine that is busy otherwise a browser takes its time.
LONGEST = 600
CONFIG = f"""[retry]
attempts = 1
[fetch]
allow_private = true
[politeness]
delay = {DELAY}
[render]
soft_limit = 60.0
hard_limit = 90.0
patience = 120.0
"""


@pytest.fixture(scope="module")
def web() -> Iterator[AppsWeb]:
    with AppsWeb(PLAN) as running:
        yield running


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, web: AppsWeb) -> Path:
    folder = tmp_path_factory.mktemp("apps") / "crawl"
    config = folder.with_name("my.toml")
    config.write_text(CONFIG)
    crawl(folder, config, web, *PLAN.seeds, "--render", "auto")
    return folder


def crawl(folder: Path, config: Path, web: AppsWeb, *more: str) -> None:
    arguments = ("--into", folder, "--config", config, "--resolve", web.resolve, "--workers", "1", *more)
    done = subprocess.run(
        command("crawl", *arguments), capture_output=True, text=True, env=ENVIRON, timeout=LONGEST
    )
    assert done.returncode == 0, (done.stdout, done.stderr)


def records(folder: Path) -> list[Record]:
    archive = folder / "archive"
    source = FolderSource(archive)
    found = []
    for path in sorted(archive.glob("*.warc.gz")):
        for member in read_members(source, path.name, path.stat().st_size):
            assert isinstance(member, Member)
            record = parse_record(member.content)
            assert isinstance(record, Record)
            found.append(record)
    return found


def test_every_route_of_every_app_is_found_and_hardly_a_static_page_is_rendered(
    crawled: Path, web: AppsWeb
) -> None:
    asked = {(row.host, row.path) for row in web.requests()}
    for host in (*PLAN.app_hosts, *PLAN.site_hosts):
        assert {path for path in PLAN.paths(host) if (host, path) not in asked} == set(), host
    rendered = {record.url for record in records(crawled) if record.url.startswith("urn:rendered:")}
    routes = {f"urn:rendered:http://{host}{path}" for host in PLAN.app_hosts for path in PLAN.paths(host)}
    # and of the static pages at most a few that have scripts, to see whether they are what they look like
    assert routes <= rendered
    assert len(rendered - routes) <= 3


def test_the_web_saw_only_polite_requests_each_url_once_and_nothing_denied(
    crawled: Path, web: AppsWeb
) -> None:
    rows = web.requests()
    assert violations(rows, lambda _: DELAY, denied=lambda _, path: path.startswith("/private/")) == []
    assert {url: n for url, n in Counter((row.host, row.path) for row in rows).items() if n > 1} == {}
    assert not any(row.path.startswith("/pictures/") or row.path == "/beacon" for row in rows)
    responses = [record for record in records(crawled) if record.kind == "response"]
    assert len(responses) == len(rows)


def test_a_rendered_page_is_a_resource_of_its_response_with_rows_of_its_own(crawled: Path) -> None:
    found = records(crawled)
    ids = {record.id: record.url for record in found if record.kind == "response"}
    for record in found:
        if record.kind == "resource":
            assert record.url == "urn:rendered:" + ids[record.fields["warc-refers-to"].strip("<>")]
    assert "no defects" in said(skitter("verify", crawled))
    sql = "select text from text where rendered and url = 'http://app1.apps.test/item/0'"
    (row,) = map(json.loads, said(skitter("query", crawled, sql, "--json")).splitlines())
    assert row["text"].startswith("shop 1 /item/0")


def test_under_a_page_limit_the_last_page_is_rendered_whole_and_photographed(
    tmp_path: Path, web: AppsWeb
) -> None:
    config = tmp_path / "my.toml"
    config.write_text(CONFIG)
    folder = tmp_path / "crawl"
    limited = ("--render", "always", "--screenshots", "--max-pages", "1")
    crawl(folder, config, web, "http://app0.apps.test/", *limited)
    made = {record.url: record.block for record in records(folder) if record.kind == "resource"}
    assert b'href="/list/0"' in made.pop("urn:rendered:http://app0.apps.test/")
    assert set(made) == {f"urn:{kind}:http://app0.apps.test/" for kind in ("view", "thumbnail")}
    assert all(block.startswith(b"\xff\xd8") for block in made.values())
    assert "no defects" in said(skitter("verify", folder))


def test_explain_tells_of_the_rendering_and_of_its_kind(crawled: Path) -> None:
    told = said(skitter("explain", "http://app0.apps.test/", "--in", crawled))
    assert "rendering   done after" in told
    assert "it looks like an empty shell" in told
    asset = said(skitter("explain", "http://app0.apps.test/assets/app.js", "--in", crawled))
    assert "asked for by http://app0.apps.test/ while it was rendered" in asset


def test_a_forgotten_host_takes_its_renderings_with_it_and_others_keep_theirs(
    crawled: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "crawl"
    shutil.copytree(crawled, folder)
    before = {record.url for record in records(folder) if record.kind == "resource"}
    said(skitter("forget", "app1.apps.test", "--in", folder))
    found = [record.url for record in records(folder) if record.kind == "resource"]
    gone = {url for url in before if "app1.apps.test" in url}
    assert len(gone) == PLAN.routes
    assert sorted(found) == sorted(before - gone)
    assert "no defects" in said(skitter("verify", folder))


def test_without_a_browser_a_crawl_that_renders_does_not_begin(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text('[fetch]\nallow_private = true\n[render]\nbrowser = "no-such-browser"\n')
    told = complaint(
        skitter(
            "crawl", "http://127.0.0.1/", "--into", tmp_path / "c", "--config", config, "--render", "auto"
        ),
        2,
    )
    assert "there is no no-such-browser to render pages with" in told
