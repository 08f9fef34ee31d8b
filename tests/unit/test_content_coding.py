from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib

import brotlicffi
import pytest
import zstandard

from skitter.fetch.coding import Decoded, Undecodable, decode_body

PAGE = b"".join(b"<p>paragraph %d of a page" % (i * i) for i in range(5000))
LIMIT = 10_000_000
CODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotlicffi.compress,
    "zstd": zstandard.compress,
}


def raw_deflate(body: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(body) + coder.flush()


@pytest.mark.parametrize("coding", CODERS)
def test_a_body_comes_out_as_it_went_in(coding: str) -> None:
    assert decode_body(CODERS[coding](PAGE), coding, limit=LIMIT) == Decoded(PAGE)
    assert decode_body(CODERS[coding](b""), coding, limit=LIMIT) == Decoded(b"")


@pytest.mark.parametrize("coding", ["", "identity", " , Identity,"])
def test_without_coding_the_body_is_itself(coding: str) -> None:
    assert decode_body(PAGE, coding, limit=LIMIT) == Decoded(PAGE)
    assert decode_body(PAGE, coding, limit=10) == Decoded(PAGE[:10], complete=False, truncated=True)


def test_raw_deflate_is_understood_too() -> None:
    assert decode_body(raw_deflate(PAGE), "deflate", limit=LIMIT) == Decoded(PAGE)


def test_stacked_codings_are_undone_in_reverse() -> None:
    coded = brotlicffi.compress(zlib.compress(gzip.compress(PAGE)))
    assert decode_body(coded, "gzip, deflate, br", limit=LIMIT) == Decoded(PAGE)


def test_four_codings_are_too_many() -> None:
    assert isinstance(decode_body(b"x", "gzip, gzip, gzip, gzip", limit=LIMIT), Undecodable)


def test_an_unknown_coding_is_a_value() -> None:
    assert decode_body(PAGE, "gzip, compress", limit=LIMIT) == Undecodable("unknown coding compress")


@pytest.mark.parametrize("coding", CODERS)
@pytest.mark.parametrize("junk", [b"\0", b"\0" * 100, b"junk " * 10_000], ids=["nul", "nuls", "words"])
def test_junk_after_the_stream_is_ignored(coding: str, junk: bytes) -> None:
    assert decode_body(CODERS[coding](PAGE) + junk, coding, limit=LIMIT) == Decoded(PAGE)


@pytest.mark.parametrize("coding", CODERS)
def test_a_cut_stream_gives_its_beginning(coding: str) -> None:
    coded = CODERS[coding](PAGE)
    longest = 0
    for cut in (1, 5, 11, len(coded) // 2, len(coded) - 20):
        result = decode_body(coded[:cut], coding, limit=LIMIT)
        assert isinstance(result, Decoded)
        assert PAGE.startswith(result.body)
        assert not result.complete
        longest = max(longest, len(result.body))
    assert longest > len(PAGE) // 2


@pytest.mark.parametrize("coding", CODERS)
def test_a_damaged_stream_gives_what_precedes_the_damage(coding: str) -> None:
    # zstd is read a block of 128 KB at a time
    page = b"".join(b"<p>%d" % (i * i) for i in range(50_000)) if coding == "zstd" else PAGE
    coded = bytearray(CODERS[coding](page))
    middle = len(coded) // 2
    coded[middle : middle + 50] = b"\xff" * 50
    result = decode_body(bytes(coded), coding, limit=LIMIT)
    assert isinstance(result, Decoded)
    assert not result.complete or result.body != page
    assert result.body[: len(page) // 4] == page[: len(page) // 4]


@pytest.mark.parametrize("coding", CODERS)
def test_a_plain_body_under_a_coding_label_is_taken_as_it_is(coding: str) -> None:
    assert decode_body(PAGE, coding, limit=LIMIT) == Decoded(PAGE, mislabelled=True)


@pytest.mark.parametrize("coding", CODERS)
def test_noise_is_undecodable_or_partial_but_never_complete(coding: str) -> None:
    result = decode_body(b"\xff\x00\x01" * 999, coding, limit=LIMIT)
    assert isinstance(result, Undecodable) or not result.complete


def test_all_members_of_a_gzip_body_are_read() -> None:
    members = gzip.compress(PAGE) + gzip.compress(b"") + gzip.compress(b"end")
    assert decode_body(members, "gzip", limit=LIMIT) == Decoded(PAGE + b"end")


def test_every_optional_field_of_a_gzip_header_is_skipped() -> None:
    header = (
        b"\x1f\x8b\x08"
        + bytes([4 | 8 | 16 | 2])
        + b"\0" * 6
        + b"\x03\x00abc"
        + b"name\0"
        + b"why\0"
        + b"\0\0"
    )
    coded = header + raw_deflate(PAGE)
    assert decode_body(coded + b"\0" * 8, "gzip", limit=LIMIT) == Decoded(PAGE)
    for cut in range(1, len(header)):
        assert decode_body(coded[:cut], "gzip", limit=LIMIT) == Decoded(b"", complete=False)


def test_a_wrong_check_sum_is_forgiven_as_browsers_do() -> None:
    assert decode_body(gzip.compress(PAGE)[:-8] + b"\0" * 8, "gzip", limit=LIMIT) == Decoded(PAGE)


def test_a_hundred_thousand_tiny_members_cost_bounded_time() -> None:
    members = gzip.compress(bytes(1_000_000)) + gzip.compress(b"x") * 100_000
    begun = time.process_time()
    decode_body(members, "gzip", limit=LIMIT)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("coding", CODERS)
def test_a_bomb_takes_no_more_memory_than_a_few_times_its_limit(coding: str) -> None:
    coded = CODERS[coding](bytes(30_000_000))
    tracemalloc.start()
    try:
        result = decode_body(coded, coding, limit=1_000_000, max_ratio=10**9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(result, Decoded)
    assert (len(result.body), result.truncated) == (1_000_000, True)
    assert peak < 5_000_000
