"""What pages and stylesheets need to look as they do, found in their source."""

from __future__ import annotations

import time

import pytest

from skitter.parse.markup.css import references
from skitter.parse.markup.requisites import candidates
from skitter.parse.page import PageContent, read_page

URL = "http://a.test/dir/page.html"


def read(html: str, *, asked: bool = True, content_type: str = "text/html; charset=utf-8") -> PageContent:
    return read_page(html.encode(), url=URL, content_type=content_type, with_requisites=asked)


ELEMENTS = {
    "<img src=x>": ["x"],
    "<img src='data:image/png;base64,AA' srcset='a 1x, b 2x'>": ["a", "b"],
    "<picture><source srcset='a.webp 100w'><img src=b></picture>": ["b", "a.webp"],
    "<link rel=stylesheet href=x>": ["x"],
    "<link rel='alternate Stylesheet' href=x>": ["x"],
    "<link rel='shortcut icon' href=x>": ["x"],
    "<link rel=apple-touch-icon href=x>": ["x"],
    "<link rel=preload as=font href=x>": ["x"],
    "<link rel=preload as=image imagesrcset='x 1x, y 2x'>": ["x", "y"],
    "<link rel=preload as=fetch href=x>": [],
    "<link rel=modulepreload href=x>": ["x"],
    "<link rel=canonical href=x><link rel=next href=y>": [],
    "<script src=x></script><script>y</script>": ["x"],
    "<video src=x poster=y></video>": ["x", "y"],
    "<video><source src=x><track src=y></video>": ["x", "y"],
    "<audio src=x></audio>": ["x"],
    "<embed src=x><object data=y></object>": ["x", "y"],
    "<input type=IMAGE src=x><input type=text src=y>": ["x"],
    "<body background=x>": ["x"],
    "<svg><image xlink:href=x /><image href=y /></svg>": ["y", "x"],
    "<p style='background: url(x)'>": ["x"],
    "<style>@import 'x'; p { background: url(y) }</style>": ["x", "y"],
    "<a href=x>no</a><iframe src=y></iframe>": [],
    "<img src=' x#part '><img src=x>": ["x"],
    "<img src='mailto:x'><img src='blob:x'><img src>": [],
    "<img src='data:image/gif;base64,AA' data-src=x>": ["x"],
    "<img src=x data-original=y><img data-lazy-src=z>": ["x", "y", "z"],
    "<img data-srcset='a 1x, b 2x' data-lazy-srcset='c 1x'>": ["a", "b", "c"],
    "<picture><source data-srcset='a 1x'><img data-src=b></picture>": ["a", "b"],
    "<video data-src=x></video>": ["x"],
    "<img data-src='x_{width}.jpg' data-srcset='{url} 1x'><p data-src=y><a data-src=z>": [],
}


@pytest.mark.parametrize("html", ELEMENTS)
def test_each_element_that_shows_something_states_it(html: str) -> None:
    assert sorted(read(html).requisites) == sorted(ELEMENTS[html])


def test_requisites_cost_nothing_unless_they_are_asked_for() -> None:
    assert read("<img src=x>", asked=False).requisites == ()
    assert read("@import 'x';", asked=False, content_type="text/css").requisites == ()


def test_links_are_the_same_with_requisites() -> None:
    html = "<base href=/b/><link rel=stylesheet href=s><a href=x>y</a><img src=i>"
    asked, plain = read(html), read(html, asked=False)
    assert (asked.base, asked.links, asked.requisites) == (plain.base, plain.links, ("s", "i"))


def test_queries_are_written_in_the_charset_of_the_page() -> None:
    found = read_page(
        "<img src='/x?\xe4'>".encode("latin-1"),
        url=URL,
        content_type="text/html; charset=latin1",
        with_requisites=True,
    )
    assert found.requisites == ("/x?%E4",)


def test_the_requisites_of_a_page_are_bounded() -> None:
    html = "".join(f"<img src={n}>" for n in range(100)).encode()
    found = read_page(html, url=URL, content_type="text/html", with_requisites=True, max_links=7)
    assert len(found.requisites) == 7


SRCSETS = {
    "a": ["a"],
    "a 1x, b 2x": ["a", "b"],
    "a, b,": ["a", "b"],
    "a,b 2x": ["a,b"],
    "a (1, 2) 3x, b": ["a", "b"],
    "data:image/png;base64,AA 1x, b 2x": ["data:image/png;base64,AA", "b"],
    " ,, \n a\t1x\n,b": ["a", "b"],
    "a (b": ["a"],
    "": [],
    ",": [],
}


@pytest.mark.parametrize("srcset", SRCSETS)
def test_every_candidate_of_a_srcset_is_found(srcset: str) -> None:
    assert list(candidates(srcset)) == SRCSETS[srcset]


SHEETS = {
    "p { background: url(a) }": ["a"],
    "p { background: URL( 'a' ) }": ["a"],
    'p { background: url("a b") , url( c ) }': ["a b", "c"],
    "@import 'a'; @import \"b\" screen; @IMPORT url(c) layer(x) supports(display: grid);": ["a", "b", "c"],
    "@import 'a' layer('b');": ["a"],
    "@font-face { src: local('no'), url(a.woff2) format('woff2') }": ["a.woff2"],
    "@namespace url(http://no/); @namespace url('no'); @namespace x 'no'; p { background: url(a) }": ["a"],
    "@charset 'utf-8'; p { content: 'url(no)' }": [],
    "/* url(no) */ p { background: /* */ url(a) /*": ["a"],
    "p { background: image-set('a' 1x, url(b) 2x); content: 'no' }": ["a", "b"],
    "p { background: -webkit-image-set('a' 1x) }": ["a"],
    "p { background: url(data:image/png;base64,AA) url(#mask) }": [],
    r"p { background: url(a\29 b) url('c\
d') url(\65 ) }": ["a)b", "cd", "e"],
    "p { background: xurl(no) -url(no) url(no no) }": [],
    "p { background: url(a": ["a"],
    "p { background: url('a": ["a"],
    "p { content: 'open\n} q { background: url(a) }": ["a"],
    "url(\\0) url(\\d800)": ["�", "�"],
}


@pytest.mark.parametrize("css", SHEETS)
def test_a_stylesheet_says_what_it_shows_and_imports(css: str) -> None:
    assert list(references(css)) == SHEETS[css]


def test_a_stylesheet_is_read_as_a_page_of_its_own_address() -> None:
    found = read("@import 'x'; p { background: url(x) } q { background: url(y) }", content_type="text/css")
    assert (found.media_type, found.base, found.requisites, found.links) == ("text/css", URL, ("x", "y"), ())


BLOWS = [
    "/*",
    "/* ",
    '"\\',
    "'",
    "url(",
    "url( ",
    "url('",
    "url(\\",
    "@",
    "@import ",
    "image-set(",
    "\\",
    "u",
    "(",
]


@pytest.mark.parametrize("blow", BLOWS)
def test_hostile_css_costs_linear_time(blow: str) -> None:
    """0.2 s for a million characters; a second look at each would take days."""
    started = time.process_time()
    list(references("@" + blow * (400_000 // len(blow))))
    assert time.process_time() - started < 5


@pytest.mark.parametrize("blow", [",", " ", "a ", "a,", "(", "a (", ", ", "a )"])
def test_a_hostile_srcset_costs_linear_time(blow: str) -> None:
    started = time.process_time()
    list(candidates(blow * (400_000 // len(blow))))
    assert time.process_time() - started < 5
