"""Whatever happens to an archive's bytes, reading it ends, and says so as a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skitter.collection.captures import parse_line
from skitter.collection.collection import Collection
from skitter.collection.members import read_members
from skitter.collection.record import Record, parse_record
from skitter.collection.source import FolderSource
from skitter.collection.verify.archive import verify
from tests.archives import Made, make_crawl
from tests.exchanges import unpacked


@pytest.fixture(scope="module", params=["gzip", "zstd"])
def crawl(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_crawl(tmp_path_factory.mktemp("crawl") / "crawl", 5, compression=request.param)


edits = st.lists(
    st.tuples(
        st.integers(0, 1 << 20), st.sampled_from(["flip", "cut", "insert", "drop"]), st.binary(max_size=40)
    ),
    min_size=1,
    max_size=4,
)


def damaged(raw: bytes, changes: list[tuple[int, str, bytes]]) -> bytes:
    for place, what, given_bytes in changes:
        at = place % (len(raw) + 1)
        match what:
            case "flip" if at < len(raw):
                raw = raw[:at] + bytes((raw[at] ^ 1,)) + raw[at + 1 :]
            case "cut":
                raw = raw[:at]
            case "insert":
                raw = raw[:at] + given_bytes + raw[at:]
            case _:
                raw = raw[:at] + raw[at + 30 :]
    return raw


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=edits)
def test_no_damage_to_a_segment_goes_unnoticed(
    changes: list[tuple[int, str, bytes]], crawl: Made, tmp_path: Path
) -> None:
    sound = crawl.segment.read_bytes()
    broken = damaged(sound, changes)
    copy = Made(tmp_path, tmp_path / "archive", crawl.ledger)
    copy.archive.mkdir(exist_ok=True)
    for file in crawl.archive.iterdir():
        (copy.archive / file.name).write_bytes(broken if file == crawl.segment else file.read_bytes())
    report = verify(Collection.at(tmp_path), crawl.ledger)
    if not report.defects:
        # The time and the system in a gzip header guard nothing, and nothing guards them; nor zstd's unused bit.
        assert unpacked(broken) == unpacked(sound)
        assert len(broken) == len(sound)
    assert report.bytes == len(broken)


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]),
    st.sampled_from(["x.warc.gz", "x.warc.zst.open"]),
)
def test_any_bytes_are_members_that_cover_them(raw: bytes, start: bytes, name: str) -> None:
    raw = start + raw

    class One(FolderSource):
        def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
            return raw[offset : None if length is None else offset + length]

    found = list(read_members(One(Path("/")), name, len(raw)))
    assert sum(member.length for member in found) == len(raw)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"WARC/1.1\r\n", b"WARC/1.1\r\nContent-Length: 5\r\n\r\n"])
)
def test_any_content_is_a_record_or_a_reason(raw: bytes, start: bytes) -> None:
    found = parse_record(start + raw)
    if isinstance(found, Record):
        assert isinstance(found.decoded(), bytes)
        assert found.status >= 0
    else:
        assert found


@given(st.binary(max_size=200))
def test_any_line_is_a_capture_or_none(line: bytes) -> None:
    parse_line(line)
    parse_line(b"org,example)/ 20260101000000 " + line)
