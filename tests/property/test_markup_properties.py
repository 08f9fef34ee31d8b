"""Whatever the kernel says of a page, the tree says too."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.test_parse_properties import PAGE, mutated
from tests.readings import ATTRIBUTES, BITS, TAGS, nasty_page, readings

TOKENS = st.one_of(
    st.sampled_from(TAGS).map(lambda tag: f"<{tag}>"),
    st.sampled_from(TAGS).map(lambda tag: f"</{tag}>"),
    st.tuples(st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES)).map(lambda pair: f"<{pair[0]} {pair[1]}>"),
    st.sampled_from(BITS),
)

DECLARATIONS = [
    *("<title>", "</title>", "<script>", "</script>", "<!--", "-->", "<p>", "<a ", "</a ", "<", ">", "'", '"'),
    *("<meta ", "<META\n", "charset", "charset=", "content=", "name=x ", "http-equiv=", "content-type ", "="),
    *("koi8-r", "utf-8", "iso-8859-1 ", " ", "text/html; charset=", "é", "&#99;", "x" * 400),
    *("<meta charset=utf-8>", "<meta charset=koi8-r>", "<?xml encoding='koi8-r'?>"),
    "<meta http-equiv=content-type content='text/html; charset=koi8-r'>",
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(TOKENS, max_size=25).map("".join), st.sampled_from(["utf-8", ""]))
@example("<textarea>&#10;x", "utf-8")
@example("<svg><span>x", "utf-8")
@example("<a href=y><command>x<a>", "utf-8")
@example("<dt role=navigation><isindex><dt>x", "utf-8")
def test_markup_of_nasty_tokens_is_read_alike(body: str, charset: str) -> None:
    by_kernel, by_tree = readings(body.encode(), charset)
    assert by_kernel is None or by_kernel == by_tree


@given(st.text(max_size=200))
def test_any_text_is_read_alike(body: str) -> None:
    by_kernel, by_tree = readings(body.encode("utf-8", "surrogatepass"))
    assert by_kernel is None or by_kernel == by_tree


def test_thousands_of_nasty_pages_are_read_alike_and_most_of_them_in_one_pass() -> None:
    source = random.Random(7)
    read = 0
    for _ in range(2500):
        body = nasty_page(source)
        by_kernel, by_tree = readings(body, source.choice(["utf-8", ""]))
        assert by_kernel is None or by_kernel == by_tree, body
        read += by_kernel is not None
    assert read > 1000


def test_thousands_of_nasty_charset_declarations_are_read_alike() -> None:
    source = random.Random(9)
    read = 0
    for _ in range(3000):
        body = "".join(source.choices(DECLARATIONS, k=source.randint(1, 20))).encode()
        by_kernel, by_tree = readings(body, "")
        assert by_kernel is None or by_kernel == by_tree, body
        read += by_kernel is not None
    assert read > 1000


def test_mutations_of_a_page_are_read_alike() -> None:
    source = random.Random(8)
    for _ in range(1000):
        body = mutated(source, PAGE)
        by_kernel, by_tree = readings(body, source.choice(["utf-8", ""]))
        assert by_kernel is None or by_kernel == by_tree, body
