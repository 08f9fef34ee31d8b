"""The kernel in C answers for plain hrefs, and says of each what the parser and the keys would have said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.model import Link
from skitter.parse.markup.html_parts import absolute
from skitter.settings import KeySettings
from skitter.urls import links as links_module
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.urls.links import LinkReader, Resolved
from tests.keys import KEYS
from tests.parsed import parsed

SETTINGS = [
    KeySettings(),
    KeySettings(rules=1),
    KeySettings(sort_query=False),
    KeySettings(drop_empty=True, sessions=False),
    KeySettings(tracking=False, drop_parameters=("view", "lo*"), keep_parameters=("utm_source", "sid")),
    KeySettings(www=True, scheme=True),
    KeySettings(scheme=True, trailing_slash=True, default_documents=("index.html",)),
]
ALL_KEYS = [Keys(settings) for settings in SETTINGS]
SESSION = "0123456789abcdef0123456789abcdef"
PARAMETERS = (
    "view item View b a a.b x[] utm_source UTM_Source gclid sid SID PHPSESSID sessionid cfid %61 v%69ew log"
)


def meant(keys: Keys, base: str, href: str) -> Resolved | None:
    url = normalise(href, base)
    return (url, keys.key_of(url), host_of(url)) if url is not None else None


def experienced(keys: Keys) -> LinkReader:
    """It has met all names of parameters that are used here."""
    reader = LinkReader(keys)
    reader.resolve("http://h.org/", [Link("?" + "&".join(f"{name}=1" for name in PARAMETERS.split()))])
    return reader


def assert_all_agree(base: str, hrefs: list[str]) -> None:
    for keys in ALL_KEYS:
        found = experienced(keys).resolve(base, [Link(href) for href in hrefs])
        assert found == [meant(keys, base, href) for href in hrefs]


def odd(base: str, hrefs: list[str]) -> list[str]:
    """Those that the kernel leaves to others."""
    kernel, reader, host = links_module._resolve_plain, experienced(KEYS), host_of(base)
    assert kernel is not None
    folder = base[: base.rindex("/") + 1]
    links = [Link(href) for href in hrefs]
    found, places = kernel(links, folder, host, KEYS.prefix(host), True, reader._kept, {}, {})
    assert [place for place, one in enumerate(found) if one is None] == places
    return [hrefs[place] for place in places]


# -- all hrefs, by what they are made of

HOSTS = """
http://h.org https://h.org http://www.h.org http://a-b.c1.d http://1.a http://localhost http://h
""".split()
OWN_HOSTS = [
    *HOSTS,
    *"https://h.org:8443 http://127.0.0.1:8080 http://[::1] http://h.org. http://xn--zca.org".split(),
]
STRANGE_HOSTS = """
http://h.org:80 http://H.org HTTP://h.org http:h.org http:/h.org http:///h.org http://u@h.org http://u:p@h.org
http://1.2.3.4 http://1.2 http://h.1 http://h.0x1 http://0x7f.1 http://h.1a http://h.a1 http://-a.org
http://a-.org http://a.-b http://a--b.org http://xn--a.org http://xn--/ http://h.xn--p1ai http://h_h.org
http://h..org http://.h http:// https:// https://. http://%41.org http://é.org http://h.org\\
ftp://h.org // //h.org
""".split()
SEGMENTS = "a b.html index.html -x _y ~z a..b a. a: a:b x@y a,b+c=d !$&* %C3%A9 %2F".split()
STRANGE_SEGMENTS = """
%2E %2e %41 %c3 % %4 %G0 . .. .a ..a %2e%2E é a;b ;jsessionid=1 (S(0123456789abcdef)) (a) ' [ | ^ ` { \\ #
http: mailto:a javascript:a
""".split()
VALUES = ["1", "2", "a=b", "%C3%A9", "+", "a/b?c", "A", "(;)", SESSION]
STRANGE_VALUES = ["", "x y", "%c3", "%41", "%", "'", "é", "#", "&", "\t"]


def hrefs_of(
    starts: list[str], segments: list[str], names: list[str], values: list[str]
) -> st.SearchStrategy[str]:
    parameters = st.builds("{}={}".format, st.sampled_from(names), st.sampled_from(values))
    return st.builds(
        "{}{}{}{}".format,
        st.sampled_from(starts),
        st.sampled_from(["/", "/", ""]),
        st.lists(st.sampled_from(segments), max_size=4).map("/".join),
        st.just("") | st.lists(parameters, max_size=4).map(lambda query: "?" + "&".join(query)),
    )


names = PARAMETERS.split()
ordinary = hrefs_of([*HOSTS, "", "", "", "..", "../.."], SEGMENTS, names[:7], VALUES)
strange = hrefs_of(
    [*OWN_HOSTS, *STRANGE_HOSTS, "", "", "..", ".", "../."],
    [*SEGMENTS, *STRANGE_SEGMENTS],
    ["", "new", "=", *names],
    [*VALUES, *STRANGE_VALUES],
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """Something is put in, and as much may be gone for it."""
    href = draw(ordinary)
    at = draw(st.integers(0, len(href)))
    piece = draw(st.sampled_from("/ // . .. ? & && = % %2 : @ \\ é A \0 \n".split(" ")))
    return href[:at] + piece + href[at + draw(st.integers(0, 2)) :]


bases = st.builds(
    "{}/{}{}".format,
    st.sampled_from([*OWN_HOSTS, "http://u:p@h.org"]),
    st.lists(st.sampled_from([*SEGMENTS, *SEGMENTS, *STRANGE_SEGMENTS]), max_size=3).map("/".join),
    st.sampled_from(["", "/", "/page", "/page?x=/y/", "/page#f/g"]),
).map(lambda url: absolute("http://h.org/", url) or "http://h.org/")


@given(bases, st.lists(ordinary | spoilt() | strange, min_size=1, max_size=6))
def test_the_kernel_says_what_the_parser_and_the_keys_say(base: str, hrefs: list[str]) -> None:
    assert_all_agree(base, hrefs)


@given(
    st.sampled_from(OWN_HOSTS),
    st.lists(st.text(st.sampled_from("aZ9_-.~/%2eE;(?#@:&=é "), max_size=12), max_size=8),
)
def test_so_it_does_of_anything_at_all(host: str, hrefs: list[str]) -> None:
    rooted = ["/" + href for href in hrefs]
    in_full = [host + href for href in hrefs]
    assert_all_agree(f"{host}/a/%C3%A9/b", hrefs + rooted + in_full + ["../" + href for href in hrefs])


# -- which are plain

PLAIN = """
a a.html a/b-c/d_e.html ../b ../../../../c/ ../ x@y a,b ~user/ -/_ a..b
/ /a /s1/p1.html /a/ /~user/x /wiki/Talk:Page /@user /a=b&c
http://h.org http://h.org/ http://h.org/a/b?view=1 http://h.org?view=1
https://h.org http://www.h.org/ http://localhost/ https://other.example/a/b.html http://h.1a.a1/ http://a--b.c/
%C3%A9 /caf%C3%A9/10.html a%2Fb /%25 https://other.example/%E2%82%AC
a?view=1 ../?view=1 /?view=1 ../list?view=short&item=3 a?b=2&a=1&View=3 a?x[]=1&x[]=2
a?view=1=2 a?view=%C3%A9&a.b=(;)/? a?view=1;b=2;sidx=3 a?view=;jsessionid
""".split()
ODD = """
. .. ./ ./a a/../b a/./b a//b .a ..a a/.b ... /. /.. /.a /a/.. // //a //h.org/ /a//b
%2e %2E%2E/ %2e%2e/ /%2E a%2Eb
a%41 %c3%a9 %C3%a9 % %4 %GG a% a%2 a;b a(b) a:b http: http:a http:/a http:// https:// mailto:a x:y
HTTP://h.org/ http://H.org/ http://h.org:80/ http://h.org:8080/ http://u@h.org/ http://h.org./
http://.h.org/ http://h..org/ http://1.2.3.4/ http://1/ http://h.1/ http://h.0x1/ http://0x7f.1/ http://[::1]/ http://h_h.org/
http://xn--zca.org/
http://a.xn--p1ai/ http://-h.org/ http://h-.org/ http://h.org\\a http://h%41.org/
? ?view=1 a? a?view a?view= a?=1 a?&view=1 a?view=1& a?view=1&&a=1 a?==1
a?view=%c3 a?view=%41 a?view=% a?view=' a?view=é
a?new=1 a?utm_source=1 a?UTM_Source=1 a?gclid=1 a?PHPSESSID=1 a?sid=1 a?SID=1 a?%61=1 a?v%69ew=1
a?VIEW=1 a?view=1#a #a a#b \\a a\\b a|b é /é http://é.org/
a?view=1;jsessionid=2 a?view=1;JSessionID=2&b=1 a?view=1;PHPSESSID= a?view=1;x=2;sid=3 a?b=1&view=1;sessionid=2
a?view=a|b a?view=a^b a?view=` a?view={a} http://h.org.:80/ http://other.example./a
""".split()
BASES = [
    "http://h.org/x/y/page",
    "https://h.org:8080/%C3%A9/@z/",
    "http://h.org/a;b/(c)/%41/%/",
    "http://xn--zca.org/",
    "http://u:p@h.org/x/",
    "http://h.org/x#y/z",
    "http://h.org./x/",
    "https://h.org.:8080/x/y",
    "http://h.org../x/",
    "http://h.org/a|b/%7C/c",
]


@pytest.mark.parametrize("base", BASES)
def test_at_every_border_both_say_the_same(base: str) -> None:
    blank = ["", " ", " a", "a ", "/ ", "a\tb", "\ta", "/\ta", "a?view=1 ", "a?view=\t1", "a\0"]
    assert_all_agree(base, [*PLAIN, *ODD, *blank, *OWN_HOSTS, *STRANGE_HOSTS])
    for ups in range(5):
        assert_all_agree(base, ["../" * ups + href for href in [*PLAIN, *ODD]])


@pytest.mark.skipif(links_module._resolve_plain is None, reason="needs the kernel")
def test_what_pages_are_full_of_is_left_to_nobody_else() -> None:
    assert odd("http://h.org/x/y/", PLAIN) == []
    assert odd("https://h.org:8443/%C3%A9/@x/", PLAIN) == []
    own = ["https://xn--zca.org:8443", "https://xn--zca.org:8443/a?view=1", "/a", "a"]
    assert odd("https://xn--zca.org:8443/", own) == []


@pytest.mark.skipif(links_module._resolve_plain is None, reason="needs the kernel")
def test_what_is_not_certain_is_left_to_the_parser() -> None:
    assert odd("http://h.org/x/y/", ODD) == ODD
    below = "http://h.org/x/%41/"
    assert odd(below, ["a", "a/b", "a?view=1", "../", "../a", "/a"]) == ["a", "a/b", "a?view=1"]


@pytest.mark.skipif(links_module._resolve_plain is None, reason="needs the kernel")
def test_no_href_is_plain_on_a_host_that_ends_in_a_dot() -> None:
    for base in ("http://h.org./x/", "http://h.org.:8080/x/"):
        assert odd(base, PLAIN) == PLAIN


@pytest.mark.skipif(links_module._resolve_plain is None, reason="needs the kernel")
def test_names_of_parameters_are_learnt_from_the_first_url_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = parsed(monkeypatch)
    reader = LinkReader(KEYS)
    for number in range(5):
        reader.resolve("http://h.org/", [Link(f"list?view=short&item={number}"), Link(f"a?sid={number}")])
    assert asked == ["list?view=short&item=0", *(f"a?sid={number}" for number in range(5))]


def test_no_more_names_of_parameters_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_module, "_PARAMETERS", 100)
    reader = LinkReader(KEYS)
    for number in range(1_000):
        reader.resolve("http://h.org/", [Link(f"a?p{number}=1&{'long' * 20}{number}=1")])
        assert len(reader._kept) <= 100
        assert all(len(name) < 80 for name in reader._kept)


@pytest.mark.parametrize("settings", [KeySettings(rules=1), KeySettings(sort_query=False)])
def test_where_queries_follow_other_rules_no_name_is_known_to_be_kept(settings: KeySettings) -> None:
    assert not Keys(settings).keeps("view")


def test_a_name_is_kept_if_it_is_whatever_its_value() -> None:
    names = [
        "view",
        "View",
        "a.b",
        "utm_source",
        "UTM_x",
        "GCLID",
        "sid",
        "Sid",
        "phpsessid",
        "aspsessionidx",
        "a%62",
        "é",
    ]
    assert [name for name in names if KEYS.keeps(name)] == ["view", "View", "a.b", "é"]
    keys = ALL_KEYS[4]
    names = ["view", "VIEW", "lo", "login", "utm_source", "utm_medium", "item"]
    assert [name for name in names if keys.keeps(name)] == ["utm_source", "utm_medium", "item"]


# -- lengths

LENGTHS = [127, 128, 129, 255, 256, 257, 2_020, *range(2_028, 2_036), 2_047, 2_048, 3_000]


@pytest.mark.parametrize("length", LENGTHS)
def test_keys_of_long_urls_are_the_same_in_both(length: int) -> None:
    long = "p" * length
    hrefs = [long, "../" * 600 + long, "/" + long, "http://h.org/" + long, "https://other.example/" + long]
    hrefs += ["a?view=" + long, "/?view=1&item=" + long, "https://other.example?view=" + long]
    assert_all_agree("http://h.org/a/", hrefs)
    assert_all_agree(f"http://h.org/{long}/", ["a", "../a", "/a", "http://h.org/", "a?view=1"])


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 100])
def test_many_parameters_are_sorted_the_same_in_both(count: int) -> None:
    ways = [
        [f"view={7 * number % count}" for number in range(count)],
        [f"b={'a' * (count - n)}" for n in range(count)],
    ]
    assert_all_agree("http://h.org/a/", ["a?" + "&".join(way) for way in ways])


def test_hosts_with_long_names_are_the_same_in_both() -> None:
    for length in (62, 63, 64, 65, 252, 253, 254, 255, 300):
        name = "a" * length
        labels = ".".join(name[at : at + 50] for at in range(0, length, 50))
        assert_all_agree(
            "http://h.org/",
            [f"http://{name}/", f"http://{name}.org", f"https://{labels}/a", f"http://b.{labels}"],
        )
