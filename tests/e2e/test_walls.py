"""A crawl that meets walls steps back and says so, and an operator may overrule it."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.command import read_json, said, serving_site, skitter

GATE = (
    b"<h1>You must be logged in to view this page</h1><form><input type=password></form><a href=/hidden>x</a>"
)
BLOCK = b"<title>Access Denied</title><h1>Access Denied</h1><p>Reference #18.%d</p><a href=/hidden>x</a>"
STORY = b"<title>story</title><p>" + b" ".join(b"word%d" % n for n in range(300))
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n[crawl]\nlinger = 0.5\n"
REFUSE = "[walls]\nmode = 'on'\n"


def crawl(folder: Path, url: str, more: str = "") -> Path:
    (folder / "my.toml").write_text(CONFIG + more)
    done = skitter("crawl", url, "--into", folder / "c", "--config", folder / "my.toml")
    assert done.returncode in (0, 3), done.stderr
    return folder / "c"


def test_a_gate_is_no_page_and_teaches_nothing(tmp_path: Path) -> None:
    pages = {
        "/": b"<a href=/gate>g</a><a href=/story>s</a>" + STORY,
        "/gate": GATE,
        "/story": STORY + b" more",
    }
    with serving_site(pages) as server:
        folder = crawl(tmp_path, f"{server.url}/", REFUSE)
        found = read_json("explain", f"{server.url}/gate", "--in", folder)
        assert found["state"] == "dead_letter"
        assert "login wall" in found["reason"]
        assert "asks for a password" in found["reason"]
        assert read_json("explain", f"{server.url}/hidden", "--in", folder)["state"] == "unknown"
        assert read_json("explain", f"{server.url}/story", "--in", folder)["state"] == "completed"
        assert read_json("stats", folder)["pages"] == 2
        assert "no defects" in said(skitter("verify", folder))
        said(skitter("policy", folder, server.url, "--ignore-walls"))
        said(skitter("dead", folder, "--requeue"))
        skitter("crawl", "--into", folder)
        assert read_json("explain", f"{server.url}/gate", "--in", folder)["state"] == "completed"


def test_a_host_that_turns_us_away_is_left_alone(tmp_path: Path) -> None:
    links = b"".join(b"<a href=/%d>x</a>" % n for n in range(30))
    pages = {"/": links + STORY} | {f"/{n}": BLOCK % n for n in range(30)}
    with serving_site(pages) as server:
        folder = crawl(tmp_path, f"{server.url}/", REFUSE)
        assert len(server.requests) <= 3 + 2, "a block is not asked again and again"
        (host,) = read_json("hosts", folder)
        assert host["standing"] == "backing_off"


def test_observing_takes_them_for_pages_and_notes_it(tmp_path: Path) -> None:
    pages = {"/": b"<a href=/gate>g</a>" + STORY, "/gate": GATE, "/hidden": STORY + b" hidden"}
    with serving_site(pages) as server:
        folder = crawl(tmp_path, f"{server.url}/", "[walls]\nmode = 'observe'\n")
        assert read_json("stats", folder)["pages"] == 3
        assert "looks like a login wall" in said(skitter("explain", f"{server.url}/gate", "--in", folder))
