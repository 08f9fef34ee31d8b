"""The head of an answer, among all that libcurl tells as header lines: by the kernel and by its twin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.fetch import head_plain
from skitter.fetch.head import fields_of, is_switching, read_head, version_in

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


@given(RAW)
def test_kernel_and_twin_say_the_same(raw: bytes) -> None:
    kernel = pytest.importorskip("skitter.native.heads")
    assert kernel.read_head(raw) == head_plain.read_head(raw)
    assert kernel.read_head(bytearray(raw + b"\r\n\r\n")) == head_plain.read_head(raw + b"\r\n\r\n")


def test_kernel_and_twin_agree_on_every_byte() -> None:
    kernel = pytest.importorskip("skitter.native.heads")
    for code in range(256):
        byte = bytes((code,))
        for line in (b"%ba%bB%b: %bc%b", b"HTTP/1%b%b 103%b\n\n%b%b"):
            raw = b"HTTP/1.1 200 OK\r\n" + line.replace(b"%b", byte) + b"\r\n\r\n"
            assert kernel.read_head(raw) == head_plain.read_head(raw)
            assert kernel.read_head(raw[17:]) == head_plain.read_head(raw[17:])


def test_a_kernel_refuses_what_is_no_bytes() -> None:
    kernel = pytest.importorskip("skitter.native.heads")
    with pytest.raises(TypeError):
        kernel.read_head("HTTP/1.1 200 OK")


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
