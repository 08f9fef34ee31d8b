"""The kernel that reads one field of many rows says what its twin in Python says, and survives any bytes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.frontier.rocks import fields_plain
from skitter.frontier.rocks.rows import UrlRow, encode, slots_of
from skitter.model import UrlState, Via

fields = pytest.importorskip("skitter.native.fields", reason="the kernel was not built")

_pack = msgspec.msgpack.encode
# Lengths and numbers at which msgpack changes its mind.
SIZES = st.sampled_from([0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536])
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([-33, -32, 127, 128, 2**16, 2**32])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | NUMBERS
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | SIZES.map(lambda size: b"x" * size)
    | SIZES.map(lambda size: "y" * size),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner, max_size=20),
    max_leaves=30,
)
ROWS = st.lists(st.lists(VALUES, max_size=20), max_size=5)
FIELDS = st.integers(0, 20)


def _said(way: object, rows: list[tuple[bytes, bytes]], field: int) -> list[bytes] | None:
    try:
        return way.bytes_at(rows, field)  # type: ignore[attr-defined,no-any-return]
    except ValueError:
        return None


@given(ROWS, FIELDS)
def test_a_field_is_the_same_with_and_without_the_kernel(rows: list[list[object]], field: int) -> None:
    stored = [(b"key", _pack(row)) for row in rows]
    assert _said(fields, stored, field) == _said(fields_plain, stored, field)
    for one in stored:
        assert _said(fields, [one], field) == _said(fields_plain, [one], field)


@given(st.lists(VALUES, max_size=20), FIELDS, st.data())
def test_spoilt_rows_are_refused_or_read_as_far_as_the_field(
    row: list[object], field: int, data: st.DataObject
) -> None:
    raw = bytearray(_pack(row))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(0, len(raw))) :]
    found, plain = _said(fields, [(b"", bytes(raw))], field), _said(fields_plain, [(b"", bytes(raw))], field)
    # what the twin can read as a whole, the kernel has read alike; it need not see what is wrong behind the field
    assert plain is None or found == plain


@given(st.binary(max_size=60), FIELDS)
def test_any_bytes_are_taken(raw: bytes, field: int) -> None:
    found = _said(fields, [(b"", raw)], field)
    assert found is None or found[0] in raw


def test_what_announces_more_than_there_is_ends_at_once() -> None:
    assert _said(fields, [(b"", b"\xdd\xff\xff\xff\xff" * 40)], 3) is None
    assert _said(fields, [(b"", b"\xdc\x00\x05\xdf\xff\xff\xff\xff\xc0\xc0")], 2) is None


@pytest.mark.parametrize(
    "given_to_it", [([], "1"), ((), 1), ([b"row"], 1), ([(b"", b"", b"")], 1), ([(b"", "")], 1)]
)
def test_what_is_no_list_of_rows_is_refused(given_to_it: tuple[object, object]) -> None:
    with pytest.raises(TypeError):
        fields.bytes_at(*given_to_it)


def test_a_field_that_no_row_can_have_is_refused() -> None:
    for field in (-1, 65_536, 2**70):
        with pytest.raises((ValueError, OverflowError)):
            fields.bytes_at([], field)


def test_rows_tell_where_their_urls_wait() -> None:
    row = UrlRow(url="http://a.test/" + "x" * 300, state=UrlState.QUEUED, priority=50, depth=1, via=Via.LINK)
    waiting = msgspec.structs.replace(row, slot=b"host-id-\x01\x00seq", parent=b"p" * 16)
    assert slots_of([(b"a", encode(row)), (b"b", encode(waiting))]) == [b"", waiting.slot]
