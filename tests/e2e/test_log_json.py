"""`--log-json`: the log on standard error, for machines, and never at the crawl's expense."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.command import ENVIRON, command, serving_site
from tests.raw_server import RawServer

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LEVELS = ("info", "warning", "error")
OF_DISPLAY = ("note", "progress", "summary")
PAGES = {"/": b"<a href='/missing'>one</a><a href='/broken'>two</a>", "/broken": b"HTTP/1.1 nonsense\r\n\r\n"}


def crawl_of(site: RawServer, folder: Path) -> list[str]:
    quick = ("--delay", "0.01", "--allow-private", "--max-pages", "1")
    return command("crawl", f"http://127.0.0.1:{site.port}/", "--into", folder, *quick, "--log-json")


def test_standard_error_is_json_to_the_last_line(tmp_path: Path) -> None:
    with serving_site(PAGES) as site:
        done = subprocess.run(
            crawl_of(site, tmp_path / "crawl"), env=ENVIRON, capture_output=True, timeout=60
        )
    assert (done.returncode, done.stdout) == (0, b"")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {"crawl_started", "crawl_ended", "summary"} <= {line["event"] for line in lines}
    assert all(TIME.fullmatch(line["time"]) and line["level"] in LEVELS for line in lines)
    logged = [json.loads(line) for line in (tmp_path / "crawl" / "skitter.log").read_text().splitlines()]
    assert [line for line in lines if line["event"] not in OF_DISPLAY] == logged


def test_a_reader_that_does_not_read_costs_lines_and_no_time(tmp_path: Path) -> None:
    source = f"""
import os
from pathlib import Path
from skitter.clock import SystemClock
from skitter.log import Log
from skitter.telemetry import Event

reader, writer = os.pipe()
os.set_blocking(writer, False)
try:
    while True:
        os.write(writer, bytes(65536))
except BlockingIOError:
    os.set_blocking(writer, True)
os.dup2(writer, 2)
log = Log(Path({str(tmp_path / "log")!r}), SystemClock(), echo=True)
for number in range(100):
    log.write(Event.URL_DEAD, number=number)
log.close()
print(log.dropped)
"""
    done = subprocess.run(
        [sys.executable, "-c", source], env=ENVIRON, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "100\n", done.stderr
    assert len((tmp_path / "log").read_text().splitlines()) == 100


def test_a_reader_that_is_gone_does_not_end_the_crawl(tmp_path: Path) -> None:
    with serving_site(PAGES) as site:
        child = subprocess.Popen(crawl_of(site, tmp_path / "crawl"), env=ENVIRON, stderr=subprocess.PIPE)
        assert child.stderr is not None
        child.stderr.close()
        assert child.wait(60) == 0
    assert b"crawl_ended" in (tmp_path / "crawl" / "skitter.log").read_bytes()
