"""Crawls whose archive lies in object storage: what survives what, and what readers see of it."""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench._crawls import start, web_crawl, write_quick_settings
from bench._records import known, marks, records
from bench._s3 import S3Server
from bench.objects import PREFIX, Looks, Trial, verdict

from skitter.faultpoints import ENVIRONMENT, Point
from skitter.testing.features import FEATURE_SHARES, ROBOTS_SHARES, Feature, RobotsKind
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.e2e.command import ENVIRON, command, complaint, said, serving_site, skitter
from tests.object_store import URL, environ_of, serving_objects

DEADLINE = 60.0
PLAN = WebPlan(
    hosts=6,
    pages=4,
    crawl_delay=0.1,
    flaky_failures=1,
    features={feature: share for feature, share in FEATURE_SHARES.items() if feature is not Feature.BROKEN},
    robots={kind: share for kind, share in ROBOTS_SHARES.items() if kind is not RobotsKind.UNAVAILABLE},
)
PAGES = {"/": b"<a href=/1>1</a><a href=/2>2</a><title>home</title>", "/1": b"<p>one", "/2": b"<p>two"}
SUMMARY = "3 pages, all of them safe in s3://bucket/crawl"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    yield from serving_objects(tmp_path / "store")


@pytest.fixture
def environ(server: S3Server, tmp_path: Path) -> dict[str, str]:
    return environ_of(server, tmp_path / "cache")


def crawl(site: str, into: Path, *more: object) -> list[object]:
    return ["crawl", site, "--into", into, "--archive", URL, "--delay", 0.01, "--allow-private", *more]


def spool_of(folder: Path) -> list[Path]:
    return [path for path in (folder / "archive").rglob("*") if path.is_file()]


def test_a_crawl_ends_with_everything_in_the_bucket_and_nothing_in_its_folder(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    with serving_site(PAGES) as site:
        done = skitter(*crawl(site.url, tmp_path / "crawl"), environ=environ)
    assert done.returncode == 0, done.stderr
    assert SUMMARY in done.stderr
    assert spool_of(tmp_path / "crawl") == []
    found = [record.url.removeprefix(site.url) for record in records(server.objects(PREFIX))]
    assert sorted(found) == ["/", "/1", "/2", "/robots.txt"]


def test_readers_find_in_the_bucket_what_they_would_find_in_a_folder(
    environ: dict[str, str], tmp_path: Path
) -> None:
    with serving_site(PAGES) as site:
        said(skitter(*crawl(site.url, tmp_path / "crawl"), environ=environ))
    sql = "select url from pages where kind = 'page' order by url"
    for place in (tmp_path / "crawl", URL):
        rows = said(skitter("query", place, sql, "--format", "csv", environ=environ)).split()[1:]
        assert [row.removeprefix(site.url) for row in rows] == ["/", "/1", "/2"]
        assert "no defects" in said(skitter("verify", place, environ=environ))
    assert said(skitter("show", URL, f"{site.url}/1", environ=environ)) == "<p>one"
    said(skitter("export", URL, "--to", "wacz", tmp_path / "out.wacz", environ=environ))
    assert (tmp_path / "out.wacz").stat().st_size > 1000


def test_a_local_copy_is_kept_where_that_is_asked_for(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[archive]\nkeep_local = true\ncompression = 'zstd'\n")
    with serving_site(PAGES) as site:
        said(skitter(*crawl(site.url, tmp_path / "crawl", "--config", config), environ=environ))
    here = {path.name: path.read_bytes() for path in spool_of(tmp_path / "crawl")}
    there = {path.name: path.read_bytes() for path in server.objects(PREFIX).rglob("*") if path.is_file()}
    assert here == there
    assert len(here) >= 3
    assert [name.partition(".")[2] for name in here if ".warc" in name] == ["warc.zst"]


@pytest.mark.parametrize(
    ("url", "given", "words"),
    [
        ("s3://no-such-bucket/x", {}, "NoSuchBucket"),
        (URL, {"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
        (URL, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "endpoint"),
        ("s3://me:hunter2@bucket/x", {}, "environment"),
        ("ftp://bucket/x", {}, "s3://BUCKET/PREFIX"),
    ],
)
def test_a_store_that_cannot_be_used_stops_the_crawl_before_its_first_request(
    environ: dict[str, str], tmp_path: Path, url: str, given: dict[str, str], words: str
) -> None:
    with serving_site(PAGES) as site:
        asked = ["crawl", site.url, "--into", tmp_path / "crawl", "--archive", url, "--allow-private"]
        line = complaint(skitter(*asked, environ={**environ, **given}), 2)
        assert site.connections == 0
    assert words in line
    assert "hunter2" not in line
    assert not (tmp_path / "crawl" / "crawl.toml").exists()


class Watched:
    """A crawl whose output is read as it comes."""

    def __init__(self, arguments: list[object], environ: dict[str, str]) -> None:
        self._child = subprocess.Popen(
            command(*arguments), stderr=subprocess.PIPE, env={**ENVIRON, **environ}, text=True
        )

    def until(self, words: str) -> None:
        assert self._child.stderr is not None
        heard = []
        for line in self._child.stderr:
            heard.append(line)
            if words in line:
                return
        raise AssertionError("".join(heard))

    def interrupt(self) -> None:
        self._child.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        _, rest = self._child.communicate(timeout=DEADLINE)
        return self._child.returncode, rest

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.communicate()


def slow_site(server: S3Server) -> Any:
    """The store goes away with the first request, after the crawl has looked for it."""

    class Leaving(dict[str, bytes]):
        has_left = False

        def get(self, path: str, default: Any = None) -> Any:
            if not self.has_left:
                self.has_left = True
                server.stop()
            return super().get(path, default)

    return serving_site(Leaving(PAGES))


def test_a_store_that_is_away_at_the_end_is_waited_for(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    with (
        slow_site(server) as site,
        Watched(crawl(site.url, tmp_path / "crawl"), environ) as child,
    ):
        child.until("cannot write to s3://bucket/crawl")
        server.start()
        code, output = child.end()
    assert code == 0
    assert SUMMARY in output
    assert spool_of(tmp_path / "crawl") == []


def test_an_interrupted_upload_is_gone_on_with_and_nothing_is_fetched_again(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    asked = crawl("", tmp_path / "crawl")
    with slow_site(server) as site:
        asked[1] = site.url
        with Watched(asked, environ) as child:
            child.until("cannot write to s3://bucket/crawl")
            child.interrupt()
            code, output = child.end()
    assert code == 130
    assert "3 pages, 0 of them safe in s3://bucket/crawl, 3 waiting" in output
    assert "the same command uploads them" in output
    assert "3 wait for upload" in said(skitter("stats", tmp_path / "crawl"))
    server.start()
    # The site is gone: whatever is asked for again fails.
    done = skitter("crawl", "--into", tmp_path / "crawl", environ=environ)
    assert done.returncode == 0, done.stderr
    assert SUMMARY in done.stderr
    assert "0 pages of 1 host" in done.stderr


def test_readers_see_the_spool_and_the_bucket_as_one(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "crawl"
    with serving_site(PAGES) as site:
        said(skitter(*crawl(f"{site.url}/1", folder), environ=environ))
        site_url = site.url
        more = crawl(f"{site.url}/2", folder)
        said(skitter(*more, environ=environ))
    kept = next(server.objects(PREFIX).glob("*-00001.warc.gz"))
    stem = kept.name.removesuffix(".warc.gz")
    for path in [*server.objects(PREFIX).glob(f"{stem}*"), *server.objects(PREFIX).glob(f"*/{stem}*")]:
        target = folder / "archive" / path.relative_to(server.objects(PREFIX))
        target.parent.mkdir(exist_ok=True)
        shutil.move(path, target)
    for number, body in ((1, "<p>one"), (2, "<p>two")):
        assert said(skitter("show", folder, f"{site_url}/{number}", environ=environ)) == body


def test_a_full_spool_pauses_the_crawl_until_it_is_uploaded(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[archive]\nspool = 1\nsegment_size = 1\n")
    with (
        slow_site(server) as site,
        Watched([*crawl(site.url, tmp_path / "crawl", "--config", config), "--delay", 0.7], environ) as child,
    ):
        child.until("paused: ")
        assert len(site.requests) < 4
        server.start()
        code, output = child.end()
    assert code == 0
    assert "going on" in output
    assert SUMMARY in output


def test_a_lost_spool_is_fetched_again_and_everything_else_is_not(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "crawl"
    with serving_site(PAGES) as site:
        said(skitter(*crawl(f"{site.url}/1", folder), environ=environ))
    with slow_site(server) as site, Watched(crawl(site.url, folder), environ) as child:
        child.until("cannot write to s3://bucket/crawl")
        child.interrupt()
        child.end()
    shutil.rmtree(folder / "archive")
    server.start()
    with serving_site(PAGES) as again:
        port = site.url.rsplit(":", 1)[1]
        resolve = f"127.0.0.1:{port}:127.0.0.1:{again.port}"
        done = skitter("crawl", "--into", folder, "--resolve", resolve, environ=environ)
        assert done.returncode == 0, done.stderr
        assert sorted(request.raw.split()[1].decode() for request in again.requests) == [
            "/",
            "/1",
            "/2",
            "/robots.txt",
        ]
    assert "are gone and were not stored yet" in done.stderr
    assert len(records(server.objects(PREFIX))) == 2 + 4
    assert "no defects" in said(skitter("verify", folder, environ=environ))


def test_a_lost_segment_of_an_archive_without_a_url_still_stops_the_crawl(tmp_path: Path) -> None:
    with serving_site(PAGES) as site:
        asked = ["crawl", site.url, "--into", tmp_path / "crawl", "--delay", 0.01, "--allow-private"]
        said(skitter(*asked))
    shutil.rmtree(tmp_path / "crawl" / "archive")
    assert "is gone with its" in complaint(skitter("crawl", "--into", tmp_path / "crawl"), 1)


@pytest.mark.parametrize("point", [Point.BETWEEN_OBJECTS, Point.BEFORE_STORED, Point.BEFORE_REMOVAL])
def test_deaths_on_the_way_to_the_store_cost_nothing_but_effort(
    server: S3Server, environ: dict[str, str], tmp_path: Path, point: Point
) -> None:
    write_quick_settings(tmp_path / "quick.toml", delay=0.05, segment_size=30_000)
    looks = Looks()
    with SyntheticWeb(PLAN, log=tmp_path / "requests.jsonl", latency=(0.0, 0.02)) as web:
        asked = web_crawl(web, tmp_path / "crawl", tmp_path / "quick.toml", "--archive", URL)
        trial = Trial(tmp_path, web, server, argparse.Namespace(seed=1, kills=0, expected=1))
        for count in (1, 3):
            child = start(asked, environ={**environ, ENVIRONMENT: f"{point}:{count}"})
            assert child.wait(DEADLINE) == -signal.SIGKILL
            trial.died()
        with (tmp_path / "output").open("ab") as output:
            looks = trial.run(output)
    result, lost = verdict(tmp_path, server, PLAN, 0.05, looks)
    assert result.faults == {}
    assert lost == 0
    assert looks.stored[0] < looks.stored[-1]
    assert len([mark for mark in marks(tmp_path / "crawl" / "frontier") if mark.stored]) > 2
    assert known(tmp_path / "crawl" / "frontier").disagreements == []
