"""Bombs, odd codings and damaged streams that another crawler collected."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from skitter.fetch.coding import Decoded, Undecodable, decode_body
from tests.corpora import corpus

LIMIT = 20_000_000
INFLATED = 11_511_612


@pytest.fixture
def folder() -> Path:
    return corpus("compression-scrapy")


def decoded(path: Path, coding: str, limit: int = LIMIT, max_ratio: int = 250) -> Decoded:
    result = decode_body(path.read_bytes(), coding, limit=limit, max_ratio=max_ratio)
    assert isinstance(result, Decoded)
    return result


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_cut_at_the_limit(folder: Path, coding: str) -> None:
    result = decoded(folder / f"bomb-{coding}.bin", coding, limit=1_000_000)
    assert (len(result.body), result.complete, result.truncated) == (1_000_000, False, True)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_what_fits_the_limits_is_decoded_whole(folder: Path, coding: str) -> None:
    result = decoded(folder / f"bomb-{coding}.bin", coding, max_ratio=100_000)
    assert (len(result.body), result.complete, result.truncated) == (INFLATED, True, False)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_a_few_kilobytes_do_not_become_11_megabytes_although_these_would_fit(
    folder: Path, coding: str
) -> None:
    result = decoded(folder / f"bomb-{coding}.bin", coding)
    assert result.truncated
    assert len(result.body) == 1_048_576


@pytest.mark.parametrize(
    ("name", "coding"),
    [
        ("html-gzip.bin", "gzip"),
        ("html-gzip.bin", "X-GZIP"),
        ("html-br.bin", "br"),
        ("html-zstd-static-content-size.bin", "zstd"),
        ("html-zstd-static-no-content-size.bin", "zstd"),
        ("html-zstd-streaming-no-content-size.bin", "zstd"),
        ("html-zlibdeflate.bin", "deflate"),
        ("html-rawdeflate.bin", "deflate"),
        ("html-gzip-deflate.bin", "gzip, deflate"),
        ("html-gzip-deflate-gzip.bin", "gzip,deflate , gzip"),
    ],
)
def test_every_coding_gives_the_same_page(folder: Path, name: str, coding: str) -> None:
    result = decoded(folder / name, coding)
    assert result.body.startswith(b"<!DOCTYPE HTML>")
    assert result.body.rstrip().endswith(b"</html>")
    assert (result.complete, result.truncated, result.mislabelled) == (True, False, False)


def test_a_gzip_stream_without_its_trailer_gives_the_whole_page(folder: Path) -> None:
    wanted = (folder / "unexpected-eof-output.txt").read_text("utf-8").encode("latin-1")
    assert decoded(folder / "unexpected-eof.gz", "gzip").body == wanted


@pytest.mark.parametrize("name", ["truncated-crc-error.gz", "truncated-crc-error-short.gz"])
def test_a_cut_gzip_stream_gives_all_that_zlib_can_read(folder: Path, name: str) -> None:
    coded = (folder / name).read_bytes()
    result = decoded(folder / name, "gzip")
    assert result.body == zlib.decompressobj(31).decompress(coded)
    assert not result.complete


def test_a_coding_that_is_not_supported_is_a_value(folder: Path) -> None:
    result = decode_body((folder / "bomb-gzip.bin").read_bytes(), "compress", limit=LIMIT)
    assert result == Undecodable("unknown coding compress")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_every_file_under_every_label_has_an_outcome_within_the_limit(folder: Path, coding: str) -> None:
    for path in sorted(folder.iterdir()):
        result = decode_body(path.read_bytes(), coding, limit=100_000)
        assert isinstance(result, Undecodable) or len(result.body) <= 100_000


def test_a_feed_comes_out_as_it_went_in(folder: Path) -> None:
    wanted = (folder / "feed-sample1.xml").read_bytes()
    assert decoded(folder / "feed-sample1.xml.gz", "gzip").body == wanted
    assert gzip.decompress((folder / "feed-sample1.xml.gz").read_bytes()) == wanted
