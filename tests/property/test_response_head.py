"""The head of an answer, among all that libcurl reports as header lines."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from skitter.fetch import response_head
from skitter.fetch.response_head import fields_of, is_switching, read_head, version_in

LINE = st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"").rstrip(b"\r"))
FIELDS = st.lists(LINE.filter(bool), max_size=5)
END = st.sampled_from([b"\r\n", b"\n"])
# What heads are made of, in every disorder.
PIECES = st.sampled_from(
    rb"HTTP/|HTTP/1.1 |HTTP/2 |100|101|103 |1010|200 OK|999999999999|: |:|Name".split(b"|")
    + [bytes((code,)) for code in b"\r\n\n\t\x0b\x1c\x85\xa0\xc0\xd7\xde\0"]
)
RAW = st.lists(PIECES | st.binary(max_size=3), max_size=30).map(b"".join)


def block(start: bytes, fields: list[bytes], end: bytes) -> bytes:
    return end.join([start, *fields, b"", b""])


def head_in(raw: bytes) -> bytes:
    return read_head(raw)[0]


@given(st.integers(100, 199).filter(lambda status: status != 101), FIELDS, FIELDS, FIELDS, END, END)
def test_the_head_is_behind_interim_answers_and_before_trailers(
    interim: int, hints: list[bytes], fields: list[bytes], trailers: list[bytes], end: bytes, other: bytes
) -> None:
    before = block(b"HTTP/1.1 %d Wait" % interim, hints, end)
    head = block(b"HTTP/1.1 200 OK", fields, other)
    behind = b"".join(line + b"\r\n" for line in trailers)
    assert head_in(before * 2 + head + behind) == head
    assert head_in(before + head[:-1]) == head_in(before) == b""


@given(st.binary() | RAW)
def test_no_bytes_are_too_odd(raw: bytes) -> None:
    head, status, headers = read_head(bytearray(raw))
    assert head in raw
    assert isinstance(version_in(head), str)
    assert not is_switching(head) or status in (0, 101)
    for name, value in headers:
        assert (name, value) == (name.strip().lower(), value.strip())


def head_by_the_letter(raw: bytes) -> tuple[bytes, list[str]]:
    """The head and its lines without the shortcuts: blocks up to an empty line, the first that is not interim."""
    start = 0
    while ended := re.compile(rb"\n\r?\n").search(raw, start):
        if not re.compile(rb"HTTP/\S+ +1(?!01)[0-9]{2}\b").match(raw, start):
            head = raw[start : ended.end()]
            return head, head.decode("latin-1").split("\n")[1:]
        start = ended.end()
    return b"", []


def assert_read_by_the_letter(raw: bytes) -> None:
    head, lines = head_by_the_letter(raw)
    pairs = [line.partition(":") for line in lines]
    fields = tuple((name.strip().lower(), value.strip()) for name, colon, value in pairs if colon)
    for given_as in (raw, bytearray(raw)):
        assert read_head(given_as)[::2] == (head, fields)


@given(RAW)
def test_shortcuts_change_nothing(raw: bytes) -> None:
    assert_read_by_the_letter(raw)
    assert_read_by_the_letter(raw + b"\r\n\r\n")


def test_shortcuts_change_nothing_for_any_byte() -> None:
    for code in range(256):
        byte = bytes((code,))
        for line in (b"%ba%bB%b: %bc%b", b"HTTP/1%b%b 103%b\n\n%b%b"):
            raw = b"HTTP/1.1 200 OK\r\n" + line.replace(b"%b", byte) + b"\r\n\r\n"
            assert_read_by_the_letter(raw)
            assert_read_by_the_letter(raw[17:])


def test_names_without_end_are_not_remembered() -> None:
    for number in range(3 * response_head._MOST_NAMES):
        read_head(b"HTTP/1.1 200 OK\r\nX-%d: 1\r\n%b: 2\r\n\r\n" % (number, b"n" * 500 + b"%d" % number))
    assert len(response_head._NAMES) <= response_head._MOST_NAMES
    assert max(map(len, response_head._NAMES)) <= response_head._LONGEST_NAME


@given(FIELDS, END)
def test_fields_are_as_each_line_says(fields: list[bytes], end: bytes) -> None:
    texts = [field.decode("latin-1").partition(":") for field in fields]
    expected = tuple((name.strip().lower(), value.strip()) for name, colon, value in texts if colon)
    assert read_head(block(b"HTTP/2 204", fields, end))[2] == expected


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("", "1", "2"))), max_size=6).map(tuple))
def test_a_field_is_its_first_line_and_all_of_them_joined(headers: tuple[tuple[str, str], ...]) -> None:
    first, joined = fields_of(headers)
    for name in "abc":
        values = [value for each, value in headers if each == name]
        assert first.get(name) == (values[0] if values else None)
        assert joined.get(name) == (", ".join(values) if values else None)


def test_what_a_status_line_says() -> None:
    lines = (b"HTTP/1.1 200 OK\r\n", b"HTTP/2 404 \r\n", b"HTTP/1.0 \r\n", b"HTTP/1.1 1234567890\n")
    assert [(version_in(line), read_head(line + b"\n")[1]) for line in lines] == [
        ("1.1", 200),
        ("2", 404),
        ("1.0", 0),
        ("1.1", 0),
    ]
    assert read_head(b"HTTP/1.1 200 OK\r\n") == (b"", 0, ())
    assert is_switching(b"HTTP/1.1 101 Up\r\n\r\n")
    assert not is_switching(b"HTTP/1.1 1010\r\n\r\n")
