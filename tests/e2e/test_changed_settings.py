"""A crawl goes on with other settings: what they forbid is not fetched, what they allow comes back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import Done, read_json, said, serving_site, skitter
from tests.raw_server import RawServer, page

LIBRARY = [f"/library/{n}" for n in range(12)]
CHAPTERS = [f"/chapter/{n}" for n in range(4)]
# home -> chapters -> a note each, which links an appendix; and other hosts of the same domain and of another
HOME = "".join(f"<a href={path}>{path} of the book</a> " for path in [*CHAPTERS, *LIBRARY])
OTHERS = "<a href=http://www.book.test/news>news</a> <a href=http://shop.test/>shop</a> <img src=/cover.png>"
SITE = {
    "/robots.txt": page(b"", status=b"404 Not Found"),
    "/": f"<title>Home</title>{HOME}{OTHERS}".encode(),
    "/news": b"<title>News</title> what is new",
    "/cover.png": b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\npng",
    "/appendix": b"<title>Appendix</title> the last page <a href=/table>table</a>",
    "/table": b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 12\r\n\r\na,b\n1,2\n3,4\n",
    **{path: f"<title>{path}</title> all about {path}".encode() for path in LIBRARY},
    **{path: f"<title>{path}</title><a href={path}/note>note</a>".encode() for path in CHAPTERS},
    **{f"{path}/note": b"<title>Note</title><a href=/appendix>appendix</a>" for path in CHAPTERS},
}
SEED = "http://book.test/"
ALL = 1 + len(CHAPTERS) * 2 + len(LIBRARY) + 1
CONFIG = 'fetch.allow_private = true\npoliteness.delay = 0.0\ntraps.mode = "off"\n'


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving_site(SITE) as server:
        yield server


class Folder:
    """The folder of a crawl of the book, and the command that goes on in it."""

    def __init__(self, path: Path, server: RawServer) -> None:
        self.path = path
        self._server = server
        port = server.url.rpartition(":")[2]
        self._config = path.with_suffix(".toml")
        self._config.write_text(CONFIG)
        done = self.crawl("--max-pages", 1, "--resolve", f"*:80:127.0.0.1:{port}", SEED)
        assert "Stopped at the page limit" in done.stderr
        assert self.pages() == 1

    def crawl(self, *flags: object, config: str = "") -> Done:
        self._config.write_text(CONFIG + config)
        done = skitter("crawl", "--into", self.path, "--config", self._config, *flags)
        said(done)
        return done

    def to_the_end(self, *flags: object, config: str = "") -> str:
        done = self.crawl("--max-pages", 0, *flags, config=config)
        assert "Complete: nothing is left to fetch." in done.stderr
        return done.stderr

    def pages(self) -> int:
        found: int = read_json("stats", self.path)["pages"]
        return found

    def asked(self, part: str) -> int:
        return sum(part.encode() in request.raw.split(b"\r\n")[0] for request in self._server.requests)

    def reason(self, path: str) -> str:
        found: str = read_json("explain", SEED + path, "--in", self.path)["reason"]
        return found


@pytest.fixture
def begun(tmp_path: Path, server: RawServer) -> Folder:
    """Of which the home page is fetched, and all it links is queued."""
    return Folder(tmp_path / "crawl", server)


def test_an_exclude_given_later_keeps_what_is_queued_from_being_fetched(begun: Folder) -> None:
    told = begun.to_the_end("--exclude", "/library/")
    assert begun.asked("/library/") == 0
    assert begun.pages() == ALL - len(LIBRARY)
    assert "excluded 12" in told
    assert begun.reason("library/1") == "excluded: matches exclude '/library/'"


def test_an_exclude_that_is_taken_back_fetches_what_it_refused_and_says_so(begun: Folder) -> None:
    begun.to_the_end("--exclude", "/library/")
    told = begun.to_the_end(config="crawl.exclude = []\n")
    assert "settings changed: 12 URLs refused by include or exclude are judged again" in told
    assert "12 URLs refused by include or exclude came back" in told
    assert begun.asked("/library/") == len(LIBRARY)
    assert begun.pages() == ALL
    assert "urls_came_back" in (begun.path / "skitter.log").read_text()


def test_a_narrower_depth_leaves_out_what_is_queued_and_a_wider_one_goes_on_from_there(begun: Folder) -> None:
    begun.to_the_end("--max-depth", 0)
    assert begun.pages() == 1
    begun.to_the_end("--max-depth", 1)
    assert begun.pages() == 1 + len(CHAPTERS) + len(LIBRARY)
    told = begun.to_the_end("--max-depth", 9)
    assert "4 URLs refused by depth came back" in told
    assert begun.pages() == ALL
    assert begun.asked("/appendix") == 1


def test_a_wider_scope_fetches_other_hosts_that_were_linked(begun: Folder) -> None:
    begun.to_the_end()
    assert begun.pages() == ALL
    told = begun.to_the_end("--scope", "domain")
    assert "settings changed: 2 URLs refused by scope are judged again" in told
    assert "1 URL refused by scope came back" in told
    assert begun.pages() == ALL + 1
    assert "1 URL refused by scope came back" in begun.to_the_end("--scope", "any")
    assert begun.pages() > ALL + 1


def test_a_wider_scope_counts_whatever_number_of_processes_crawl(begun: Folder) -> None:
    begun.to_the_end("--workers", 2)
    told = begun.to_the_end("--scope", "domain", "--workers", 2)
    assert "1 URL refused by scope came back" in told
    assert begun.pages() == ALL + 1


def test_a_seed_given_later_brings_links_to_its_host_back(begun: Folder) -> None:
    begun.to_the_end()
    told = begun.to_the_end("http://www.book.test/appendix")
    assert "1 URL refused by scope came back" in told
    assert begun.asked("/news") == 1


def test_a_larger_budget_fetches_what_the_smaller_one_refused(begun: Folder) -> None:
    begun.to_the_end(config="politeness.host_budget = 5\n")
    assert begun.pages() == 5
    told = begun.to_the_end(config="politeness.host_budget = 0\n")
    assert "refused by budget came back" in told
    assert begun.pages() == ALL


def test_a_plugin_that_reads_another_type_later_fetches_what_was_refused_for_it(begun: Folder) -> None:
    told = begun.to_the_end()
    assert "type unwanted 1" in told
    plugin = begun.path.with_suffix(".py")
    plugin.write_text(
        'import skitter\n\n\n@skitter.page("*", type="text/csv")\n'
        'def lines(page):\n    yield {"lines": page.body.count(b"\\n")}\n'
    )
    told = begun.to_the_end("--with", plugin)
    assert "1 URL refused by content type came back" in told
    assert begun.asked("/table") == 2
    found = said(skitter("query", begun.path, "select item from items where extractor = 'lines'", "--json"))
    assert json.loads(json.loads(found)["item"]) == {"lines": 3}
    begun.to_the_end("--with", plugin)
    assert begun.asked("/table") == 2


def test_requisites_wanted_later_are_fetched_once_their_pages_are_read_again(begun: Folder) -> None:
    begun.to_the_end()
    told = begun.to_the_end("--requisites")
    assert f"what {ALL} pages fetched earlier need is not known; after this crawl, skitter refresh" in told
    assert begun.asked("/cover.png") == 0
    assert read_json("refresh", begun.path)["refreshed"] >= ALL
    begun.to_the_end("--requisites")
    assert begun.asked("/cover.png") == 1


def test_the_command_that_a_crawl_names_at_its_page_limit_goes_on(begun: Folder) -> None:
    told = begun.crawl("--max-pages", 5).stderr
    (line,) = [line for line in told.splitlines() if "--max-pages" in line]
    arguments = shlex.split(line.removesuffix("go on from here"))
    said(skitter(*arguments[1:]))
    assert arguments[-2:] == ["--max-pages", "10"]
    assert begun.pages() == 10


def test_a_raised_page_limit_fetches_on(begun: Folder) -> None:
    begun.crawl("--max-pages", 5)
    assert begun.pages() == 5
    begun.to_the_end()
    assert begun.pages() == ALL
