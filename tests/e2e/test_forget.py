"""`skitter forget`: nothing of the host is left in any file, others lose nothing, and a kill in between changes
neither."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from rocksdict import Options, Rdict

from skitter.frontier.tables.layout import TABLES
from tests.e2e.command import ENVIRON, command, complaint, read_json, said, serving_site, skitter
from tests.raw_server import RawServer, page

SHARED = b"<p>" + b"a body that both sites have, word for word. " * 40
SECRET = b"quittengelee"


def site_of(name: bytes, count: int) -> dict[str, bytes]:
    links = b"".join(b"<a href=/%d>%s</a>" % (n, name) for n in range(count))
    pages = {
        f"/{n}": b"<title>%s %d</title><p>%s" % (name, n, b"%s%d " % (name, n) * 50) for n in range(count)
    }
    return {"/": b"<h1>%s</h1>" % name + links + b"<a href=/shared>s</a><a href=/broken>b</a>", **pages} | {
        "/shared": SHARED,
        "/broken": page(b"%s is out of order" % name, status=b"500 Broken"),
        "/robots.txt": page(
            b"User-agent: *\nDisallow: /private/\n# %s\n" % name + b"# all hosts say so\n" * 60
        ),
    }


CONFIG = """[fetch]
allow_private = true
[politeness]
delay = 0.0
[retry]
attempts = 1
[archive]
segment_size = 8000
compression = "{coding}"
"""


def files_in(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file but the settings, as it lies there and without its compression."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "crawl.toml":
            continue
        raw = path.read_bytes()
        yield str(path), raw
        if path.name.endswith(".warc.gz"):
            yield f"{path} (records)", gzip.decompress(raw)
        elif path.name.endswith(".warc.zst"):
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as records:
                yield f"{path} (records)", records.read()
        elif path.suffix == ".parquet":
            yield f"{path} (rows)", repr(pq.read_table(path, partitioning=None).to_pylist()).encode()
    for table in TABLES:
        options = Options(raw_mode=True)
        rows = Rdict(str(folder / "frontier"), options, dict.fromkeys(TABLES, options))
        part = rows.get_column_family(table)
        yield f"frontier {table}", b" ".join(bytes(k) + b" " + bytes(v) for k, v in part.items())  # type: ignore[arg-type]
        del part
        rows.close()


def holders(folder: Path, *needles: bytes) -> list[str]:
    return [name for name, content in files_in(folder) for needle in needles if needle in content]


def crawl(folder: Path, coding: str, *seeds: str) -> Path:
    config = folder / "my.toml"
    config.write_text(CONFIG.format(coding=coding))
    done = skitter("crawl", *seeds, "--into", folder / "c", "--config", config, "--workers", 1)
    assert done.returncode in (0, 3), done.stderr
    return folder / "c"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[RawServer, RawServer]]:
    with serving_site(site_of(b"kept", 12)) as kept, serving_site(site_of(SECRET, 12)) as gone:
        yield kept, gone


def check_forgotten(folder: Path, kept: RawServer, gone: RawServer, pages: dict[str, str]) -> None:
    assert holders(folder, SECRET, gone.url.encode(), f"127.0.0.1:{gone.port}".encode()) == []
    assert "no defects" in said(skitter("verify", folder))
    sql = "select url, status, kind, content_digest from pages where status = 200 order by all"
    found = said(skitter("query", folder, sql, "--format", "csv"))
    assert found == pages["kept"]
    # the body that it had from the other site is its own now
    assert "a body that both sites have" in said(skitter("show", folder, f"{kept.url}/shared"))
    assert read_json("explain", f"{gone.url}/1", "--in", folder)["state"] == "unknown"


def kept_rows(folder: Path, kept: RawServer) -> dict[str, str]:
    where = f"url like '{kept.url}/%' and status = 200"
    sql = f"select url, status, kind, content_digest from pages where {where} order by all"
    return {"kept": said(skitter("query", folder, sql, "--format", "csv"))}


def test_nothing_of_a_host_is_left_and_others_lose_nothing(
    tmp_path: Path, servers: tuple[RawServer, RawServer]
) -> None:
    kept, gone = servers
    # first the one that goes: the other's record of the shared body then refers to it
    folder = crawl(tmp_path, "gzip", f"{gone.url}/")
    crawl(tmp_path, "gzip", f"{kept.url}/")
    assert holders(folder, SECRET)
    pages = kept_rows(folder, kept)
    sql = f"select count(*) as captures from pages where url like '{gone.url}/%'"
    captures = json.loads(said(skitter("query", folder, sql, "--format", "json")))["captures"]
    receipt = json.loads(said(skitter("forget", gone.url, "--in", folder, "--json")))
    assert receipt["captures"] == captures
    assert receipt["urls"] == captures - 1, "its robots.txt is none"
    assert receipt["bodies_given_to_others"] == 1
    check_forgotten(folder, kept, gone, pages)
    asked = len(gone.requests)
    done = skitter("crawl", f"{gone.url}/", f"{gone.url}/1", "--into", folder)
    assert "forgotten" in done.stderr
    assert len(gone.requests) == asked, "it is refused from now on"
    assert holders(folder, SECRET, gone.url.encode()) == []
    again = json.loads(said(skitter("forget", gone.url, "--in", folder, "--json")))
    assert (again["captures"], again["urls"], again["segments_rewritten"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("point", "coding"),
    [("after_acknowledge:1", "gzip"), ("before_removal:2", "zstd"), ("after_commit:9", "gzip")],
)
def test_a_kill_in_the_middle_is_finished_by_the_next_run(
    tmp_path: Path, servers: tuple[RawServer, RawServer], point: str, coding: str
) -> None:
    kept, gone = servers
    folder = crawl(tmp_path, coding, f"{gone.url}/", f"{kept.url}/")
    pages = kept_rows(folder, kept)
    killed = subprocess.run(
        command("forget", gone.url, "--in", folder),
        env={**ENVIRON, "SKITTER_FAULT_POINT": point},
        capture_output=True,
        timeout=90,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    said(skitter("forget", gone.url, "--in", folder))
    check_forgotten(folder, kept, gone, pages)


def test_one_url_is_forgotten_alone(tmp_path: Path, servers: tuple[RawServer, RawServer]) -> None:
    _, gone = servers
    folder = crawl(tmp_path, "gzip", f"{gone.url}/")
    receipt = json.loads(
        said(skitter("forget", f"{gone.url}/7", "--in", folder, "--json", "--receipt", tmp_path / "r.json"))
    )
    assert (receipt["captures"], receipt["urls"]) == (1, 1)
    assert json.loads((tmp_path / "r.json").read_text())["forgotten"] == f"{gone.url}/7"
    assert holders(folder, SECRET + b"7 ", f"{gone.url}/7 ".encode(), f'{gone.url}/7"'.encode()) == []
    assert "no defects" in said(skitter("verify", folder))
    assert read_json("explain", f"{gone.url}/8", "--in", folder)["state"] == "completed"
    assert "not an http or https URL" in complaint(skitter("forget", "ftp://a/b", "--in", folder), 2)
