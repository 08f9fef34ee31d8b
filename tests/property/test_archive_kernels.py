"""The archive's kernels in C and the Python that defines them say the same, whatever they are given."""

from __future__ import annotations

import gzip
import zlib
from array import array

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skitter.archive import (
    columns_plain,
    placing_plain,
    rowpieces_plain,
    texts_plain,
    usual_plain,
    values_plain,
)
from skitter.archive.columns import NAMES, columns_of
from skitter.archive.digests import digests_of, one_by_one
from skitter.archive.rows import Said, framed_row
from skitter.archive.warc import digest_field, warc_date
from skitter.model import Exchange, Link, RecordAt
from tests.exchanges import exchange, sha256

_WHY = "the kernels were not built"
columns = pytest.importorskip("skitter.native.columns", reason=_WHY)
digests_kernel = pytest.importorskip("skitter.native.digests", reason=_WHY)
placing = pytest.importorskip("skitter.native.placing", reason=_WHY)
rowpieces = pytest.importorskip("skitter.native.rowpieces", reason=_WHY)
shortgzip = pytest.importorskip("skitter.native.shortgzip", reason=_WHY)
texts = pytest.importorskip("skitter.native.texts", reason=_WHY)
usual = pytest.importorskip("skitter.native.usual", reason=_WHY)
values = pytest.importorskip("skitter.native.values", reason=_WHY)

# With lone surrogates, and lengths at which msgpack changes its mind.
TEXT = st.text(alphabet=st.characters(), max_size=12) | st.sampled_from(
    ["x" * 31, "\xe9" * 16, "x" * 255, "\u2019 " * 128, "y" * 65_536, "page"]
)
ASCII = st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=12)
DIGEST = st.binary(min_size=32, max_size=32)
MILLIS = st.sampled_from([0.0, 0.4, 0.5, 1.5, 2.5]) | st.floats(0, 1e6)
TIMES = st.floats(0, 4e9) | st.floats(-6.2e10, 2.5e11)
EXCHANGES = st.builds(
    Exchange,
    url=st.just("http://a.test/"),
    request=st.just(b""),
    head=st.just(b""),
    status=st.integers(-(2**33), 2**33),
    headers=st.lists(st.tuples(st.sampled_from(["etag", "last-modified", "x"]), TEXT), max_size=4).map(tuple),
    body=st.binary(max_size=300),
    truncated=st.booleans(),
    address=ASCII,
    http_version=st.sampled_from(["1.0", "1.1", "2", "2.0", "3", "3.0", ""]),
    tls_version=TEXT,
    tls_cipher=TEXT,
    sent_at=TIMES,
    ended_at=TIMES,
    dns_ms=MILLIS,
    connect_ms=MILLIS,
    tls_ms=MILLIS,
    first_byte_ms=MILLIS,
)
SAID = st.builds(
    Said,
    kind=TEXT,
    depth=st.integers(-5, 10**6),
    media_type=TEXT,
    charset=TEXT,
    language=TEXT,
    title=TEXT,
    directives=TEXT,
    redirect=TEXT,
    failure=TEXT,
    links=st.lists(st.tuples(TEXT, st.builds(Link, TEXT, TEXT, TEXT, TEXT)), max_size=4).map(tuple),
    simhash=st.none() | st.integers(0, 2**64 - 1),
    near_duplicate_of=TEXT,
)
FEW = settings(max_examples=60, deadline=None)

HEAD_LINES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 404\r\n",
        b"HTTP/2 200\r\n",
        b"Content-Length: 7\r\n",
        b"content-length: 7\r\n",
        b"Content-Length:7\r\n",
        b"Content-Length-X: 7\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"A: b\r\n",
        b"A b\r\n",
        b": b\r\n",
        b"A: b\n",
        b"A: b\0\r\n",
        b"\r\n",
    ]
)


@given(st.lists(HEAD_LINES | st.binary(max_size=8), max_size=6), st.sampled_from([0, 7, 70]))
def test_a_head_is_usual_to_both_or_to_none(lines: list[bytes], length: int) -> None:
    for head in (b"".join(lines), b"HTTP/1.1 200 OK\r\n%bContent-Length: 7\r\n\r\n" % b"".join(lines)):
        assert usual.usual_head(head, length) is usual_plain.usual_head(head, length)


URL_PIECES = st.sampled_from(
    [
        "http://a.test",
        "https://",
        "/",
        "//",
        "/.",
        ".aspx",
        ".ASPX",
        "%41",
        " ",
        "?",
        "#",
        "A",
        "\x7f",
        "\xe9",
    ]
)


@given(st.lists(URL_PIECES | st.text(max_size=3), max_size=7).map("".join))
def test_a_path_is_usual_to_both_or_to_none(url: str) -> None:
    assert usual.usual_path(url) == usual_plain.usual_path(url)


@FEW
@given(
    EXCHANGES,
    st.tuples(st.binary(max_size=40), st.sampled_from([b"", b"GET / HTTP/1.1\r\n\r\n"]), ASCII, ASCII, ASCII),
    st.tuples(ASCII, ASCII),
    st.tuples(DIGEST, st.just(b"") | DIGEST),
    st.tuples(st.none() | SAID, TEXT),
)
def test_both_write_the_same_records_and_index_lines(
    of: Exchange,
    stored: tuple[bytes, bytes, str, str, str],
    types: tuple[str, str],
    digests: tuple[bytes, bytes],
    told: tuple[Said | None, str],
) -> None:
    everything = (of, *stored, *types, *digests, *told)
    assert texts.texts(*everything) == texts_plain.texts(*everything)


@given(DIGEST, TIMES)
def test_both_spell_digests_and_dates_alike(digest: bytes, at: float) -> None:
    assert texts.digest_field(digest) == digest_field(digest)
    assert texts.warc_date(at) == warc_date(at)


def test_a_time_of_no_calendar_and_a_digest_of_another_length_are_refused() -> None:
    for at in (float("nan"), float("inf"), 253_402_300_800.0, -62_135_596_801.0):
        with pytest.raises(ValueError, match="years"):
            texts.warc_date(at)
    with pytest.raises(ValueError, match="32 bytes"):
        texts.digest_field(b"short")


@FEW
@given(
    EXCHANGES,
    SAID,
    st.tuples(TEXT, TEXT, TEXT, TEXT),
    st.binary(max_size=300),
    st.just(b"") | DIGEST,
    st.booleans(),
)
def test_both_make_the_same_row(
    of: Exchange, said: Said, named: tuple[str, str, str, str], text: bytes, digest: bytes, with_links: bool
) -> None:
    everything = (of, said, *named, text, digest, with_links)
    assert rowpieces.row_pieces(*everything) == rowpieces_plain.row_pieces(*everything)


@given(TEXT)
def test_both_encode_a_text_alike(text: str) -> None:
    assert rowpieces.utf8(text) == rowpieces_plain.utf8(text)


def test_what_is_no_exchange_is_refused_and_not_read() -> None:
    with pytest.raises(AttributeError):
        rowpieces.row_pieces(object(), Said(), "", "", "", "", b"", b"", True)
    wrong = msgspec.structs.replace(Said(), links=((1, Link("a")),))
    with pytest.raises(TypeError, match="str"):
        rowpieces.row_pieces(exchange(), wrong, "", "", "", "", b"", b"", True)
    loose = msgspec.structs.replace(Said(), links=(("a", Loose()),))
    with pytest.raises(TypeError, match="structs"):
        rowpieces.row_pieces(exchange(), loose, "", "", "", "", b"", b"", True)


class Loose:
    text = rel = tag = ""


NUMBERS = st.integers(0, 2**40) | st.sampled_from([127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32])
PIECES = st.tuples(st.binary(max_size=9), st.binary(max_size=9), st.binary(max_size=9))


@given(st.binary(max_size=20), st.none() | PIECES, NUMBERS, NUMBERS, ASCII, TEXT)
def test_both_give_a_record_its_place_alike(
    line: bytes, row: tuple[bytes, bytes, bytes] | None, offset: int, length: int, segment: str, original: str
) -> None:
    everything = (line, row, offset, length, segment, original)
    assert placing.placed_texts(*everything) == placing_plain.placed_texts(*everything)


URLS = st.lists(
    st.sampled_from(
        ["http", "://", "u:p@", "[::1]", "[", "]", "a.test", ":", "8080", "123456", "/p", "?", "q", "#"]
    )
    | st.text(max_size=3),
    max_size=8,
).map("".join)
ROWS = st.lists(st.tuples(URLS, EXCHANGES, SAID, TEXT), max_size=4)


def journalled(rows: list[tuple[str, Exchange, Said, str]]) -> bytes:
    frames = bytearray()
    for url, of, said, text in rows:
        coded = rowpieces_plain.utf8(text)
        pieces = rowpieces_plain.row_pieces(
            of, said, url, "k", "d", "", coded, bytes(32) if coded else b"", True
        )
        frames += b"".join(framed_row(pieces, RecordAt("s", 1, 2), "")) + bytes(len(text) % 3)
    return bytes(frames)


@FEW
@given(ROWS)
def test_both_take_a_journal_apart_alike(rows: list[tuple[str, Exchange, Said, str]]) -> None:
    journal = journalled(rows)
    expected = columns_plain.columns_of(journal)
    for name, found, wanted in zip(NAMES, columns.columns_of(journal)[1], expected.columns, strict=True):
        assert found == wanted, name
    assert columns.columns_of(journal) == expected


@FEW
@given(ROWS.filter(bool), st.data())
def test_a_damaged_journal_is_read_as_python_reads_it_or_left_to_it(
    rows: list[tuple[str, Exchange, Said, str]], data: st.DataObject
) -> None:
    journal = bytearray(journalled(rows))
    for _ in range(data.draw(st.integers(0, 3))):
        journal[data.draw(st.integers(0, len(journal) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(journal[: data.draw(st.integers(len(journal) // 2, len(journal)))])
    found = columns.columns_of(damaged)
    if found is not None:
        assert found == columns_plain.columns_of(damaged)


def test_a_text_that_came_without_its_digest_is_left_to_python_which_makes_one() -> None:
    pieces = rowpieces_plain.row_pieces(
        exchange(), Said(), "http://a.test/", "k", "d", "", b"text", b"", True
    )
    journal = b"".join(framed_row(pieces, RecordAt("s", 1, 2), ""))
    assert columns.columns_of(journal) is None
    made = dict(zip(NAMES, columns_of(journal).columns, strict=True))["text_digest"]
    assert made[1] == f"sha256:{sha256(b'text').hex()}".encode()


def test_a_journal_of_damaged_text_makes_no_table() -> None:
    journal = journalled([("http://a.test/", exchange(), Said(), "caf\xe9")])
    with pytest.raises(UnicodeDecodeError):
        columns_of(journal.replace("\xe9".encode(), b"\xe9?"))


@given(st.binary(max_size=300) | st.lists(st.sampled_from([b"WARC-", b"abcd", b"\xff", b"0"])).map(b"".join))
def test_a_short_member_inflates_to_its_record_and_ends_where_it_ends(record: bytes) -> None:
    member = shortgzip.short_member(record)
    assert gzip.decompress(member) == record
    reader = zlib.decompressobj(31)
    assert reader.decompress(member + member) == record
    assert reader.unused_data == member


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5, 8, 9, 64, 65, 1024, 1025, 3000])
def test_repeats_of_every_length_and_distance_inflate_to_what_they_were(distance: int) -> None:
    start = bytes(n * 37 % 251 for n in range(distance))
    for length in (*range(3, 40), 66, 67, 114, 115, 130, 131, 227, 257, 258, 259, 600):
        record = start + (start * (length // distance + 1))[:length] + b"\xff"
        assert gzip.decompress(shortgzip.short_member(record)) == record


def test_what_is_not_short_is_left_to_another_compressor() -> None:
    assert gzip.decompress(shortgzip.short_member(bytes(4096))) == bytes(4096)
    assert shortgzip.short_member(bytes(4097)) is None


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_both_digests_are_those_of_hashlib(head: bytes, body: bytes) -> None:
    given = exchange(body=body)
    found = digests_of(given)
    assert found[1:] == (sha256(body), sha256(found.head + body)) == one_by_one(found.head, body)
    native = digests_kernel.digests(head, body)
    assert native in (None, (sha256(body), sha256(head + body)))


@pytest.mark.parametrize("head", [0, 1, 55, 56, 63, 64, 65, 127, 128, 300])
def test_digests_are_right_at_the_ends_of_blocks(head: int) -> None:
    start, rest = bytes(range(256))[:head] * (1 if head <= 256 else 2), bytes(range(251)) * 20
    for length in (*range(200), 4_096, 5_000):
        body = rest[:length]
        assert digests_kernel.digests(start, body) in (None, (sha256(body), sha256(start + body)))


STRINGS = st.lists(
    st.none() | st.sampled_from([b"", b"a", b"ab", b"a" * 9, b"b" * 17]) | st.binary(max_size=40), max_size=90
)


@FEW
@given(STRINGS, st.integers(0, 100), st.integers(0, 100))
def test_both_encode_the_strings_of_a_column_alike(
    strings: list[bytes | None], first: int, last: int
) -> None:
    _, data, ends, valid = columns_plain.optional(strings)
    assert ends is not None
    assert values.repeated(data, ends, valid) == values_plain.repeated(data, ends, valid)
    assert values.extremes(data, ends, valid) == values_plain.extremes(data, ends, valid)
    last = min(last, len(strings))
    asked = b"levels", data, ends, valid, first, last
    assert values.plain(*asked) == values_plain.plain(*asked)


@pytest.mark.parametrize("different", [1, 2, 3, 255, 256, 257, 5_000])
@pytest.mark.parametrize("same", [1, 7, 8, 9, 300])
def test_runs_and_groups_of_every_width_are_the_same_by_both(different: int, same: int) -> None:
    _, data, ends, _ = columns_plain.strings(
        [b"%d" % (at // same % different) for at in range(min(different * same, 5_000) + 3)]
    )
    assert ends is not None
    assert values.repeated(data, ends, None) == values_plain.repeated(data, ends, None)


@pytest.mark.parametrize("length", [values_plain.MOST_BYTES // 4 - 4, values_plain.MOST_BYTES // 4 - 3])
def test_a_dictionary_ends_for_both_at_the_same_size(length: int) -> None:
    _, data, ends, _ = columns_plain.strings([bytes([at]) * length for at in range(4)])
    assert ends is not None
    found = values.repeated(data, ends, None)
    assert found == values_plain.repeated(data, ends, None)
    assert (found is None) == (4 * (length + 4) > values_plain.MOST_BYTES)


@pytest.mark.parametrize(
    ("data", "ends", "valid"),
    [
        (b"abc", [0, 4], None),
        (b"abc", [0, 2, 1], None),
        (b"abc", [-1, 2], None),
        (b"abc", [], None),
        (b"abc", [0] * 10, b"\xff"),
    ],
)
def test_buffers_that_do_not_fit_together_are_refused(
    data: bytes, ends: list[int], valid: bytes | None
) -> None:
    packed = array("i", ends).tobytes()
    for ask in (values.repeated, values.extremes, lambda *buffers: values.plain(b"", *buffers, 0, 9)):
        with pytest.raises(ValueError, match="do not fit together"):
            ask(data, packed, valid)
    with pytest.raises(TypeError):
        values.repeated(data, "text", valid)
