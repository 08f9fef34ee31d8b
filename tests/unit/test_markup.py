"""The kernel that reads a page in one pass says what the tree says, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from skitter.model import Link
from tests.readings import readings

# What honest pages are made of; a page like these must not need a tree.
PLAIN = [
    "",
    "just text & more",
    "<!doctype html><html lang=de><head><title>A &amp; B</title></head><body><p>x</body></html>",
    "<title>t\n t</title><base href=/b/><link rel=canonical href=c><meta name=Robots content=none>",
    "<meta http-equiv=refresh content='0; url=r'><meta http-equiv=content-language content=nl>",
    "<head><noscript><link rel=next href=n><style>x</style></noscript></head>",
    "<a href=x>one</a><a href=x#1>two</a><a href='#top'>up</a><a href=y rel='NoFollow Me'>y</a><a href=y>y</a>",
    "<a href=x>one <b>two</b> <i>three</a> four</i>",
    "<a href=x>one<a href=y>two",
    "<p><a href=x>one<p>two<div>three</div></a>",
    "<a href=' sp ace '>1</a><a href='a b#f'>2</a><a href='x #f'>3</a><a href=mailto:a@b>4</a><a href=é>5</a>",
    "<a href='a&amp;b&copy=1&copy;'>x</a><a href=HTTPS://e.org/>y</a><a href=a:b>z</a>",
    "<ul><li>one<li>two<ul><li>three</ul></ul><dl><dt>a<dd>b<dt>c</dl>",
    "<table><caption>c</caption><colgroup><col></colgroup><thead><tr><th>h<th>i<tbody><tr><td>a<td>b<tr><td>c</table>",
    "<table><tr><td><table><tr><td>in</table>out<td><a href=x>x</a></table>",
    "<!doctype html><p>one<table><tr><td>two</table>three",
    "<!doctype html><p><a href=x>one<table><tr><td>two</table>three",
    "<p><a href=x>one<table><tr><td>two</table>three",
    "<form action=x><p>x<input><select><option>a<option selected>b</select></form><button>go</button>",
    "<table><form><tr><td>a</td></tr></form></table>",
    "<pre>\n  a\n   b </pre><textarea>\n t </textarea> x<xmp><b></xmp>",
    "<script>if (a < b) '<!-- <script> </script> --> </p>'</script><style>a > b</style>x",
    "<script><!-- <script> </script> --></script>x<noscript><a href=n>n</a></noscript>",
    "<a href=x><svg viewBox='0 0 1 1'><title>i</title><style>.a{}</style><path d='M0'/></svg>t</a>",
    "<svg><g><a href=s>S</a><a xlink:href=l>L</a></g><script>x</script></svg><svg/>",
    "<p><math><mrow><mi>x</mi><mo>=</mo><mn>1</mn></mrow></math> is one",
    "<!-- a --> b <!--> c <!-- -- --!> d <!x> e <?php f ?> g </ h> i",
    "<main><h1>H</h1><nav>n</nav><header>head</header>x</main>rest",
    "<header>banner</header><article>one</article><div role=navigation>menu</div>",
    "<aside><main>words</main></aside>",
    "&lt;&notit;&#x80;&#0;&#1114112;&AMP&nGt;&eacute&unknown;&",
    "one\r\ntwo\rthree<pre>\r\nfour\r\nfive</pre>",
    "<DIV CLASS=x ID='y'/>upper</DIV><br/>a<br>b</br>c<hr>",
    "<ruby>a<rt>b<rp>c</ruby><object><param>o</object><iframe src=i>no</iframe><map><area href=m></map>",
    "<p>one</div></span></p></p></ul>two</body>three</html>four",
    "<a href=x>1<p>2</a>3<p>4<b>5<div>6</b>7</div><i><span><ul><li>8</i>9",
    "<form>a<div>b</form>c</div>d<form>e</form>",
    "<head><template><title>x</title><p>no<a href=t>t</a></template></head><template>x</p><div></template>y",
    "x<template",
    "<template><base href=/no/><meta name=robots content=none><link rel=canonical href=no></template>",
    "<template><title>no</title></template><title>yes</title>",
    "<template><iframe src=no></iframe><map><area href=no></template>",
    "<template><main>no</main></template><main>yes</main><template><main>no<a href=no>x</a></main></template>z",
    "<template><article>no</article></template><article>yes</article>rest",
    "<template><template><a href=no>no</a></template><a href=no>no</a></template><a href=yes>yes</a>",
    "<template><meta http-equiv=refresh content='0; url=no'><svg><a href=n>n</a></svg></template><a href=n>y</a>",
    "<a href='never ends",
]
# What a browser repairs by moving things about, or reads in a way of its own.
ODD = [
    "<table>text<tr><td>x</table>",
    "<table><a href=x>x</a></table>",
    '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2//EN"><p><a href=x>1<table><tr><td>2</table>3',
    "<frameset><frame src=x></frameset>",
    "<plaintext><a href=x>",
    "<template><tr><td>x</template>",
    "<div><template shadowrootmode=open><a href=x>x</a></template></div>",
    "<div><template ShadowRootMode='closed'>x",
    "<svg><template><a href=x>x</a></template></svg>",
    "<noframes><a href=x>x</a></noframes>",
    "<head><noframes><a href=x>x</a></noframes>",
    "<template><noframes><a href=x>x</a></noframes></template>",
    "<select><div>x</div></select>",
    "<svg><foreignObject><p>x</foreignObject></svg>",
    "<svg><p>x",
    "<svg><![CDATA[<a href=x>]]></svg>",
    "<b><b><b><b>x",
    "<div>" * 401,
    "a\0b",
    "a&#1;b",
]


@pytest.mark.parametrize("body", PLAIN)
def test_an_honest_page_is_read_in_one_pass_and_as_the_tree_reads_it(body: str) -> None:
    by_kernel, by_tree = readings(body.encode())
    assert by_kernel == by_tree


@pytest.mark.parametrize("body", ODD)
def test_what_a_browser_repairs_in_its_own_way_is_left_to_the_tree(body: str) -> None:
    by_kernel, _ = readings(body.encode())
    assert by_kernel is None


@pytest.mark.parametrize(
    ("body", "header", "charset"),
    [
        ("<p>x", "", "windows-1252"),
        ("<p>é", "", "UTF-8"),
        ("<p>x", "koi8-r", "KOI8-R"),
        ("<p>é", "latin1", None),
        ("\ufeff<p>é", "koi8-r", "UTF-8"),
        ("<meta charset=utf8><p>é", "", "UTF-8"),
        ("<meta charset=utf8><p>é", "utf-8", "UTF-8"),
        ("<meta http-equiv=Content-Type content='text/html; charset=ISO-8859-1'>x", "", "windows-1252"),
        ("<meta http-equiv='Content-Type ' content='text/html; charset=koi8-r'>x", "", None),
        ("<meta http-equiv=Content-Type content='charset=;charset=utf8'>x", "", None),
        ("<!-- charset=koi8-r --><meta charset=utf-8>x", "", "UTF-8"),
        ("<!-- <meta charset=koi8-r> --><meta charset=utf-8>é", "", "UTF-8"),
        ("<script>'<meta charset=koi8-r>'</script><meta charset=utf-8>é", "", "UTF-8"),
        ("<title>On charsets</title><meta charset=utf-8>é", "", "UTF-8"),
        ("<title>On charsets</title>x", "", None),
        ("<meta charset=utf-8><meta charset=koi8-r>é", "", "UTF-8"),
        ("<title>charset</title>" + "x" * 2000 + "<meta charset=utf-8>é", "", None),
        ("<p>" + "x" * 2000 + "<meta charset=utf-8>é", "", "UTF-8"),
        ("<meta charset=utf-16>x", "", None),
        ("<meta charset=no-such>x", "", None),
        ('<?xml version="1.0" encoding="UTF-8"?><meta charset=utf-8>é', "", "UTF-8"),
        ('<?xml version="1.0" encoding="koi8-r"?><meta charset=utf-8>é', "", "UTF-8"),
        ("<p>x", "utf-16", None),
        ("<p>x", "iso-2022-jp", None),
    ],
)
def test_a_charset_is_certain_or_the_trees_to_tell(body: str, header: str, charset: str | None) -> None:
    by_kernel, by_tree = readings(body.encode(), header)
    assert by_kernel is None if charset is None else by_kernel == by_tree
    assert charset is None or by_tree.charset == charset


def test_bytes_that_are_no_utf_8_are_left_to_the_tree() -> None:
    for wrong in (b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
        assert readings(b"<p>" + wrong)[0] is None
        assert readings(b"<p>" + wrong + b"x")[0] is None


@pytest.mark.parametrize("text", ["<b>w</b> " * 99, "é  w" * 400, "\u00a0" * 900 + "w", "<b>" + "x" * 4000])
def test_the_text_of_an_anchor_ends_after_64_nodes_and_200_characters(text: str) -> None:
    by_kernel, by_tree = readings(f"<a href=x>{text}".encode())
    assert by_kernel == by_tree


@pytest.mark.parametrize("length", [*range(1, 36), 47, 48, 49, 63, 64, 65])
def test_nothing_is_overlooked_where_sixteen_bytes_end(length: int) -> None:
    word = "abcdefghij" * 7
    texts = [word[:length], word[: length - 1] + " ", " " + word[:length], word[:length] + " \n b"]
    texts += [word[: length - 1] + odd for odd in ("é", "&lt;", "<", "&", "\r\n", "\u00a0 ")]
    for text in texts:
        href = text.replace("<", "%3C")
        page = (
            f'<a href="{href}">{text}</a><i class="{href}" title={word[:length]}>{text}</i><{word[:length]}'
        )
        body = f"<p>{text}</p><{word[:length]} href='{href}#{href}'>{page}".encode()
        for end in (len(body), len(body) - length // 2):
            by_kernel, by_tree = readings(body[:end].decode(errors="ignore").encode())
            assert by_kernel == by_tree


@pytest.mark.parametrize("name", ["class", "title", "href", "CLASS", "Href"])
@pytest.mark.parametrize("rest", ['="x"', "='x'", "=x", '= "x"', "", '="x', '="a"b href="c"'])
def test_the_usual_attributes_are_read_as_any_other(name: str, rest: str) -> None:
    for before in ("", " href='first'", "/", "\n", ' id="i"'):
        by_kernel, by_tree = readings(f"<a{before} {name}{rest}>t</a> <a {name}{rest} href=z>u".encode())
        assert by_kernel == by_tree


@pytest.mark.parametrize(
    "text", ["</b>", "</B>", "</b >", "</bb>", "</", "</b", "</i></b>", "</p>", "</div>x</b>"]
)
def test_an_end_tag_closes_what_the_tree_closes(text: str) -> None:
    for around in (
        "{}",
        "<p><b>one{}two",
        "<div><i><b>{}x<p>y</b>z",
        "<table><tr><td><b>{}",
        "<li><b><b>{}{}a",
    ):
        by_kernel, by_tree = readings(("<b><a href=q>t" + around.replace("{}", text)).encode())
        assert by_kernel in (None, by_tree)
        assert by_kernel is not None or "<div>" in around or "<li>" in around


def test_links_are_those_of_the_model() -> None:
    by_kernel, _ = readings(b"<a href='x y' rel=' A  b '> t <b>u</b></a>")
    assert by_kernel is not None
    assert by_kernel.links == (Link("x y", "t u", "a b", "a"),)


MEGABYTE = 1_000_000
BOMBS: dict[str, Callable[[], bytes]] = {
    "tags without an end": lambda: b"<a" * (MEGABYTE // 2),
    "open anchors": lambda: b"<a href=x>" * (MEGABYTE // 10),
    "end tags": lambda: b"<div>" * 300 + b"</x>" * (MEGABYTE // 4),
    "end tags of blocks": lambda: b"<i>" + b"<span>" * 300 + b"</div>" * (MEGABYTE // 6),
    "paragraphs": lambda: b"<p>" * (MEGABYTE // 3),
    "list items in spans": lambda: b"<ul>" + b"<span>" * 300 + b"<li>" * (MEGABYTE // 4),
    "ampersands": lambda: b"&" * MEGABYTE,
    "names of references": lambda: b"&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * (MEGABYTE // 40),
    "digits": lambda: b"&#" + b"9" * MEGABYTE,
    "comments": lambda: b"<!--" * (MEGABYTE // 4),
    "dashes": lambda: b"<!--" + b"-" * MEGABYTE,
    "scripts": lambda: b"<script>" + b"<!--<script>" * (MEGABYTE // 12),
    "half scripts": lambda: b"<script>" + b"</scrip" * (MEGABYTE // 7),
    "attributes": lambda: b"<a " + b"href " * (MEGABYTE // 5) + b">",
    "quotes": lambda: b"<a b=' c=\">" * (MEGABYTE // 11),
    "distinct hrefs": lambda: b"".join(b"<a href=%d></a>" % number for number in range(60_000)),
    "nofollow": lambda: b"<a href=x rel=nofollow></a>" * (MEGABYTE // 27),
    "metas": lambda: b"<meta name=robots content=x>" * (MEGABYTE // 28),
    "one long word": lambda: b"<main>" + b"x" * MEGABYTE,
    "formatting": lambda: b"<b><i><u><p>" * (MEGABYTE // 12),
    "tables": lambda: b"<table><tr><td>" * (MEGABYTE // 15),
    "rows": lambda: b"<table>" + b"<tr><td>x" * (MEGABYTE // 9),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_page_of_a_megabyte_takes_the_kernel_long(name: str) -> None:
    from skitter.native import _kernels

    body = BOMBS[name]()
    begun = time.process_time()
    _kernels.read_html(body, True, True, b"skitter", Link, str)
    assert time.process_time() - begun < 1


def test_a_page_that_is_read_while_another_one_is_goes_to_the_tree() -> None:
    """The kernel's memory is one; where it calls Python another thread may come between."""
    markup = pytest.importorskip("skitter.native._kernels", reason="the kernels were not built")
    page = b"<title>t</title><a href='odd\t'>x</a><p>text"
    inner: list[object] = []

    def follow(href: str) -> str:
        inner.append(markup.read_html(b"<title>other</title>", True, True, b"skitter", Link, str))
        return href.strip()

    read = markup.read_html(page, True, True, b"skitter", Link, follow)
    assert inner == [None]
    assert (read[0], [link.href for link in read[6]]) == ("t", ["odd"])
    assert markup.read_html(b"<title>other</title>", True, True, b"skitter", Link, str)[0] == "other"
