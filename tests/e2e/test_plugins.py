"""Users' code in real crawls: items, links, faults, versions, as the commands show them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import ENVIRON, command, complaint, said, serving_site, skitter
from tests.raw_server import RawServer

PRODUCTS = {
    f"/products/{n}": b"""<html><head><title>Product %d</title></head><body><h1>Kettle %d</h1>
<span class=price>EUR %d,50</span><b data-sku="K-%d"></b><img src="/img/%d.jpg"><div class=related>
<a href="/products/%d">next</a></div><a href="/about">about</a><a href="/list?sort=up">sorted</a></body></html>"""
    % (n, n, n + 10, n, n, (n + 1) % 8)
    for n in range(8)
}
SITE = {
    "/": b'<html><body><a href="/products/0">products</a></body></html>',
    "/about": b"<html><title>About us</title><p>We sell kettles.</p></html>",
    "/list?sort=up": b"<html><title>sorted</title></html>",
    "/bonus": b"<html><title>Bonus</title></html>",
    "/private/x": b"<html><title>Private</title></html>",
    "/robots.txt": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 33\r\n\r\n"
    b"User-agent: *\nDisallow: /private\n",
    **PRODUCTS,
}
SHOP = """
import skitter
from dataclasses import dataclass

@dataclass
class Product:
    name: str
    price: float
    sku: str
    __key__ = ("sku",)

@skitter.page("*/products/*")
def product(page):
    yield Product(page.first("h1"), page.number(".price"), page.attr("[data-sku]", "data-sku"))
    for a in page.css(".related a"):
        page.follow(a, priority=70)
"""
RULES = """
[extract.offer]
match = "*/products/*"
key = ["sku"]
fields.name = "h1"
fields.price = { css = ".price", as = "number" }
fields.sku = { css = "[data-sku]", attr = "data-sku" }
fields.images = { xpath = "//img/@src", as = "urls", all = true }
"""
QUICK = "[politeness]\ndelay = 0.0\n[crawl]\nlinger = 1.0\n"


@pytest.fixture
def shop() -> Iterator[RawServer]:
    with serving_site(SITE) as server:
        yield server


def crawl(server: RawServer, folder: Path, *more: object, config: str = "") -> str:
    file = folder.with_suffix(".toml")
    file.write_text(QUICK + config)
    done = skitter("crawl", server.url, "--into", folder, "--allow-private", "--config", file, *more)
    assert done.returncode == 0, done.stderr
    return done.stderr


def rows(folder: Path, sql: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said(skitter("query", folder, sql, "--json")).splitlines()]


def plugin(folder: Path, source: str, name: str = "shop.py") -> Path:
    file = folder / name
    file.write_text(source)
    return file


def test_products_of_a_shop_are_rows_of_their_type(tmp_path: Path, shop: RawServer) -> None:
    told = crawl(shop, tmp_path / "c", "--with", plugin(tmp_path, SHOP))
    found = rows(tmp_path / "c", "select name, price, sku from Product order by sku")
    assert found == [{"name": f"Kettle {n}", "price": n + 10.5, "sku": f"K-{n}"} for n in range(8)]
    assert "8  by product" in told
    assert rows(tmp_path / "c", "select count(*) n from items_all") == [{"n": 8}]
    verified = said(skitter("verify", tmp_path / "c"))
    assert "no defects" in verified


def test_rules_in_toml_alone_do_the_same(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", config=RULES)
    found = rows(tmp_path / "c", "select name, price, sku, images from offer order by sku")
    assert found == [
        {
            "name": f"Kettle {n}",
            "price": n + 10.5,
            "sku": f"K-{n}",
            "images": [f"{shop.url}/img/{n}.jpg"],
        }
        for n in range(8)
    ]
    # a later run reads the rules from the crawl's own folder
    assert "extract.offer" in (tmp_path / "c" / "crawl.toml").read_text()
    said(skitter("crawl", "--into", tmp_path / "c"))


def test_a_links_hook_says_which_links_are_followed(tmp_path: Path, shop: RawServer) -> None:
    source = (
        "import skitter\n@skitter.links('*/products/*')\ndef choose(page, links):\n"
        "    return [link.at(80) for link in links if 'sort=' not in link.url]\n"
    )
    crawl(shop, tmp_path / "c", "--with", plugin(tmp_path, source))
    asked = {request.raw.split()[1].decode() for request in shop.requests}
    assert "/list?sort=up" not in asked
    assert {"/about", "/products/7"} <= asked


def test_what_a_plugin_follows_goes_through_admission_like_any_link(tmp_path: Path, shop: RawServer) -> None:
    source = (
        "import skitter\n@skitter.page\ndef more(page):\n"
        "    for url in ('/bonus', '/private/x', 'http://127.0.0.2:9/else', '/secret/blocked', 'mailto:x@y'):\n"
        "        page.follow(url)\n"
    )
    blocked = tmp_path / "blocked.txt"
    blocked.write_text(f"{shop.url}/secret/*\n")
    config = f'[crawl]\nlinger = 1.0\nblocklists = ["{blocked}"]\n[politeness]\ndelay = 0.0\n'
    file = tmp_path / "c.toml"
    file.write_text(config)
    done = skitter(
        *("crawl", shop.url, "--into", tmp_path / "c", "--allow-private", "--config", file),
        *("--with", plugin(tmp_path, source)),
    )
    assert done.returncode == 0, done.stderr
    asked = {request.raw.split()[1].decode() for request in shop.requests}
    assert "/bonus" in asked
    assert not {"/private/x", "/secret/blocked"} & asked
    told = {
        url: said(skitter("explain", url, "--in", tmp_path / "c"))
        for url in (f"{shop.url}/private/x", "http://127.0.0.2:9/else", f"{shop.url}/secret/blocked")
    }
    assert "robots.txt" in told[f"{shop.url}/private/x"]
    assert "scope" in told["http://127.0.0.2:9/else"]
    assert "blocklist" in told[f"{shop.url}/secret/blocked"]
    assert all("followed by the extractor more" in words for words in told.values())


def test_links_of_a_page_with_a_good_score_are_asked_for_first(tmp_path: Path) -> None:
    source = "import skitter\n@skitter.score\ndef about(page):\n    return page.density('kettle')\n"
    pages = {
        "/": b'<html><a href="/poor">poor</a><a href="/good">good</a></html>',
        "/poor": b'<html><p>Nothing of it.</p><a href="/poor/1">more</a></html>',
        "/good": b'<html><p>Kettle after kettle.</p><a href="/good/1">more</a></html>',
    }
    with serving_site(pages) as server:
        crawl(server, tmp_path / "c", "--with", plugin(tmp_path, source))
        asked = [request.raw.split()[1].decode() for request in server.requests]
    assert asked[-2:] == ["/good/1", "/poor/1"]


def test_a_reader_brings_a_type_of_its_own_into_the_crawl(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 29\r\n\r\n"
    pages = {
        "/": b'<html><a href="/list.csv">a list</a></html>',
        "/list.csv": head + b"name,page\nkettle,/found.html\r\n",
        "/found.html": b"<html><title>Found</title></html>",
    }
    source = (
        "import skitter\n@skitter.reader('text/csv')\ndef table(page):\n"
        "    lines = page.body.decode().split()\n"
        "    links = [line.split(',')[1] for line in lines[1:]]\n"
        "    return skitter.Content(title='A table', text=lines[0], links=links)\n"
    )
    with serving_site(pages) as server:
        crawl(server, tmp_path / "c", "--with", plugin(tmp_path, source))
        found = rows(tmp_path / "c", "select path, title from pages where kind = 'page' order by path")
        assert found == [
            {"path": "/", "title": None},
            {"path": "/found.html", "title": "Found"},
            {"path": "/list.csv", "title": "A table"},
        ]
        assert rows(tmp_path / "c", "select text from text where url like '%csv'") == [{"text": "name,page"}]


def test_a_page_of_json_is_fetched_for_a_hook_of_its_type(tmp_path: Path) -> None:
    answer = b'{"products": [{"name": "Kettle", "price": 19.5}, {"name": "Pot", "price": 7}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer)
    source = (
        "import skitter\n@skitter.page('*/api', type='application/json', key='name')\n"
        "def product(page):\n    yield from ({'@type': 'Product', **one} for one in page.json()['products'])\n"
    )
    with serving_site({"/": b'<html><a href="/api">all</a></html>', "/api": head + answer}) as server:
        crawl(server, tmp_path / "c", "--with", plugin(tmp_path, source))
        found = rows(
            tmp_path / "c",
            "select name, price, key from Product p join items using (url) where "
            "items.key = p.name order by name",
        )
        assert found == [
            {"name": "Kettle", "price": 19.5, "key": "Kettle"},
            {"name": "Pot", "price": 7.0, "key": "Pot"},
        ]


def test_a_correction_brings_the_structured_data_of_its_type(tmp_path: Path) -> None:
    data = b"""<html><script type="application/ld+json">{"@graph": [
{"@type": "Product", "name": "Kettle", "image": "k.jpg", "offers": {"price": "19,50"}},
{"@type": "Product", "name": "Broken"}, {"@type": "Organization", "name": "A shop"}]}</script></html>"""
    source = (
        "import skitter\n@skitter.correct(skitter.StructuredData, type='Product')\ndef clean(item, page):\n"
        "    if 'offers' not in item:\n        return None\n"
        "    item['price'] = skitter.number(item.pop('offers')['price'])\n    return item\n"
    )
    with serving_site({"/": data}) as server:
        crawl(server, tmp_path / "c", "--with", plugin(tmp_path, source))
        found = rows(tmp_path / "c", "select name, price, image from Product")
        assert found == [{"name": "Kettle", "price": 19.5, "image": f"{server.url}/k.jpg"}]
        assert rows(tmp_path / "c", "select distinct type from items") == [{"type": "Product"}]


def test_the_same_body_again_is_not_extracted_again(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", "--with", plugin(tmp_path, SHOP))
    said(skitter("refresh", tmp_path / "c"))
    said(skitter("crawl", "--into", tmp_path / "c"))
    fetched = rows(tmp_path / "c", "select count(*) n from pages where path like '/products/%'")
    assert fetched == [{"n": 16}]
    assert rows(tmp_path / "c", "select count(*) n from items_all") == [{"n": 8}]


def test_bad_plugins_leave_every_page_settled_and_their_faults_on_record(tmp_path: Path) -> None:
    names = "raises loops backtracks allocates exits crashes floods prints mistypes swallows".split()
    links = "".join(f'<a href="/{name}">{name}</a>' for name in names)
    pages = {f"/{name}": f"<html><title>{name}</title></html>".encode() for name in names}
    bad = Path(__file__).parents[1] / "plugins" / "bad.py"
    with serving_site({"/": f"<html>{links}</html>".encode(), **pages}) as server:
        told = crawl(server, tmp_path / "c", "--with", bad, config="[plugins]\nseconds = 0.4\n")
    folder = tmp_path / "c"
    settled = rows(folder, "select count(*) n from pages where kind = 'page' and status = 200")
    assert settled == [{"n": 11}]
    faults = rows(
        folder, "select extractor, split_part(fault, ':', 1) kind from items_all where fault is not null"
    )
    assert {row["extractor"]: row["kind"] for row in faults} == {
        "raises": "raised",
        "loops": "late",
        "backtracks": "late",
        "allocates": "memory",
        "exits": "died",
        "crashes": "died",
        "floods": "output",
        "mistypes": "wrong_item",
        "swallows": "late",
    }
    assert rows(folder, "select count(*) n from items where extractor = 'sound'") == [{"n": 11}]
    assert rows(folder, "select extractor from items where extractor <> 'sound'") == [{"extractor": "prints"}]
    assert "pages of which raises made nothing" in told
    log = [json.loads(line) for line in (folder / "skitter.log").read_text().splitlines()]
    failed = {line["extractor"]: line["kind"] for line in log if line["event"] == "extractor_failed"}
    assert failed["raises"] == "raised"
    assert len(failed) == 9


def test_a_broken_plugin_stops_the_start_before_anything_is_written(tmp_path: Path) -> None:
    file = plugin(tmp_path, "import skitter\n\nboom(\n")
    done = skitter("crawl", "http://127.0.0.1/", "--into", tmp_path / "c", "--allow-private", "--with", file)
    assert f"{file} line 3" in complaint(done, 2)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('[extract.a]\nfields.name = "h1["\n', "is no CSS selector"),
        ('[extract.a]\nfields.name = { xpath = "//[" }\n', "is no XPath"),
        ("[extract.a]\nmatch = '*'\n", "has no fields"),
        ('[extract.a]\nfields.n = "h1"\nkey = "sku"\n', "key names sku, which is none of its fields"),
        ('[extract.a]\nfields.n = { css = "h1", as = "date" }\n', "must be one of text, number"),
        ('[extract.a]\nfeilds.n = "h1"\n', "line 1: [extract.a] Object contains unknown field `feilds`"),
        ('[plugins]\nwiht = ["x.py"]\n', "did you mean with?"),
    ],
)
def test_a_rule_that_cannot_be_carried_out_stops_the_start(tmp_path: Path, rule: str, words: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(rule)
    done = skitter(
        "crawl", "http://127.0.0.1/", "--into", tmp_path / "c", "--allow-private", "--config", file
    )
    assert words in complaint(done, 2)


def test_extract_makes_the_same_rows_of_the_archive_and_is_then_done(tmp_path: Path, shop: RawServer) -> None:
    file = plugin(tmp_path, SHOP)
    crawl(shop, tmp_path / "c", "--with", file)
    first = said(skitter("extract", tmp_path / "c", "--with", file, "--jobs", "2"))
    assert "8 items of 11 pages in 1 segment" in first
    assert said(skitter("extract", tmp_path / "c", "--with", file)) == "1 segment done already\n"
    columns = "url, fetch_time, extractor, version, type, key, n, item, warc_filename, warc_record_offset"
    found = rows(tmp_path / "c", f"select {columns}, count(*) times from items_all group by all")
    assert [row["times"] for row in found] == [2] * 8
    assert rows(tmp_path / "c", "select count(*) n from Product") == [{"n": 8}]
    assert "no defects" in said(skitter("verify", tmp_path / "c"))


def test_a_newer_version_takes_the_place_of_what_the_crawl_made(tmp_path: Path, shop: RawServer) -> None:
    file = plugin(tmp_path, SHOP)
    crawl(shop, tmp_path / "c", "--with", file)
    newer = plugin(
        tmp_path, SHOP.replace("    yield Product(", "    if page.url.endswith('/1'): yield Product(")
    )
    said(skitter("extract", tmp_path / "c", "--with", newer))
    assert rows(tmp_path / "c", "select sku from Product") == [{"sku": "K-1"}]
    # and the crawl goes on as before, with the parts of extract beside its own
    said(skitter("refresh", tmp_path / "c"))
    said(skitter("crawl", "--into", tmp_path / "c"))
    assert "no defects" in said(skitter("verify", tmp_path / "c"))


def test_items_are_exported_with_a_column_for_each_field(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", "--with", plugin(tmp_path, SHOP))
    for form in ("csv", "jsonl", "parquet"):
        told = said(
            skitter("export", tmp_path / "c", "--to", form, tmp_path / f"p.{form}", "--items", "Product")
        )
        assert "8 items" in told
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0].startswith("name,price,sku,url")
    assert len(lines) == 9
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])["price"] == 10.5
    wrong = skitter("export", tmp_path / "c", "--to", "csv", tmp_path / "x", "--items", "Nonsense")
    assert "no items of type Nonsense" in complaint(wrong, 2)


def test_plugins_are_listed_with_their_versions_and_places(tmp_path: Path) -> None:
    file = plugin(tmp_path, SHOP)
    told = said(skitter("plugins", "--with", file, "--with", "structured")).splitlines()
    assert told[1].split()[:3] == ["product", "page", "*/products/*"]
    assert f"{file} line 12" in told[1]
    assert "built-in structured" in told[2]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_items_are_the_same_with_several_workers(tmp_path: Path, shop: RawServer, workers: str) -> None:
    crawl(shop, tmp_path / "c", "--with", plugin(tmp_path, SHOP), "--workers", workers)
    assert rows(tmp_path / "c", "select count(*) n, count(distinct url) urls from items_all") == [
        {"n": 8, "urls": 8}
    ]


def test_a_plugin_that_comes_later_sees_what_is_fetched_from_then_on(tmp_path: Path, shop: RawServer) -> None:
    """Also when the run before was killed, and left a segment whose rows have no such table."""
    folder, file = tmp_path / "c", tmp_path / "slow.toml"
    file.write_text("[politeness]\ndelay = 0.2\n[crawl]\nlinger = 1.0\n")
    words = command("crawl", shop.url, "--into", folder, "--allow-private", "--config", file)
    with subprocess.Popen(words, env=ENVIRON, stderr=subprocess.DEVNULL) as child:
        while not any(b"/products/2 " in request.raw for request in shop.requests):
            assert child.poll() is None
        child.kill()
    crawl(shop, folder, "--with", plugin(tmp_path, SHOP))
    made = {row["url"] for row in rows(folder, "select url from items_all")}
    assert f"{shop.url}/products/7" in made
    kept = rows(folder, "select count(*) n from pages where path like '/products/%'")
    assert kept == [{"n": 8}]
    assert "no defects" in said(skitter("verify", folder))
    said(skitter("extract", folder, "--with", plugin(tmp_path, SHOP)))
    assert rows(folder, "select count(*) n from Product") == [{"n": 8}]


def test_a_worker_elsewhere_refuses_another_version_in_one_line(tmp_path: Path, shop: RawServer) -> None:
    file = plugin(tmp_path, SHOP)
    config = tmp_path / "c.toml"
    config.write_text("[fetch]\nallow_private = true\n")
    words = command("serve", tmp_path / "c", shop.url, "--listen", "127.0.0.1:0", "--json", "--with", file)
    words += ["--config", str(config)]
    with subprocess.Popen(words, env=ENVIRON, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())["serving"]
            file.write_text(SHOP + "\n# changed\n")
            done = skitter("worker", "--join", where, "--allow", "private")
            assert done.returncode == 2
            joined, refused = done.stderr.splitlines()
            assert joined.startswith(f"skitter: joined {where}")
            assert "plugins differ from those of the crawl (product): copy the same" in refused
            assert str(file) in refused
        finally:
            server.terminate()
