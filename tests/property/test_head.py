"""The head of an answer, among all that libcurl tells as header lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skitter.fetch.head import head_in, headers_in, is_switching, status_in, version_in

LINE = st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"").rstrip(b"\r"))
FIELDS = st.lists(LINE.filter(bool), max_size=5)
END = st.sampled_from([b"\r\n", b"\n"])


def block(start: bytes, fields: list[bytes], end: bytes) -> bytes:
    return end.join([start, *fields, b"", b""])


@given(st.integers(100, 199).filter(lambda status: status != 101), FIELDS, FIELDS, FIELDS, END, END)
def test_the_head_is_behind_interim_answers_and_before_trailers(
    interim: int, hints: list[bytes], fields: list[bytes], trailers: list[bytes], end: bytes, other: bytes
) -> None:
    before = block(b"HTTP/1.1 %d Wait" % interim, hints, end)
    head = block(b"HTTP/1.1 200 OK", fields, other)
    behind = b"".join(line + b"\r\n" for line in trailers)
    assert head_in(before * 2 + head + behind) == head
    assert head_in(before + head[:-1]) == head_in(before) == b""


@given(st.binary())
def test_no_bytes_are_too_odd(raw: bytes) -> None:
    head = head_in(raw)
    assert head in raw
    assert isinstance(status_in(head), int)
    assert isinstance(version_in(head), str)
    assert not is_switching(head) or status_in(head) >= 101
    for name, value in headers_in(head):
        assert (name, value) == (name.strip().lower(), value.strip())


@given(FIELDS, END)
def test_fields_are_as_each_line_says(fields: list[bytes], end: bytes) -> None:
    texts = [field.decode("latin-1").partition(":") for field in fields]
    expected = tuple((name.strip().lower(), value.strip()) for name, colon, value in texts if colon)
    assert headers_in(block(b"HTTP/2 204", fields, end)) == expected


def test_what_a_status_line_says() -> None:
    lines = (b"HTTP/1.1 200 OK\r\n", b"HTTP/2 404 \r\n", b"HTTP/1.0", b"")
    assert [(version_in(line), status_in(line)) for line in lines] == [
        ("1.1", 200),
        ("2", 404),
        ("1.0", 0),
        ("", 0),
    ]
    assert is_switching(b"HTTP/1.1 101 Up\r\n\r\n")
    assert not is_switching(b"HTTP/1.1 1010\r\n\r\n")
