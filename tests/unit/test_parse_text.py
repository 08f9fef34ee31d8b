"""Main text, language, and the page that follows from a PDF."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.parse.content import PageContent, language_tag
from skitter.parse.page import read_page
from skitter.parse.pdf import PdfReading, with_pdf
from tests.readings import readings


def text_of(body: str) -> str:
    page = read_page(body.encode(), url="http://e.org/", content_type="text/html", with_text=True)
    return " ".join(page.text.split())


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<nav>menu</nav><p>words<footer>(c)</footer>", "words"),
        ("<header>banner</header><main><header>Headline</header>words</main>", "Headline words"),
        ("outside<main>words<nav>menu</nav><aside>see also</aside></main>", "words"),
        ("outside<article>words</article>outside", "words"),
        ("<article>one</article><article>two</article>", "one two"),
        ("<div role=navigation>menu</div><p>words", "words"),
        ("<form><p>words<select><option>x</select><button>go</button></form>", "words"),
        ("<aside><main>words</main></aside>", "words"),
        ("<p>words", "words"),
        ("", ""),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b c"),
    ],
)
def test_the_text_is_what_the_page_is_about(body: str, text: str) -> None:
    assert text_of(body) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<h1>One</h1> <p>two\n  three<p>four", "One\ntwo three\nfour"),
        ("a<b>b</b> c<span> d </span>e", "ab c d e"),
        ("a<br>b<hr>c<br><br>d", "a\nb\nc\nd"),
        ("<ul><li>one<li>two</ul><dl><dt>a<dd>b</dl>", "one\ntwo\na\nb"),
        ("<table><tr><th>a<th>b<tr><td> c <td><p>d<td>e</table>", "a\tb\nc\nd\ne"),
        ("<table><caption>x</caption><tr><td>a<td><td>b</table>y", "x\na\tb\ny"),
        ("x<pre>\n a\n  b\n</pre>y<textarea> t </textarea>z", "x\n a\n  b\ny  t  z"),
        ("a<svg><text>no</text></svg>b<button>no</button>c<script>no</script>d", "a b cd"),
        ("<form>a<fieldset><legend>b</legend>c</fieldset></form>d", "a\nb\nc\nd"),
        ("a\u00a0b &nbsp; c", "a\u00a0b \u00a0 c"),
        ("<footer>x</footer><div role=search>no</div><p>words", "words"),
        ("<title>t</title><noframes>no</noframes><iframe>no</iframe>words", "words"),
    ],
)
def test_blocks_are_lines_and_cells_are_separated_by_tabs(body: str, text: str) -> None:
    for page in readings(body.encode()):
        assert page is not None
        assert page.text == text


def test_links_in_what_is_left_out_of_the_text_are_still_found() -> None:
    body = b"<nav><a href=/menu>menu</a></nav><main>x</main>"
    page = read_page(body, url="http://e.org/", content_type="text/html", with_text=True)
    assert [link.href for link in page.links] == ["/menu"]


@pytest.mark.parametrize(
    "body",
    [
        "<table><tr><td>" + "a" * 100_000 + "<td>b" + "<tr><td>x<td>y" * 1000,
        "<table><tr>" + "<td>a" * 100_000 + "<tr>" * 10_000,
        "<table><tr><td>" * 20_000,
        "<nav>" * 100_000,
        "<nav><div><aside>" * 50_000,
        "<main>" * 100_000 + "x",
        "<ul><li>" * 50_000,
        "<button>" * 200_000,
        '<b role="navigation">' * 50_000,
    ],
)
def test_no_page_makes_its_text_large_or_slow(body: str) -> None:
    begun = time.process_time()
    assert len(text_of(body)) <= max(2_000_000, len(body))
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("body", "header", "language"),
    [
        ("<html lang=de>", "", "de"),
        ("<html lang=de>", "fr", "de"),
        ("<html>", "fr-CA, en", "fr-CA"),
        ("<html lang=''>", "pt_BR", "pt-BR"),
        ("<meta http-equiv=content-language content='nl, en'>", "fr", "nl"),
        ("<html lang='no language!'>", "sv", "sv"),
        ("<html>", "<script>", ""),
    ],
)
def test_the_language_is_the_pages_own_or_its_headers(body: str, header: str, language: str) -> None:
    page = read_page(body.encode(), url="http://e.org/", content_type="text/html", content_language=header)
    assert page.language == language


@given(st.text())
def test_a_language_is_a_short_tag_or_nothing(said: str) -> None:
    found = language_tag(said)
    assert found == "" or (found.isascii() and len(found) <= 80 and " " not in found)


PAGE = PageContent(media_type="application/pdf", base="http://e.org/a.pdf")


def test_what_a_pdf_says_is_cleaned() -> None:
    reading = PdfReading(
        title=" A\0 title \n",
        text="a bro\ufffe\r\nken word\r\n  \r\n \f next  ",
        links=("http://e.org/x#frag", "http://e.org/x", "mailto:a@b", "relative.html", ""),
    )
    page = with_pdf(PAGE, reading)
    assert (page.title, page.text) == ("A title", "a broken word\nnext")
    assert [link.href for link in page.links] == ["http://e.org/x", "relative.html"]


@given(st.text(), st.text(), st.lists(st.text()))
def test_nothing_that_a_pdf_says_raises(title: str, text: str, links: list[str]) -> None:
    page = with_pdf(PAGE, PdfReading(title=title, text=text, links=tuple(links)), max_links=3)
    assert len(page.title) <= 500
    assert len(page.links) <= 3
