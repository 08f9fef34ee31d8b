"""What users write: patterns, numbers, items, structured data, and the page that their functions see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import skitter
from skitter.errors import UsageError
from skitter.extend.api import HookKind
from skitter.extend.built_in import BUILT_IN
from skitter.extend.items import WrongItem, row_of
from skitter.extend.patterns import Patterns
from skitter.extend.try_out import extract_items
from skitter.model import FaultKind

DOCS = Path(__file__).parents[2] / "docs"
HTML = (("Content-Type", "text/html; charset=utf-8"),)


def page(body: str, url: str = "http://shop.example/products/1") -> skitter.Page:
    return skitter.Page(url, body.encode(), headers=HTML)


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("shop.example/products/*", "https://shop.example/products/1", True),
        ("shop.example/products/*", "https://shop.example/about", False),
        ("shop.example/products/*", "https://www.shop.example/products/1", False),
        ("shop.example", "http://shop.example/x?y=1", True),
        ("shop.example/*", "http://shop.example:8080/x", True),
        ("shop.example:8080/*", "http://shop.example:8080/x", True),
        ("shop.example:8080/*", "http://shop.example/x", False),
        ("*.example.org/*", "http://a.b.example.org/", True),
        ("*.example.org/*", "http://example.org/", False),
        ("*/api/*", "http://x.test/v1/api/y", True),
        ("*/list?page=*", "http://x.test/list?page=3", True),
        ("*/list?page=*", "http://x.test/listXpage=3", False),
        ("*", "http://anything.test/at/all", True),
        ("a.test/x", "http://a.test/x/y", False),
    ],
)
def test_a_pattern_is_a_glob_over_host_and_path(pattern: str, url: str, matches: bool) -> None:
    patterns = Patterns()
    patterns.add(3, [pattern], ())
    assert patterns.find(url, "text/html") == ((3,) if matches else ())
    assert patterns.find(url, "application/json") == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("19.50", 19.5),
        ("EUR 19,50", 19.5),
        ("1,299.50 $", 1299.5),
        ("1.299,50 €", 1299.5),
        ("1 299", 1299.0),
        ("1'299.00", 1299.0),
        ("12,000", 12000.0),
        ("1.234.567", 1234567.0),
        ("0,125", 0.125),
        ("3.125", 3.125),
        ("-4", -4.0),
        ("from 5 to 9", 5.0),
        ("free", None),
        ("", None),
        (None, None),
        (7, 7.0),
    ],
)
def test_a_number_is_read_as_people_write_it(text: object, value: float | None) -> None:
    assert skitter.number(text) == value


@dataclass
class Product:
    name: str
    price: float
    seen: datetime | None = None
    __key__ = ("name",)


class Offer(msgspec.Struct):
    sku: str
    price: float


def test_an_item_has_a_type_a_key_and_json() -> None:
    made = row_of(Product("Kettle", 19.5, datetime(2026, 1, 2, tzinfo=UTC)), "x")
    assert (made.type, made.key) == ("Product", "Kettle")
    assert made.json == '{"name":"Kettle","price":19.5,"seen":"2026-01-02T00:00:00Z"}'
    assert row_of(Offer("K", 1.0), "x") == row_of(Offer("K", 1.0), "y", ())
    assert row_of({"a": 1, "b": None}, "thing", ("a", "b")).key == "[1,null]"
    assert row_of({"a": 1}, "thing", ("b",)).key is None
    assert row_of({"@type": "Book", "a": "\ud800"}, "thing").json == '{"@type":"Book","a":"?"}'


@pytest.mark.parametrize(
    "item",
    [7, "text", Product("Kettle", None), {"page": object()}, Product],  # type: ignore[arg-type]
)
def test_what_is_no_item_of_its_type_is_refused(item: object) -> None:
    with pytest.raises(WrongItem):
        row_of(item, "x")


def test_a_page_answers_from_one_tree() -> None:
    body = """<html><head><title> A kettle </title><base href="/shop/"></head><body><h1> Kettle
 <b>one</b></h1><i class=price content="19.50">EUR 19</i><a href="x" rel=next>more</a><table><tr><th>a<tr><td>1
</table><script id=state type="application/json">{"stock": 3}</script></body></html>"""
    seen = page(body)
    assert (seen.title, seen.first("h1"), seen.number(".price")) == ("A kettle", "Kettle one", 19.5)
    assert seen.attr("a", "rel") == "next"
    assert (seen.first("h9"), seen.attr("h9", "x"), seen.number("h9")) == (None, None, None)
    assert seen.json("#state") == {"stock": 3}
    assert seen.tables == [[["a"], ["1"]]]
    assert [(link.url, link.text) for link in seen.links] == [("http://shop.example/shop/x", "more")]
    assert seen.xpath("//a/@href") == ["x"]
    assert "Kettle" in seen.markdown
    seen.follow(seen.css("a")[0], priority=70)
    seen.follow("/y")
    seen.follow("mailto:a@b")
    assert seen.followed == [("http://shop.example/shop/x", 70), ("http://shop.example/y", None)]
    with pytest.raises(ValueError, match="from 0 to 100"):
        seen.follow("/z", priority=101)


def test_density_is_the_share_of_words_in_the_text() -> None:
    assert page("<p>replication and more</p>").density("Replication") == 1.0
    assert page("<p>nothing</p>").density("replication") == 0.0
    assert page(f"<p>replication {'word ' * 99}</p>").density("replication") == pytest.approx(0.5)


def test_structured_data_is_flat_with_urls_whole_and_prices_as_they_are_meant() -> None:
    data = page(
        """<script type="application/ld+json">[{"@graph": [{"@type": "Product", "image": "k.jpg"}]}]</script>
<div itemscope itemtype="https://schema.org/Offer"><span itemprop=price content="19.50">about 20</span>
<a itemprop=url href="/o">o</a></div><meta property="og:title" content="T">
<div vocab="https://schema.org/" typeof="Person"><span property="name">Someone</span></div>"""
    ).data
    assert data == [
        {"@type": "Product", "image": "http://shop.example/products/k.jpg", "@syntax": "json-ld"},
        {"@type": "Offer", "price": "19.50", "url": "http://shop.example/o", "@syntax": "microdata"},
        {"@type": "Person", "name": "Someone", "@syntax": "rdfa"},
        {"@type": "OpenGraph", "title": "T", "@syntax": "opengraph"},
    ]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_makes_items_of_a_page_that_has_them(name: str) -> None:
    words = "<p>" + "A long sentence, with commas, that reads as an article. " * 30 + "</p>"
    seen = page(
        f"""<html><head><title>News</title><meta name=author content="Somebody"></head><body><article>
<h1>News</h1>{words}{words}</article>
<script type="application/ld+json">{{"@type": "NewsArticle", "headline": "News"}}</script>
<script id="__NEXT_DATA__" type="application/json">{{"props": 1}}</script>
<table><tr><th>Size</th><th>Price</th></tr><tr><td>1 l</td><td>19.50</td></tr></table>
<a href="mailto:a@example.org?subject=x">write</a><a href="tel:+49%2030%20123456">call</a></body></html>"""
    )
    items: list[dict[str, Any]] = extract_items(seen, [name])
    types = {"structured": ["NewsArticle"], "json": ["JsonDocument"], "article": ["Article"]}
    types |= {"tables": ["TableRow"], "contacts": ["Contacts"]}
    assert [item["@type"] for item in items] == types[name]
    if name == "article":
        assert (items[0]["title"], items[0]["author"]) == ("News", "Somebody")
    if name == "tables":
        assert items[0]["cells"] == {"Size": "1 l", "Price": "19.50"}
    if name == "contacts":
        assert (items[0]["emails"], items[0]["phones"]) == (["a@example.org"], ["+49 30 123456"])
    if name == "json":
        assert items[0]["value"] == {"props": 1}


def test_wrong_use_of_a_decorator_says_what_to_write() -> None:
    with pytest.raises(UsageError, match="write a text such as"):
        skitter.page(7)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"write @skitter\.reader"):
        skitter.reader()
    with pytest.raises(UsageError, match="and nothing else"):
        skitter.correct(dict)


def test_the_guide_describes_every_hook_fault_built_in_and_part_of_a_page() -> None:
    guide = (DOCS / "plugins.md").read_text()
    for hook in HookKind:
        assert f"### skitter.{hook.value}\n" in guide
    for kind in FaultKind:
        assert f"| `{kind.value}` |" in guide
    for name in BUILT_IN:
        assert f"| `{name}` |" in guide
    rows = "\n".join(line for line in guide.splitlines() if line.startswith("| `"))
    public = [name for name in dir(skitter.Page) if not name.startswith("_")]
    own = {"content", "is_html", "header_fields"}
    assert [name for name in public if f"`{name}" not in rows and name not in own] == []
