"""`skitter ledger`: what a host was asked, and a host whose day is full is left alone."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.command import complaint, read_json, said, serving_site, skitter
from tests.raw_server import page

PAGES = {
    "/": b"".join(b"<a href=/%d>page</a>" % n for n in range(30)) + b"<a href=/bad>b</a>",
    "/robots.txt": b"HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\nUser-agent: *\nDisallow: /private/\x1b[31m\n",
    "/bad": page(b"oops", status=b"500 Broken"),
    **{f"/{n}": b"<title>page %d</title> text %d" % (n, n * 7919) for n in range(30)},
}
CONFIG = "[retry]\nattempts = 1\n[fetch]\nallow_private = true\n[politeness]\ndelay = 0.01\n"


def crawl(folder: Path, url: str, more: str = "") -> None:
    (folder / "my.toml").write_text(CONFIG + more)
    done = skitter("crawl", url, "--into", folder / "c", "--config", folder / "my.toml")
    assert done.returncode in (0, 3), done.stderr


def test_the_ledger_tells_a_webmaster_what_was_asked(tmp_path: Path) -> None:
    with serving_site(PAGES) as server:
        crawl(tmp_path, f"{server.url}/")
    (found,) = read_json("ledger", server.url, "--in", tmp_path / "c", "--limit", 5)
    assert found["requests"] == len(server.requests)
    assert found["robots_requests"] == 1
    assert found["errors"] == {"status 500": 1}
    assert (found["statuses"]["200"], found["statuses"]["500"]) == (32, 1)
    assert found["smallest_gap"] >= found["required"] - 0.001
    assert found["addresses"] == ["127.0.0.1"]
    assert [fetch["url"] for fetch in found["latest_errors"]] == [f"{server.url}/bad"]
    assert len(found["latest"]) == 5
    text = said(skitter("ledger", server.url, "--in", tmp_path / "c"))
    assert f"{len(server.requests)} requests (1 of them for robots.txt)" in text
    assert "| Disallow: /private/?[31m" in text, "what strangers wrote is harmless to a terminal"
    assert "status 500 1" in text
    assert "is not known to this crawl" in complaint(skitter("ledger", "a.test", "--in", tmp_path / "c"), 2)


def test_a_host_is_asked_no_more_than_its_load_of_the_day(tmp_path: Path) -> None:
    limits = (
        '[crawl]\nlinger = 1.0\n[hosts."127.0.0.1"]\ndaily_requests = 7\ntime_zone = "Pacific/Kiritimati"\n'
    )
    with serving_site(PAGES) as server:
        crawl(tmp_path, f"{server.url}/", limits.replace("127.0.0.1", server.url))
        crawl(tmp_path, f"{server.url}/", limits.replace("127.0.0.1", server.url))
        assert len(server.requests) == 7
        words = said(skitter("explain", f"{server.url}/29", "--in", tmp_path / "c"))
        assert "its load of the day is spent: 7 of 7 requests" in words
        done = skitter("policy", tmp_path / "c", server.url, "--quiet-hours", "8-9")
        assert "must be hours such as 22:00-06:00" in complaint(done, 2)
        done = skitter("policy", tmp_path / "c", server.url, "--time-zone", "Europe/Atlantis")
        assert "must be a time zone that this machine knows" in complaint(done, 2)
        shown = said(skitter("policy", tmp_path / "c", server.url, "--quiet-hours", "00:00-23:59"))
        assert shown.strip() == f"{server.url}: quiet 00:00-23:59 by the clock of UTC"
