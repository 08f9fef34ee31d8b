from __future__ import annotations

import base64
import warnings

import ada_url
from hypothesis import given
from hypothesis import strategies as st

from skitter.archive.digests import digests_of, one_by_one
from skitter.archive.warc import records as warc
from skitter.archive.warc.heads import response_head
from skitter.archive.warc.surt import surt
from tests.exchanges import exchange, read_with_fastwarc, read_with_warcio, sha256

with warnings.catch_warnings():
    # Its regular expressions have invalid escapes in plain byte strings.
    warnings.simplefilter("ignore")
    from surt import surt as reference_surt  # type: ignore[import-untyped]

ID = "urn:uuid:12345678-1234-4234-8234-123456789abc"
LINE_ENDS = [b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r\n", b""]
LINES = st.one_of(
    st.sampled_from(
        [
            b"HTTP/1.1 200 OK",
            b"HTTP/2 200",
            b"A: b",
            b"Transfer-Encoding: chunked",
            b"Content-Length: 1",
            b" folded",
        ]
    ),
    st.binary(max_size=12),
    st.text(alphabet=" \t\0\x0b\x0c\x85\xa0\u2003:a", max_size=6).map(str.encode),
)
HEADS = st.lists(st.tuples(LINES, st.sampled_from(LINE_ENDS)), max_size=8).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@given(HEADS, st.binary(max_size=60))
def test_whatever_a_server_sent_two_readers_find_the_same_body(head: bytes, body: bytes) -> None:
    sent = exchange(head=head, body=body)
    fields = warc.response_fields(
        sent,
        warc.common_fields(sent, sent.url, warc.warc_date(sent.sent_at)),
        warc.digest_field(sha256(body)),
        "",
        ID,
    )
    digests = digests_of(sent)
    block = warc.digest_field(digests.block)
    member = warc.response_record(digests.head, body, block, ID, fields)
    (by_warcio,) = read_with_warcio(member)
    (by_fastwarc,) = read_with_fastwarc(member)
    assert by_warcio.payload == by_fastwarc.payload == body
    assert by_warcio.status == by_fastwarc.status


@given(HEADS, st.integers(0, 50))
def test_a_stored_head_is_stored_the_same_when_it_comes_again(head: bytes, length: int) -> None:
    once = response_head(head, 200, length)
    assert response_head(once, 200, length) == once


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            """/ // . .. /./ /../ % 2 5 %25 %2F %3f %23 %2525 ? & = ; # + | [ ] ~ @ : ' a B é www. .aspx (
            0123456789abcdefghijklmn ) jsessionid= phpsessid= sid= cfid=1 &cftoken=2
            0123456789abcdef0123456789abcdef""".split()
        ),
        st.text(max_size=3),
    ),
    max_size=10,
).map("".join)
HOSTS = st.sampled_from(
    [
        "example.org",
        "www.example.org",
        "WWW3.Example.co.uk",
        "wwww.example.org",
        "www4www.example.org",
        "a.www.example.org.",
        "www.org",
        "a..b",
        "192.0.2.7",
        "[2001:db8::1]",
        "b\u00fccher.ch",
    ]
)


@given(st.sampled_from(["http", "https"]), HOSTS, st.sampled_from(["", ":80", ":443", ":8080"]), PIECES)
def test_the_key_of_a_url_is_the_one_that_replay_asks_for(
    scheme: str, host: str, port: str, rest: str
) -> None:
    try:
        url: str = ada_url.URL(f"{scheme}://{host}{port}/{rest}").href
    except ValueError:
        return
    assert surt(url) == reference_surt(url)


@given(st.text())
def test_every_text_has_a_key_without_spaces(text: str) -> None:
    for url in (text, f"http://{text}", f"http://a/{text}"):
        key = surt(url)
        assert key
        assert key.isascii()
        assert key.isprintable()
        assert " " not in key


@given(st.binary(max_size=300), st.integers(0, 20))
def test_both_digests_are_those_of_hashlib(body: bytes, times: int) -> None:
    """By the kernel where it was built, at every length around the ends of blocks."""
    found = digests_of(exchange(body=body * times))
    wanted = sha256(body * times), sha256(found.head + body * times)
    assert found[1:] == wanted == one_by_one(found.head, body * times)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_digests_are_spelled_as_base32_has_them(first: bytes, second: bytes) -> None:
    spelled = tuple(f"sha256:{base64.b32encode(digest).decode()}" for digest in (first, second))
    assert warc.digest_fields(first, second) == spelled
