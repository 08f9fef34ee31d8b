"""What the tables promise, a crawl writes: no column of `pages` is there for nothing."""

from __future__ import annotations

import json
from pathlib import Path

from skitter.archive.schema import PAGES
from tests.e2e.command import said, serving_site, skitter
from tests.raw_server import page

STORY = b" ".join(b"word%d%c" % (n % 7, 97 + n % 26) for n in range(60))
HOME = (
    b"<html lang=en><title>Home</title><meta name=robots content='noarchive, unavailable_after: 2090-01-01'>"
    b"<main>" + STORY + b"</main>"
    b"<a href=/copy>1</a><a href=/same>2</a><a href=/moved>3</a><a href=/long>4</a>"
)
# Deeper than the others, because a host that breaks is left alone.
SAME = b"<a href=/broken?q=1>5</a>" + b"the same body " * 100
SITE = {
    "/": page(
        HOME,
        b'ETag: "1"',
        b"Last-Modified: Mon, 17 Nov 2025 10:00:00 GMT",
        b"Content-Signal: search=yes",
        b"TDM-Reservation: 1",
        b"TDM-Policy: https://example.org/terms",
    ),
    "/copy": SAME,
    "/same": SAME,
    "/moved": page(b"", b"Location: /copy", status=b"302 Found"),
    "/broken?q=1": page(b"out of order", status=b"500 Internal Server Error"),
    "/long": b"<p>" + b"long " * 2000,
}


def test_every_column_of_pages_is_filled_by_some_answer(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    with serving_site(SITE) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        host = f'[hosts."{url}"]\nbearer = {{ env = "ITS_TOKEN" }}\n'
        config.write_text(f'[fetch]\nmax_body = 5000\n[focus]\nwords = ["long"]\n{host}')
        arguments = ("--into", tmp_path / "c", "--config", config, "--allow-private", "--delay", "0")
        skitter(
            "crawl", url + "/", *arguments, environ={"SKITTER_CRAWL_LINGER": "0", "ITS_TOKEN": "of this host"}
        )
    counts = ", ".join(f"count({column.name}) as {column.name}" for column in PAGES.columns)
    row = json.loads(said(skitter("query", tmp_path / "c", f"select {counts} from pages_in_parts", "--json")))
    assert {name for name, filled in row.items() if not filled} == set()
