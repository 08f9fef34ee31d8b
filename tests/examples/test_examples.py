"""Every example does what it says, against a small shop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile

from tests.e2e.command import ENVIRON, said, serving_site, skitter
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
resolve = ["shop.test:80:127.0.0.1:{port}"]
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
