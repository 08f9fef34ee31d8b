"""A page as Markdown has every word that its text has, in the forms that Markdown knows."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from skitter.collection.export.markdown import markdown_of
from skitter.parse.page import read_page

URL = "http://e.org/dir/page.html"


def both(body: bytes, content_type: str = "text/html") -> tuple[str, str]:
    """Text and Markdown of a page."""
    content = read_page(body, url=URL, content_type=content_type, with_text=True, max_links=0)
    return content.text, markdown_of(body, content)


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.replace("\\", "")))


PARTS = {
    "headings": ("<h1>First title</h1><h2>Second <em>title</em></h2><h6>sixth</h6>", "# First title"),
    "paragraphs": ("<p>one<p>two <b>bold</b> <i>slanted</i><br>broken", "**bold**"),
    "code": ("<p>call <code>read_page()</code> and <kbd>Ctrl</kbd> <samp>out</samp>", "`read_page()`"),
    "a table": (
        "<table><tr><th>Name<th>Value<tr><td>alpha<td>1<tr><td>beta<td>2 or 3</table>",
        "| alpha | 1 |",
    ),
    "a table with a caption and wide cells": (
        "<table><caption>Figures</caption><tr><th colspan=2>Both<tr><td>left<td><ul><li>in cell</ul></table>",
        "in cell",
    ),
    "a table within a table": ("<table><tr><td>outer<td><table><tr><td>inner</table></table>", "inner"),
    "lists": ("<ul><li>apple<li>pear</ul><ol><li>first<li>second</ol>", "- apple"),
    "nested lists": ("<ul><li>a1<ul><li>b2<ol><li>c3<li>d4</ol></ul><li>e5</ul>", "    1. c3"),
    "definitions": ("<dl><dt>term<dd>its meaning<dd>another<dt>second term<dd>more</dl>", "its meaning"),
    "verbatim text": ("<pre>def f():\n    return  1\n</pre>", "def f():\n    return  1\n"),
    "verbatim code": ("<pre><code class=language-c>int x = 1;\n</code></pre>", "```c\nint x = 1;\n```"),
    "links": ("<p>see <a href=../other.html>the other page</a>", "[the other page](http://e.org/other.html)"),
    "an image": ("<p>shown <img src=i.png alt='a red door'> here", "![a red door](http://e.org/dir/i.png)"),
    "a quotation": ("<blockquote><p>quoted once<p>and twice</blockquote>", "> quoted once"),
    "a figure": ("<figure><img src=x alt=x><figcaption>what it shows</figcaption></figure>", "what it shows"),
    "details": ("<details><summary>short</summary>long story</details>", "long story"),
    "marks in words": ("<p>snake_case_name 2*3*4 [not] a_link #5 <code>a*b</code>", "`a*b`"),
    "forms": ("<form><label>Name</label><textarea>typed words</textarea></form>", "typed words"),
}
FRAME = "<title>T</title><nav>menu words</nav>{}<footer>imprint words</footer>"


@pytest.mark.parametrize(
    "around", ["{}", "<main>{}</main>", "<article>{}</article>", "<div><div>{}</div></div>"]
)
@pytest.mark.parametrize("name", PARTS)
def test_markdown_has_every_word_of_the_text(name: str, around: str) -> None:
    html, expected = PARTS[name]
    text, markdown = both(FRAME.format(around.format(html)).encode())
    assert text
    assert words(text) - words(markdown) == Counter()
    assert expected in markdown


def test_markdown_has_every_word_of_a_page_with_all_of_these() -> None:
    """Short paragraphs among code, tables and lists of links are what a search for the main content loses."""
    text, markdown = both(FRAME.format("".join(html for html, _ in PARTS.values())).encode())
    assert words(text) - words(markdown) == Counter()
    assert all(expected in markdown for _, expected in PARTS.values())


def test_markdown_leaves_out_what_the_text_leaves_out() -> None:
    body = b"""<header>banner</header><div role=navigation>menu</div><nav>more</nav><aside>beside</aside>
    <template>hidden</template><script>code</script><style>p {}</style><button>press</button><p>kept</p>"""
    text, markdown = both(body)
    assert (text, markdown.strip()) == ("kept", "kept")
    text, markdown = both(b"<main>one<nav>no</nav>two<svg></svg>three<b>fo<script>no</script>ur</b></main>")
    assert (text.split(), markdown.split()) == (["one", "two", "threefour"], ["one", "two", "three**four**"])
    text, markdown = both(b"<p>before</p><main role=search><header>headline</header><nav>menu</nav>in</main>")
    assert (text.split(), markdown.split()) == (["headline", "in"], ["headline", "in"])


def test_markdown_is_read_in_the_charset_and_the_syntax_of_the_page() -> None:
    latin = "<main><p>gr\xfc\xdfe</main>".encode("latin-1")
    assert both(latin, "text/html; charset=latin1")[1].strip() == "gr\xfc\xdfe"
    xhtml = b"<html xmlns='http://www.w3.org/1999/xhtml'><script src='x'/><body><p>after</p></body></html>"
    assert both(xhtml, "application/xhtml+xml")[1].strip() == "after"
    assert both(b"plain words", "text/plain")[1] == "plain words"
    assert both(b"<html role=search><p>x", "text/html") == ("", "")


@pytest.mark.parametrize(
    "body",
    [
        b"<nav>a<nav>b<nav>c</nav></nav></nav>x",
        b"<aside role=search>q<nav role=banner>b<aside>c</aside></nav></aside>x",
        b"<nav>a" * 5000 + b"</nav>" * 5000 + b"x",
        b"<template><main>no</main></template><main>x</main>",
        b"<frameset><frame src=x></frameset>",
        b"",
    ],
)
def test_markdown_of_nested_furniture_and_of_nothing_is_that_of_the_rest(body: bytes) -> None:
    text, markdown = both(body)
    assert markdown.strip() == text
