from __future__ import annotations

import base64
import json
import os
import uuid

import pytest

from skitter.archive.digests import digests_of
from skitter.archive.warc import records as warc
from skitter.archive.warc.heads import request_head, response_head
from skitter.archive.warc.surt import _surt, may_be_key_of, posted, surt
from skitter.model import Copy, Exchange
from tests.corpora import corpus
from tests.exchanges import BODY, HEAD, Read, block_of, exchange, read_with_fastwarc, read_with_warcio, sha256

ID = "urn:uuid:12345678-1234-4234-8234-123456789abc"
DATE = "2026-01-02T03:04:05.250000Z"


def response(given: Exchange, media_type: str = "text/html") -> bytes:
    common = warc.common_fields(given, warc.target_uri(given.url), DATE)
    payload = warc.digest_field(sha256(given.body))
    fields = warc.response_fields(given, common, payload, warc.media_type_of(media_type), ID)
    digests = digests_of(given)
    block = warc.digest_field(digests.block)
    return warc.response_record(digests.head, given.body, block, ID, fields)


def read_by_both(member: bytes) -> Read:
    (by_warcio,) = read_with_warcio(member)
    (by_fastwarc,) = read_with_fastwarc(member)
    assert by_warcio.payload == by_fastwarc.payload
    assert by_warcio.status == by_fastwarc.status
    assert by_warcio.fields == by_fastwarc.fields
    return by_warcio


def test_a_well_formed_head_is_stored_byte_for_byte() -> None:
    head = b"HTTP/1.0 200 \r\nContent-length: %d\r\nX-Odd:\tcaf\xe9  \r\nx-odd: 2\r\n\r\n" % len(BODY)
    assert block_of(response(exchange(head=head))) == head + BODY


def test_transfer_coding_that_was_undone_is_renamed_and_the_length_added() -> None:
    head = response_head(b"HTTP/1.1 200 OK\r\ntransfer-Encoding: chunked\r\nA: b\r\n\r\n", 200, 7)
    assert (
        head == b"HTTP/1.1 200 OK\r\nX-Crawl-transfer-Encoding: chunked\r\nA: b\r\nContent-Length: 7\r\n\r\n"
    )


@pytest.mark.parametrize("wrong", [b"8", b"", b"-7", b"7, 7", b"07", b"seven"])
def test_a_wrong_length_is_kept_under_another_name(wrong: bytes) -> None:
    head = response_head(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % wrong, 200, 7)
    assert head == b"HTTP/1.1 200 OK\r\nX-Crawl-Content-Length: %b\r\nContent-Length: 7\r\n\r\n" % wrong


def test_of_several_lengths_one_right_one_stays() -> None:
    lengths = b"Content-Length: 9\r\nContent-Length: 7\r\nContent-Length: 7\r\n"
    head = response_head(b"HTTP/1.1 200 OK\r\n%b\r\n" % lengths, 200, 7)
    assert head.count(b"\r\nContent-Length: 7") == 1
    assert head.count(b"\r\nX-Crawl-Content-Length: ") == 2


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_without_a_body_keeps_its_length_field_or_gets_none(status: int) -> None:
    for fields in (b"", b"Content-Length: 5000\r\n"):
        head = b"HTTP/1.1 %d X\r\n%b\r\n" % (status, fields)
        assert response_head(head, status, 0) == head


def test_later_versions_of_http_are_stored_as_the_text_that_readers_know() -> None:
    given = exchange(head=b"HTTP/2 200 \r\nserver: x\r\n\r\n", http_version="2")
    member = response(given)
    assert block_of(member).startswith(b"HTTP/1.1 200 \r\nserver: x\r\n")
    assert read_by_both(member).fields["WARC-Protocol"] == "h2"
    assert (
        request_head(b"GET /HTTP/2 HTTP/2\r\nHost: x\r\n\r\n") == b"GET /HTTP/2 HTTP/1.1\r\nHost: x\r\n\r\n"
    )


HOSTILE_HEADS = {
    "nothing": b"",
    "only blank lines": b"\r\n\r\n\n",
    "no final blank line": b"HTTP/1.1 200 OK\r\nA: b\r\n",
    "cut in a field": b"HTTP/1.1 200 OK\r\nA: b\r\nConte",
    "bare line feeds": b"HTTP/1.1 200 OK\nA: b\n\n",
    "bare carriage returns": b"HTTP/1.1 200 OK\r\nA: b\rC: d\r\r\n\r\n",
    "a carriage return too many": b"HTTP/1.1 200 OK\r\r\nA: b\r\r\n\r\n",
    "NUL bytes": b"HTTP/1.1 200 OK\r\nA\0B: c\0d\r\n\0\r\n\r\n",
    "eight bits": b"HTTP/1.1 200 \xff\xfe\r\nX-\xe9: \xc3\xa9\xe9\xff\r\n\r\n",
    "odd white space": b"HTTP/1.1 200 OK\r\n\xa0\r\n\x85\r\n\x0c\r\n\t \r\n\xe2\x80\x83\r\n\r\n",
    "folded lines": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td: e\r\n\r\n",
    "folding from the start": b" HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
    "no colon": b"HTTP/1.1 200 OK\r\ngarbage\r\nA: b\r\n\r\n",
    "no name": b"HTTP/1.1 200 OK\r\n: b\r\n:\r\n\r\n",
    "a space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\n",
    "no version": b"200 OK\r\nA: b\r\n\r\n",
    "another protocol": b"ICY 200 OK\r\nA: b\r\n\r\n",
    "a version of the future": b"HTTP/9.9 200 OK\r\nA: b\r\n\r\n",
    "no status line": b"Content-Type: text/html\r\nA: b\r\n\r\n",
    "status of letters": b"HTTP/1.1 OK\r\nA: b\r\n\r\n",
    "an interim response before": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n",
    "a WARC record inside": b"HTTP/1.1 200 OK\r\n\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n",
}


@pytest.mark.parametrize("head", HOSTILE_HEADS.values(), ids=list(HOSTILE_HEADS))
def test_a_hostile_head_gives_a_record_that_readers_agree_on(head: bytes) -> None:
    read = read_by_both(response(exchange(head=head)))
    assert read.payload == BODY
    assert read.status in ("200", "100")


def test_what_a_repair_cannot_keep_in_place_it_keeps_by_name() -> None:
    head = response_head(b"ICY 200 OK\r\ngarbage\r\nA: b\r\n\tc\r\n\r\n", 200, 0)
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 ",
        b"X-Crawl-Status-Line: ICY 200 OK",
        b"X-Crawl-Line: garbage",
        b"A: b c",
        b"Content-Length: 0",
        b"",
        b"",
    ]


@pytest.mark.parametrize(
    "url", ["http://a/\r\nWARC-Type: warcinfo", "http://a/ b", "http://\u00e9/\ud800", "http://a/\0"]
)
def test_a_hostile_url_stays_in_its_line(url: str) -> None:
    member = response(exchange(url=url))
    fields = read_with_warcio(member)[0].fields
    assert fields["WARC-Type"] == "response"
    assert fields["WARC-Target-URI"].isascii()
    assert " " not in fields["WARC-Target-URI"]


@pytest.mark.parametrize("claimed", ["", "nonsense", "\r\nX: y", '"/"', "text/ht\u00e9ml\r\n"])
def test_a_hostile_media_type_stays_in_its_line(claimed: str) -> None:
    fields = read_by_both(response(exchange(), claimed)).fields
    assert "X" not in fields
    assert fields.get("WARC-Identified-Payload-Type", "") in ("", "text/ht")


def test_a_response_record_says_all_that_was_known() -> None:
    fields = read_by_both(response(exchange(truncated=True))).fields
    assert fields["WARC-Target-URI"] == "http://www.example.org/a"
    assert fields["WARC-Date"] == DATE
    assert fields["WARC-IP-Address"] == "192.0.2.7"
    assert fields["WARC-Concurrent-To"] == f"<{ID}>"
    assert fields["WARC-Identified-Payload-Type"] == "text/html"
    assert fields["WARC-Truncated"] == "length"
    assert fields["WARC-Payload-Digest"] == "sha256:" + base64.b32encode(sha256(BODY)).decode()
    assert fields["Content-Type"] == "application/http; msgtype=response"


def test_a_whole_response_is_not_marked_as_truncated() -> None:
    assert "WARC-Truncated" not in read_by_both(response(exchange())).fields


def test_a_revisit_record_names_the_first_copy_in_every_way() -> None:
    fields = warc.revisit_fields(Copy("http://example.org/first", 1_767_323_045.25, ID), 200)
    assert "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n" in fields
    assert f"WARC-Refers-To: <{ID}>\r\n" in fields
    assert "WARC-Refers-To-Target-URI: http://example.org/first\r\n" in fields
    assert f"WARC-Refers-To-Date: {DATE}\r\n" in fields
    assert "revisit/server-not-modified" in warc.revisit_fields(Copy("http://a/", 0.0, ID), 304)


def test_digests_are_base32_as_the_standard_library_writes_it() -> None:
    for digest in (bytes(32), b"\xff" * 32, *(os.urandom(32) for _ in range(50))):
        assert warc.digest_field(digest) == "sha256:" + base64.b32encode(digest).decode()


def test_record_ids_are_random_uuids_and_never_repeat() -> None:
    ids = warc.record_ids()
    drawn = [next(ids) for _ in range(1000)]
    assert len(set(drawn)) == 1000
    parsed = [uuid.UUID(one) for one in drawn]
    assert {one.version for one in parsed} == {4}
    assert {one.variant for one in parsed} == {uuid.RFC_4122}
    assert [one.urn for one in parsed] == drawn


def test_the_warcinfo_record_says_who_crawled_and_cannot_be_broken_by_it() -> None:
    about = {"operator": "Jo\r\nrobots: ignore", "http-header-user-agent": "skitter/1", "robots": "ignore"}
    (read,) = read_with_warcio(warc.warcinfo(ID, DATE, "a.warc.gz", about))
    lines = read.payload.decode().splitlines()
    assert "robots: obey" in lines
    assert "operator: Jo robots: ignore" in lines
    assert "http-header-user-agent: skitter/1" in lines
    assert "format: WARC File Format 1.1" in lines
    assert not any(line.startswith("robots: ignore") for line in lines)
    assert read.fields["WARC-Filename"] == "a.warc.gz"


def test_a_head_that_is_only_framing_is_left_alone() -> None:
    assert response_head(HEAD, 200, 3).startswith(HEAD[:-2])


def test_keys_are_those_of_the_archiving_world() -> None:
    cases = json.loads((corpus("url-urlcanon") / "surt.json").read_text())["defaultIASurt"]
    http = {url: key for url, key in cases.items() if url.startswith("http")}
    assert len(http) >= 8
    assert {url: surt(url) for url in http} == http


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.org", "org,example)/"),
        ("https://www2.Example.org:443/A/B/", "org,example)/a/b"),
        ("https://example.org:80/?", "org,example:80)/"),
        ("http://example.org/a//b/./../c?B=2&a=1&A=0", "org,example)/a/c?a=0&a=1&b=2"),
        ("http://user:pw@[2001:db8::1]:8080/x", "2001:db8::1:8080)/x"),
        ("http://192.0.2.7/", "7,2,0,192)/"),
        ("http://example.org/%2561%20b?%C3%A9", "org,example)/a%20b?%c3%a9"),
        ("http://wwww.archive.org/", "org,archive,wwww)/"),
        ("http://www4www.archive.org/", "org,archive,www4www)/"),
        ("http://www.www2.archive.org/", "org,archive,www2)/"),
        ("urn:a b", "urn:a%20b"),
        ("", "-"),
    ],
)
def test_keys(url: str, key: str) -> None:
    assert surt(url) == key


def test_a_key_of_nested_escapes_is_not_quadratic() -> None:
    nested = "http://a/%2" + "%3" * 200_000 + "%35"
    assert surt(nested) == "a)/%25"


@pytest.mark.parametrize(
    "url",
    [
        "http://www.a.test:8080/B/c.Html",
        "http://a.test/",
        "http://a.test/b/",
        "http://a.test/b//c",
        "http://a.test/./b",
        "http://a.test/\u212a",
        "http://a.test/%41",
        "http://u:p@a.test/b",
        "http://[::1]:8080/b",
        "https://a.test:443/b",
        "HTTP://A.test/b",
        "http:///b/c",
        "ftp://a.test/b",
        "http://a.test/(S(abcdefghij0123456789abcd))/x.aspx",
        "http://a.test/b?c",
        "http://a.test/b#c",
    ],
)
def test_the_short_way_to_a_key_leads_where_the_long_one_does(url: str) -> None:
    assert surt(url) == _surt(url)


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 7\r\ncontent-length : 7",
        b"Content-Length: 7\r\ncontent-length: 9",
        b"X-Content-Length: 9",
        b"Content-Length: 7\r\nTransfer-Encoding: chunked",
        b"A: b\r\nCONTENT-LENGTH: 7",
    ],
)
def test_a_stored_head_states_the_right_length_once_and_no_transfer_coding(lines: bytes) -> None:
    stored = response_head(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % lines, 200, 7).lower()
    fields = [line.partition(b":") for line in stored.split(b"\r\n")]
    assert [value.strip() for name, _, value in fields if name.strip() == b"content-length"] == [b"7"]
    assert b"transfer-encoding" not in [name for name, _, _ in fields]


@pytest.mark.parametrize("form", ["q=kettle", "1=first", "Z=last&a=b", "="])
def test_a_form_has_a_key_of_its_own_in_the_index(form: str) -> None:
    for url in ("http://a.test/search", "http://a.test/search?page=2"):
        key = surt(posted(url, form))
        assert key != surt(url)
        assert may_be_key_of(key, url)
        assert not may_be_key_of(key, "http://b.test/search")
        assert not may_be_key_of(key, "http://a.test/searches")
        assert not may_be_key_of(surt("http://a.test/search?q=1"), "http://a.test/search")
