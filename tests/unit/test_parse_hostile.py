"""Pages made to hurt: each must be read in bounded time and without an exception."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from skitter.parse.page import PageContent, read_page

MEGABYTE = 1_000_000
PAGES: dict[str, Callable[[], bytes]] = {
    "nested divs": lambda: b"<div>" * 200_000,
    "one link, half a million times": lambda: b"<a href=x>" * 500_000,
    "distinct links": lambda: b"".join(b"<a href=%d>" % i for i in range(300_000)),
    "nofollow links": lambda: b"<a href=x rel=nofollow>" * 200_000,
    "anchors nested through objects": lambda: b"".join(b"<a href=%d><object>" % i for i in range(200_000)),
    "anchors nested in svg": lambda: b"<svg>" + b"".join(b"<a href=%d>" % i for i in range(200_000)),
    "nested anchors around a long text": lambda: (
        b"".join(b"<a href=%d><object>" % i for i in range(20_000)) + b"text " * MEGABYTE
    ),
    "formatting elements": lambda: b"<b><i><u><p>" * 100_000,
    "tables": lambda: b"<table><tr><td>" * 100_000,
    "unclosed tables with text": lambda: b"<table>x" * 100_000,
    "select and options": lambda: b"<select><option>" * 100_000,
    "templates": lambda: b"<template>" * 100_000,
    "templates around anchors": lambda: b"<template><a href=x>" * 50_000,
    "half shadow roots": lambda: b"<template shadowrootmod" * 100_000 + b"<noframes>",
    "shadow roots": lambda: b"<div><template shadowrootmode=open><a href=x>" * 50_000,
    "noframes": lambda: b"<noframes><a href=x></noframes>" * 100_000,
    "noframes in noframes": lambda: b"<noframes>" * 200_000,
    "nuls": lambda: b"\0" * (5 * MEGABYTE),
    "html and nuls": lambda: b"<html><a href='\0x\0'>" + b"\0" * MEGABYTE,
    "one long href": lambda: b"<a href='" + b"x" * (5 * MEGABYTE) + b"'>",
    "one long href of hashes": lambda: b"<a href='" + b"x #" * MEGABYTE + b"'>",
    "a tag that never ends": lambda: b"<a href=" + b"x" * MEGABYTE,
    "an attribute list that never ends": lambda: b"<a " + b"".join(b"a%d " % i for i in range(100_000)),
    "comments": lambda: b"<!--" * 500_000,
    "entities": lambda: b"&" * (2 * MEGABYTE),
    "metas": lambda: b"<meta name=robots content=nofollow>" * 100_000,
    "refreshes": lambda: b"<meta http-equiv=refresh content='%s'>" % (b"1" * MEGABYTE),
    "bases": lambda: b"<base href='http://['>" * 100_000,
    "titles": lambda: b"<title>" + b"t " * MEGABYTE,
    "languages": lambda: b"<html lang='" + b" " * MEGABYTE + b"'>",
    "high bytes": lambda: b"<p>" + b"\xff" * (5 * MEGABYTE),
    "all bytes": lambda: b"<p>" + bytes(range(256)) * 20_000,
    "cut utf-16": lambda: b"\xff\xfe" + b"<\0a\0" * MEGABYTE + b"<",
    "lone surrogates": lambda: b"\xff\xfe" + b"\x00\xd8" * MEGABYTE,
    "a doctype that never ends": lambda: b"<!DOCTYPE html [" + b"<!ENTITY a 'b'" * 100_000,
    "slashes": lambda: b"<script a='" + b"/" * MEGABYTE,
    "half closed scripts": lambda: b"<script " * 200_000,
}


@pytest.mark.parametrize("content_type", ["text/html", "application/xhtml+xml; charset=utf-8", ""])
@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_page_is_read_in_bounded_time(name: str, content_type: str) -> None:
    body = PAGES[name]()
    begun = time.process_time()
    page = read_page(body, url="http://e.org/", content_type=content_type, with_text=True)
    assert time.process_time() - begun < 4
    assert isinstance(page, PageContent)
    assert len(page.links) <= 10_000


@pytest.mark.parametrize(
    "charset", ["utf-7", "utf-16be", "iso-2022-jp", "replacement", "hz-gb-2312", "'", "\0"]
)
def test_a_wrong_charset_label_does_no_harm(charset: str) -> None:
    body = "<title>ж</title><a href='?ж=表'>x</a>".encode() + bytes(range(256))
    page = read_page(body, url="http://e.org/", content_type=f"text/html; charset={charset}")
    assert isinstance(page, PageContent)
