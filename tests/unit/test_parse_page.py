from __future__ import annotations

import pytest

from skitter.model import Link
from skitter.parse.markup.href import in_charset
from skitter.parse.page import PageContent, read_page

URL = "http://e.org/dir/page.html?q"


def read(body: str, content_type: str = "text/html; charset=utf-8", **options: object) -> PageContent:
    return read_page(body.encode(), url=URL, content_type=content_type, **options)  # type: ignore[arg-type]


def hrefs(body: str) -> list[str]:
    return [link.href for link in read(body).links]


def test_every_kind_of_link_is_found_with_its_tag() -> None:
    page = read(
        """<link rel="canonical" href=c><link rel="PREV" href=p><link rel=stylesheet href=no.css>
        <link rel="alternate stylesheet" href=no2.css><link rel=icon href=no.ico>
        <meta http-equiv=Refresh content="5; url='r'"><a href=a rel="x y">A</a><map><area href=m></map>
        <iframe src=i></iframe><svg><a href=s>S</a><a xlink:href=x>X</a></svg><img src=no.png>"""
    )
    assert page.links == (
        Link("c", "", "canonical", "link"),
        Link("p", "", "prev", "link"),
        Link("a", "A", "x y", "a"),
        Link("s", "S", "", "a"),
        Link("x", "X", "", "a"),
        Link("m", "", "", "area"),
        Link("i", "", "", "iframe"),
        Link("r", "", "", "refresh"),
    )
    assert (page.canonical, page.refresh) == ("http://e.org/dir/c", "http://e.org/dir/r")


def test_what_is_in_a_template_is_no_part_of_the_page() -> None:
    page = read(
        """<template><title>no</title><base href=/no/><link rel=canonical href=no>
        <meta name=robots content=nofollow><meta http-equiv=refresh content="0; url=no"><a href=no>no</a>
        <map><area href=no></map><iframe src=no></iframe><template><a href=no>no</a></template>
        <main>no</main></template><title>yes</title><a href=yes>A</a><main>text</main>""",
        with_text=True,
    )
    assert (page.title, page.text, page.base, page.canonical, page.refresh) == ("yes", "text", URL, "", "")
    assert page.links == (Link("yes", "A", "", "a"),)
    assert not page.directives.nofollow


@pytest.mark.parametrize("mode", ["open", "closed", "'Open'"])
def test_links_of_a_template_that_is_a_shadow_root_are_links(mode: str) -> None:
    assert hrefs(f"<div><template shadowrootmode={mode}><a href=x>x</a></template></div>") == ["x"]
    assert hrefs(f"<p><template id=a ShadowRootMode = {mode}><i><a href=x>x</a></i></template></p>") == ["x"]
    assert hrefs("<div><template shadowrootmode=no><a href=x>x</a></template></div>") == []
    text = "<p>shadowrootmode=open, as &lt;template shadowrootmode=open&gt;"
    assert "data-" not in read(text, with_text=True).text


def test_links_for_browsers_without_frames_are_links() -> None:
    page = read(
        """<frameset><frame src=f><noframes><body><a href=a>A</a> <a href=b rel=nofollow>B</a>
        <map><area href=m></map></body></noframes></frameset>"""
    )
    assert page.links == (
        Link("a", "A", "", "a"),
        Link("b", "B", "nofollow", "a"),
        Link("m", "", "", "area"),
        Link("f", "", "", "frame"),
    )
    assert hrefs("<a href=a>A</a><noframes><a href=a>a</a><a href=b>b</a></noframes><a href=c>c</a>") == [
        "a",
        "c",
        "b",
    ]
    assert hrefs("<template><noframes><a href=a>A</a></noframes></template>") == []


def test_a_frameset_links_its_frames() -> None:
    assert hrefs("<frameset><frame src=one><frame src=two></frameset>") == ["one", "two"]


def test_alternates_of_unread_types_are_not_links() -> None:
    assert hrefs(
        "<link rel=alternate type=application/json+oembed href=a>"
        "<link rel=alternate type=text/xml+oembed href=b>"
        "<link rel=alternate type=application/rss+xml href=feed><link rel=alternate hreflang=de href=de>"
    ) == ["feed", "de"]


def test_an_href_counts_once_whatever_its_fragment() -> None:
    page = read("<a href=x#1>first</a><a href=x>second</a><a href=' x '>third</a><a href='x#2'>fourth</a>")
    assert page.links == (Link("x", "first"),)


def test_a_link_that_may_be_followed_wins_over_a_nofollow() -> None:
    page = read("<a href=x rel=NoFollow>first</a><a href=y rel=nofollow>y</a><a href=x rel=ugc>second</a>")
    assert page.links == (Link("x", "first", "ugc"), Link("y", "y", "nofollow"))
    page = read("<a href=x>first</a><a href=x rel=nofollow>second</a>")
    assert page.links == (Link("x", "first"),)


@pytest.mark.parametrize(
    "href",
    [
        "",
        " ",
        "#",
        "#top",
        " #top",
        "javascript:void(0)",
        "JavaScript:x",
        " mailto:a@e.org",
        "tel:1",
        "data:,x",
        "java\nscript:x",
        "ftp://e.org/",
        "file:///etc/passwd",
        "x-app:y",
        "blob:http://e.org/1",
    ],
)
def test_what_no_crawler_follows_is_dropped(href: str) -> None:
    assert hrefs(f'<a href="{href}">x</a>') == []


@pytest.mark.parametrize(
    ("written", "href"),
    [
        (" a b ", "a b"),
        ("\n/a\tb\r\nc\x01", "/abc"),
        ("HTTP://E.org/", "HTTP://E.org/"),
        ("//other.org/x", "//other.org/x"),
        ("?page=2#top", "?page=2"),
        ("a/b:c", "a/b:c"),
        (":8080/x", ":8080/x"),
        ("x #frag", "x%20"),
        ("a&amp;b=1", "a&b=1"),
        ("ü/ж", "ü/ж"),
    ],
)
def test_an_href_is_kept_as_written_but_for_what_the_standard_strips(written: str, href: str) -> None:
    assert hrefs(f'<a href="{written}">x</a>') == [href]


def test_a_query_is_encoded_in_the_charset_of_the_document() -> None:
    body = "<a href='/ж?q=ж&n=1'>x</a><a href='?c=&euro;'>y</a>".encode("koi8-r")
    page = read_page(body, url=URL, content_type="text/html; charset=koi8-r")
    assert [link.href for link in page.links] == ["/ж?q=%D6&n=1", "?c=%26%238364%3B"]


def test_a_query_that_its_charset_cannot_hold_falls_back_to_references_or_utf_8() -> None:
    assert in_charset("?ก", "windows-874") == "?%A1"
    assert in_charset("?表", "Shift_JIS") == "?%95\\"
    assert in_charset("?ж", "windows-1252") == "?%26%231078%3B"
    assert in_charset("?ж", "x-user-defined") == "?%D0%B6"
    assert in_charset("/ж", "windows-1252") == "/ж"


def test_the_base_is_resolved_against_the_page() -> None:
    assert read("<base href='/other/'>").base == "http://e.org/other/"
    assert read("<base target=_top><base href='sub/'><base href='/no/'>").base == "http://e.org/dir/sub/"
    assert read("").base == URL


@pytest.mark.parametrize("href", ["http://[", "data:,x", "javascript:x", "http://a b/"])
def test_a_base_that_cannot_be_one_counts_as_none(href: str) -> None:
    assert read(f"<base href='{href}'>").base == URL


def test_title_language_and_directives_are_read() -> None:
    page = read(
        "<html lang=' de-AT '><svg><title>no</title></svg><title> Ein\n Titel </title><title>2</title>"
        "<meta name=ROBOTS content=noarchive><meta name=Skitter content=nofollow>"
        "<meta name=otherbot content=none>",
        robots_tags=["noindex"],
    )
    assert (page.title, page.language) == ("Ein Titel", "de-AT")
    assert (page.directives.nofollow, page.directives.noindex) == (True, True)
    assert page.directives.text == "noindex, noarchive, nofollow"


def test_a_meta_element_names_the_language_when_the_root_does_not() -> None:
    assert read("<meta http-equiv=content-language content='fr, en'>").language == "fr"


def test_sizes_are_bounded() -> None:
    page = read(
        f"<title>{'t ' * 9999}</title><a href=x>{'a  b' * 999}</a>"
        + "".join(f"<a href={i}>" for i in range(50)),
        max_links=10,
    )
    assert (len(page.title), len(page.links[0].text), len(page.links)) == (500, 200, 10)


def test_anchor_text_spans_elements_and_collapses_white_space() -> None:
    assert read("<a href=x> <b>one</b>\n <i>two</i><img alt=no>three</a>").links[0].text == "one twothree"


def test_links_in_noscript_are_seen() -> None:
    assert hrefs("<noscript><a href=n>x</a></noscript>") == ["n"]


def test_xhtml_may_close_a_script_with_a_slash() -> None:
    body = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><head>'
    body += (
        '<script src="a.js" /><title/></head><body><a name="top"/><p><a href="/about">About</a></p></body>'
    )
    page = read(body, "application/xhtml+xml")
    assert page.links == (Link("/about", "About"),)
    assert (page.media_type, page.language) == ("application/xhtml+xml", "en")


def test_plain_text_and_xml_have_no_links_but_a_charset_and_directives() -> None:
    for content_type in ("text/plain", "application/rss+xml", "text/xml"):
        page = read("<a href=x>ж</a>", content_type, robots_tags=["none"], with_text=True)
        assert (page.links, page.charset, page.directives.nofollow) == ((), "UTF-8", True)
        assert page.text == "<a href=x>ж</a>"


def test_a_body_that_is_no_text_is_not_read() -> None:
    page = read("%PDF-1.7 <a href=x>", "text/html", robots_tags=["noindex"])
    assert (page.media_type, page.links, page.charset) == ("application/pdf", (), "")
    assert page.directives.noindex


def test_text_is_given_when_asked_for_and_without_scripts() -> None:
    body = "<title>T</title><script>var x</script><style>p{}</style><p>Hello <b>world</b></p>"
    assert read(body, with_text=True).text.strip() == "Hello world"
    assert read(body).text == ""
