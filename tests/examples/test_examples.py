"""Every example does what it says, against a small shop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile

from skitter.errors import UsageError
from skitter.render.browser import find_program
from skitter.settings.rendering import RenderSettings
from skitter.testing.apps.sites import AppsPlan
from skitter.testing.apps.web import AppsWeb
from tests.e2e.command import ENVIRON, command, said, serving_site, skitter
from tests.e2e.test_identities import PASSWORD, ForumServer
from tests.e2e.test_identities import server as server  # a fixture
from tests.raw_server import RawServer

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT = 12
PRODUCT = """<html><title>{0}</title><h1>Kettle {0}</h1><b class=price>EUR {1},50</b>
<img class=product src="/img/{0}.jpg"><a href="/about">about us</a><a href="/list?sort=up">sorted</a></html>"""
SITE = {f"/products/{n}": PRODUCT.format(n, 10 + n).encode() for n in range(COUNT)}
SITE |= {
    "/": b'<html><a href="/list">all products</a></html>',
    "/list": "".join(f'<a href="/products/{n}">{n}</a>' for n in range(COUNT)).encode(),
    "/list?sort=up": b"<html><title>sorted</title></html>",
    "/about": b"<html><title>about</title></html>",
}
QUICK = """
[politeness]
delay = 0.0
[crawl]
linger = 1.0
[traps]
mode = "off"
[fetch]
allow_private = true
resolve = ["*:80:127.0.0.1:{port}"]
"""


@pytest.fixture
def shop() -> Iterator[RawServer]:
    with serving_site(SITE) as server:
        yield server


def crawl(shop: RawServer, folder: Path, *more: object, config: str = "") -> None:
    file = folder.with_suffix(".toml")
    file.write_text(QUICK.format(port=shop.port) + config)
    said(skitter("crawl", "http://shop.test/", "--into", folder, "--config", file, *more))


def products(folder: Path, kind: str) -> list[tuple[str, float, str]]:
    target = folder.parent / "products.parquet"
    said(skitter("export", folder, "--to", "parquet", target, "--items", kind))
    rows = ParquetFile(target).read().to_pylist()
    return sorted((row["title"], row["price"], row["image"]) for row in rows)


EXPECTED = sorted((f"Kettle {n}", n + 10.5, f"http://shop.test/img/{n}.jpg") for n in range(COUNT))


def test_a_shop_into_parquet_takes_at_most_fifteen_lines_of_python(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", "--with", EXAMPLES / "shop.py")
    assert products(tmp_path / "c", "Product") == EXPECTED
    assert len((EXAMPLES / "shop.py").read_text().strip().splitlines()) <= 15


def test_a_shop_into_parquet_takes_no_code_at_all(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", config=(EXAMPLES / "shop.toml").read_text())
    assert products(tmp_path / "c", "product") == EXPECTED


def test_only_what_leads_to_products_is_asked_for(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", "--with", EXAMPLES / "only_products.py")
    asked = {request.raw.split()[1].decode() for request in shop.requests}
    assert asked == {"/robots.txt", "/", "/list", *(f"/products/{n}" for n in range(COUNT))}


def test_only_pages_of_products_are_kept(tmp_path: Path, shop: RawServer) -> None:
    crawl(shop, tmp_path / "c", config=(EXAMPLES / "only_products.toml").read_text())
    kept = said(skitter("query", tmp_path / "c", "select url from text", "--format", "csv")).split()[1:]
    assert sorted(kept) == sorted(f"http://shop.test/products/{n}" for n in range(COUNT))
    assert said(skitter("show", tmp_path / "c", "http://shop.test/list")) == ""


def test_a_forum_is_crawled_behind_its_login(tmp_path: Path, server: ForumServer) -> None:
    file = tmp_path / "c.toml"
    file.write_text(QUICK.format(port=server.server_port) + (EXAMPLES / "forum.toml").read_text())
    words = ("crawl", "http://forum.test/", "--into", tmp_path / "c", "--config", file)
    said(skitter(*words, environ={"FORUM_PASSWORD": PASSWORD}))
    asked = "select url, title from post order by url"
    rows = said(skitter("query", tmp_path / "c", asked, "--format", "csv")).split()[1:]
    assert rows == [f"http://forum.test/t/{n},/t/{n}" for n in range(3)]


def test_home_pages_tell_who_is_behind_them(tmp_path: Path) -> None:
    organisation = '{"@type": "Organization", "name": "Some Shop", "email": "a@shop.test"}'
    home = f'<html><script type="application/ld+json">{organisation}</script><a href="/more">more</a></html>'
    domains = tmp_path / "domains.txt"
    domains.write_text("".join(f"http://home{n}.test/\n" for n in range(5)))
    file = tmp_path / "c.toml"
    with serving_site({"/": home.encode(), "/more": b"<html></html>"}) as server:
        file.write_text(QUICK.format(port=server.port))
        words = ("--max-depth", "0", "--with", EXAMPLES / "home_pages.py", "--config", file)
        said(skitter("crawl", domains, "--into", tmp_path / "c", *words))
        asked = {request.raw.split()[1].decode() for request in server.requests}
    assert asked == {"/robots.txt", "/"}
    found = "select url, name, email from Organisation order by url"
    rows = said(skitter("query", tmp_path / "c", found, "--format", "csv")).splitlines()[1:]
    assert rows == [f"http://home{n}.test/,Some Shop,a@shop.test" for n in range(5)]


def test_a_topic_comes_first(tmp_path: Path) -> None:
    def document(text: str, *links: str) -> bytes:
        return f"<html><p>{text}</p>{''.join(f'<a href={link}>more</a>' for link in links)}</html>".encode()

    pages = {
        "/": document("Of everything.", "/wal", *(f"/other/{n}" for n in range(200))),
        **{f"/other/{n}": document("Of something else.") for n in range(200)},
        "/wal": document("A standby and its replication.", "/slots"),
        "/slots": document("Replication slots of a standby."),
    }
    with serving_site(pages) as server:
        file = tmp_path / "c.toml"
        file.write_text(QUICK.format(port=server.port) + (EXAMPLES / "topic.toml").read_text())
        said(skitter("crawl", "http://docs.test/", "--into", tmp_path / "c", "--config", file))
        asked = [request.raw.split()[1].decode() for request in server.requests]
    # as soon as a page about it is read, before the rest of those that waited already
    assert asked.index("/slots") < 150
    assert "2 of 203 pages are about the topic" in said(skitter("stats", tmp_path / "c"))


def test_a_loop_over_pages_sees_every_product(tmp_path: Path, shop: RawServer) -> None:
    config = tmp_path / "quick.toml"
    config.write_text(QUICK.format(port=shop.port))
    words = [
        sys.executable,
        str(EXAMPLES / "notebook.py"),
        "http://shop.test/",
        str(tmp_path / "c"),
        str(config),
    ]
    ran = subprocess.run(words, env=ENVIRON, capture_output=True, text=True, check=False)
    assert ran.stdout == f"{COUNT} products, the cheapest Kettle 0\n", ran.stderr


def test_every_example_is_listed_and_run() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    run = Path(__file__).read_text()
    for file in EXAMPLES.iterdir():
        if file.suffix in (".py", ".toml"):
            assert f"]({file.name})" in listed
            assert f'"{file.name}"' in run


def test_products_of_a_single_page_app_are_extracted_from_its_rendered_pages(tmp_path: Path) -> None:
    needs_a_browser()
    plan = AppsPlan(apps=1, routes=5, sites=0)
    folder = tmp_path / "shop"
    with AppsWeb(plan) as web:
        file = folder.with_suffix(".toml")
        file.write_text(QUICK.format(port=web.port))
        arguments = ("--into", folder, "--config", file, "--render", "auto")
        plugin = ("--with", EXAMPLES / "app_shop.py")
        done = subprocess.run(
            command("crawl", *plan.seeds, *arguments, *plugin), capture_output=True, env=ENVIRON, timeout=600
        )
        assert done.returncode == 0, done.stderr
    target = tmp_path / "products.parquet"
    said(skitter("export", folder, "--to", "parquet", target, "--items", "Product"))
    rows = ParquetFile(target).read().to_pylist()
    assert sorted((row["title"], row["price"]) for row in rows) == [
        (f"shop 0 /item/{number}", 9.5 + number) for number in range(3)
    ]


def needs_a_browser() -> None:
    try:
        find_program(RenderSettings())
    except UsageError:
        pytest.skip("needs the Debian package chromium-headless-shell")
