from __future__ import annotations

import time

import pytest

from skitter.parse.media import parse_content_type, sniff


def test_a_type_that_cannot_be_read_is_the_empty_type() -> None:
    assert parse_content_type("nonsense").essence == ""
    assert parse_content_type("").essence == ""
    assert parse_content_type("text/html; charset=\xe9;;;=").essence == "text/html"


def test_the_kelvin_sign_is_no_letter() -> None:
    assert parse_content_type("text/plain;\u212a=x").parameters == ()


@pytest.mark.parametrize("filler", ["\\", '"', ",", ';"', '\\"', "a=", " ", ';a="\\'])
def test_a_hostile_header_costs_linear_time(filler: str) -> None:
    value = "text/html;x=" + filler * (65_536 // len(filler))
    begun = time.process_time()
    parse_content_type(value)
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    ("declared", "body", "effective"),
    [
        ("", b"  <!doctype html><p>", "text/html"),
        ("", b"<!-- a comment", "text/html"),
        ("", b"<p>", "text/html"),
        ("", b"<painting>", "text/plain"),
        ("", b"<?xml version='1.0'?><x/>", "text/xml"),
        ("", b"<?xml version='1.0'?><rss version='2.0'>", "application/rss+xml"),
        ("", b"just words", "text/plain"),
        ("", b"", "text/plain"),
        ("", b"\x00\x01\x02", "application/octet-stream"),
        ("", b"%PDF-1.7", "application/pdf"),
        ("*/*", b"<html>", "text/html"),
        ("text/plain", b"<html>is quoted here", "text/plain"),
        ("text/plain", b"\xef\xbb\xbf\x00", "text/plain"),
        ("text/plain", b"abc\x00def", "application/octet-stream"),
        ("text/plain", b"\x1f\x8b\x08\x00", "application/x-gzip"),
        ("text/html", b"%PDF-1.4 ...", "application/pdf"),
        ("text/html", b"\x89PNG\r\n\x1a\n", "image/png"),
        ("text/html", b"\x00 nul and more", "text/html"),
        ("text/html", b"<?xml version='1.0'?><!-- x --><rss>", "application/rss+xml"),
        ("text/html", b"<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"),
        ("text/html", b"<!doctype html><rss>", "application/rss+xml"),
        (
            "text/xml",
            b"<?xml version='1.0'?><!DOCTYPE html [<!ENTITY a 'b'>]><html xmlns=''>",
            "application/xhtml+xml",
        ),
        ("application/xml", b"<feed>", "application/atom+xml"),
        ("application/xml", b"<other>", "application/xml"),
        ("application/json", b"<html>", "application/json"),
        ("application/octet-stream", b"<html>", "application/octet-stream"),
        ("application/xhtml+xml", b"PK\x03\x04\x14\x00", "application/zip"),
        ("text/xml", b"\x1f\x8b\x08\x00", "application/x-gzip"),
        ("text/html", b"<!DOCTYPE html>\n<html lang=en>", "text/html"),
        ("text/html", b"\x00\x00\x00\x18ftypmp42", "video/mp4"),
        ("text/html", b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        ("text/html", b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wave"),
        ("text/html", b"RIFF is a container, not a page", "text/html"),
        ("text/html", b"ID3 tags explained", "text/html"),
        ("text/plain", b"ID3 tags explained", "text/plain"),
        ("text/plain", b"ID3\x04\x00\x00\x00", "audio/mpeg"),
        ("text/plain", b"GIF89a is a format", "text/plain"),
        ("text/html", b"OTTO was here", "text/html"),
        ("", b"GIF89a\x01\x00\x01\x00", "image/gif"),
    ],
)
def test_bytes_decide_where_the_label_is_missing_or_lies(declared: str, body: bytes, effective: str) -> None:
    assert sniff(declared, body) == effective


def test_bytes_beyond_the_first_1445_decide_nothing() -> None:
    assert sniff("text/plain", b"a" * 1445 + b"\x00") == "text/plain"
    assert sniff("text/plain", b"a" * 1444 + b"\x00") == "application/octet-stream"
