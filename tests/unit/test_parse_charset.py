from __future__ import annotations

import pytest

from skitter.parse.markup.charset import decode, encoding_name
from skitter.parse.page import read_page

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20


@pytest.mark.parametrize(
    "label", ["utf-7", "zlib", "base64", "idna", "rot13", "", "utf-8\0", "x" * 10_000, "ſjis"]
)
def test_what_is_no_charset_of_the_web_is_none(label: str) -> None:
    assert encoding_name(label) == ""


def test_a_byte_order_mark_outranks_the_header() -> None:
    assert decode(b"\xef\xbb\xbfa", "gbk") == ("a", "UTF-8")
    assert decode("\ufeffa".encode("utf-16-le"), "utf-8") == ("a", "UTF-16LE")


def test_the_header_outranks_what_an_xml_document_declares() -> None:
    body = "<?xml version='1.0' encoding='koi8-r'?><a>ж</a>".encode("koi8-r")
    assert decode(body) == (body.decode("koi8-r"), "KOI8-R")
    assert decode(body, "windows-1251")[1] == "windows-1251"


def test_undeclared_text_is_utf_8_when_it_can_be() -> None:
    assert decode("grüße".encode()) == ("grüße", "UTF-8")


def test_undeclared_russian_is_recognised_in_text_and_html() -> None:
    assert decode(RUSSIAN.encode("cp1251")) == (RUSSIAN, "windows-1251")
    page = read_page(b"<title>" + RUSSIAN.encode("cp1251"), url="http://e.org/", content_type="text/html")
    assert page.charset == "windows-1251"
    assert page.title.startswith("Съешь же ещё")


@pytest.mark.parametrize("media_type", ["text/plain", "text/html", "application/xhtml+xml", ""])
def test_undeclared_iso_2022_jp_is_recognised_by_its_escape_sequences(media_type: str) -> None:
    said = "<title>\u65e5\u672c\u8a9e\u306e\u9801</title><p>\u3053\u3093\u306b\u3061\u306f"
    body = said.encode("iso2022_jp")
    assert body.isascii()
    page = read_page(body, url="http://e.org/", content_type=media_type, with_text=True)
    assert page.charset == "ISO-2022-JP"
    assert "\u3053\u3093\u306b\u3061\u306f" in page.text


@pytest.mark.parametrize(
    "body",
    [
        b"\x1b[1mbold\x1b[0m",
        b"\x1b$B",
        b"\x1b$B\x1b(B",
        b"\x1b$B!",
        b"costs \x1b$\x1b(B",
        b"\x1b$Bab\ncd\x1b(B",
    ],
)
def test_escapes_of_terminals_and_broken_ones_are_no_japanese(body: bytes) -> None:
    assert decode(body) == (body.decode(), "UTF-8")
    assert read_page(body, url="http://e.org/", content_type="text/html").charset == "windows-1252"


def test_what_is_declared_outranks_escape_sequences() -> None:
    body = "\u65e5\u672c".encode("iso2022_jp")
    assert decode(body, "utf-8") == (body.decode(), "UTF-8")
    page = read_page(b"<meta charset=utf-8>" + body, url="http://e.org/", content_type="text/html")
    assert page.charset == "UTF-8"


def test_a_header_charset_outranks_the_meta_element() -> None:
    body = "<meta charset=windows-1252><title>ж</title>".encode("koi8-r")
    page = read_page(body, url="http://e.org/", content_type="text/html; charset=koi8-r")
    assert (page.charset, page.title) == ("KOI8-R", "ж")


def test_an_unknown_header_charset_counts_as_none() -> None:
    page = read_page(b"<meta charset=gbk>", url="http://e.org/", content_type="text/html; charset=utf-7")
    assert page.charset == "GBK"


@pytest.mark.parametrize(
    "label", ["utf-8", "utf-16", "gb18030", "iso-2022-jp", "replacement", "big5", "x-user-defined"]
)
def test_broken_bytes_are_replaced_and_never_raise(label: str) -> None:
    text, name = decode(bytes(range(256)) * 4 + b"\xff", label)
    assert name
    assert isinstance(text, str)
