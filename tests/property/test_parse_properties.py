from __future__ import annotations

import gzip
import random
import zlib

import brotlicffi
from hypothesis import given, settings
from hypothesis import strategies as st

from skitter.fetch.coding import Decoded, Undecodable, decode_body
from skitter.parse.directives import read_directives
from skitter.parse.markup.charset import decode
from skitter.parse.markup.css import references
from skitter.parse.markup.href import clean_href, parse_refresh
from skitter.parse.markup.requisites import candidates
from skitter.parse.media import parse_content_type, sniff
from skitter.parse.page import read_page

PAGE = b"""<!DOCTYPE html><html lang=en><head><meta charset=utf-8><base href="/b/"><title>A &amp; B</title>
<link rel="canonical" href="/c?x=1"><meta name="robots" content="noindex,nofollow">
<script>if (a<b) {}</script><meta http-equiv="refresh" content="3; url=next.html"></head>
<body><p>Text <a href="one.html#f" rel="nofollow"><b>One</b></a><map><area href='two'></map>
<table><tr><td><a href=three>3</table><svg><a xlink:href="s">S</a></svg><iframe src="http://other.org/"></iframe>
<!-- comment --><![CDATA[x]]><template><a href=t></template></body></html>"""
MARKUP = [
    b"<",
    b">",
    b"</",
    b"<!--",
    b"-->",
    b"\0",
    b"\xff\xfe",
    b"<svg>",
    b"<table>",
    b"<a href='",
    b"&#",
    b"\xe3\x81",
    b"<img srcset='",
    b"<style>@import ",
    b" style='x:url(",
]
TYPES = [
    "text/html",
    "text/html; charset=utf-16",
    "application/xhtml+xml",
    "",
    "text/plain",
    "text/xml",
    "text/css",
]


def mutated(source: random.Random, body: bytes) -> bytes:
    page = bytearray(body)
    for _ in range(source.randint(1, 20)):
        at = source.randrange(len(page) + 1)
        match source.randrange(4):
            case 0:
                page[at : at + source.randint(1, 50)] = b""
            case 1:
                page[at:at] = source.choice(MARKUP)
            case 2:
                page[at : at + 1] = bytes([source.randrange(256)])
            case _:
                start = source.randrange(len(page) + 1)
                page[at:at] = page[start : start + source.randint(1, 200)]
    return bytes(page)


def test_no_mutation_of_a_page_raises_and_every_link_is_clean() -> None:
    source = random.Random(20)
    for _ in range(4000):
        body = mutated(source, PAGE)
        page = read_page(
            body,
            url="http://e.org/a/b",
            content_type=source.choice(TYPES),
            with_text=True,
            with_requisites=True,
        )
        assert all(page.requisites)
        seen = [link.href for link in page.links]
        assert len(seen) == len(set(seen))
        assert all(href and "#" not in href and "\n" not in href for href in seen)


@given(st.binary(max_size=2000), st.sampled_from(TYPES))
def test_no_bytes_raise(body: bytes, content_type: str) -> None:
    read_page(body, url="http://e.org/", content_type=content_type, with_text=True, with_requisites=True)


@given(st.binary(max_size=300), st.text(max_size=20))
def test_decoding_never_raises(body: bytes, label: str) -> None:
    text, name = decode(body, label)
    assert name
    assert len(text) <= 2 * len(body) + 1


@given(st.text(max_size=300))
def test_headers_of_any_shape_are_read(value: str) -> None:
    media = parse_content_type(value)
    assert sniff(media.essence, value.encode("utf-8", "replace"))
    read_directives([value], [value])
    parse_refresh(value)


CSS_PIECES = [
    "url(",
    "'",
    '"',
    "\\",
    "/*",
    "*/",
    "@import",
    "@namespace",
    " ",
    ";",
    "}",
    ")",
    "a",
    "\n",
    "image-set(",
]


@given(st.lists(st.sampled_from(CSS_PIECES), max_size=30).map("".join) | st.text(max_size=100))
def test_any_css_names_clean_addresses_and_srcsets_split(css: str) -> None:
    assert all(href and "\n" not in href for href in references(css))
    assert all(address.strip(", ") for address in candidates(css))


@given(st.text(alphabet="ab/.-_?=&%", min_size=1, max_size=20), st.sampled_from(["", "'", '"']))
def test_an_address_is_found_however_the_css_around_it_is(address: str, quote: str) -> None:
    css = f"/* url(x) */ p {{ content: ')' ; background: red url( {quote}{address}{quote} ) }}"
    assert list(references(css)) == [address]


@given(st.text())
def test_cleaning_an_href_twice_changes_nothing(raw: str) -> None:
    assert clean_href(clean_href(raw)) == clean_href(raw)


@settings(max_examples=60)
@given(st.binary(max_size=5000), st.integers(0, 6000), st.integers(0, 6000))
def test_a_cut_or_damaged_stream_never_raises_and_keeps_to_the_limit(body: bytes, cut: int, at: int) -> None:
    for coding, coded in (
        ("gzip", gzip.compress(body)),
        ("deflate", zlib.compress(body)),
        ("br", brotlicffi.compress(body)),
    ):
        assert decode_body(coded, coding, limit=10_000) == Decoded(body)
        for damaged in (coded[:cut], coded[:at] + b"\x55" + coded[at + 1 :]):
            result = decode_body(damaged, coding, limit=1000)
            assert isinstance(result, Undecodable) or len(result.body) <= 1000


@given(st.binary(max_size=500), st.sampled_from(["gzip", "deflate", "br", "gzip, br", "br, deflate, gzip"]))
def test_noise_under_any_label_has_an_outcome(body: bytes, coding: str) -> None:
    result = decode_body(body, coding, limit=1000)
    assert isinstance(result, Undecodable) or len(result.body) <= 1000
