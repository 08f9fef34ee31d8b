"""Object stores: what is put there is whole and compared, what is read there is what was put."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench._s3 import S3Server

from skitter.archive.objects import Objects
from skitter.archive.store import Archive
from skitter.collection.remote import ObjectSource
from skitter.errors import ArchiveFailed, ObjectsFailed, UsageError
from skitter.model import Copy
from skitter.settings import ArchiveSettings
from skitter.testing.clock import FakeClock
from tests.exchanges import exchange, read_with_warcio, stored_in
from tests.object_store import URL, environ_of, serving_objects

# More than one part of an upload.
BIG = 9 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    yield from serving_objects(tmp_path_factory.mktemp("store"))


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Objects:
    server.start()
    for name, value in environ_of(server, tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    return Objects(f"{URL}/{tmp_path.name}")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Objects:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Objects(f"file://{tmp_path}/store")


@pytest.fixture(params=["s3", "folder"])
def objects(request: pytest.FixtureRequest) -> Objects:
    found: Objects = request.getfixturevalue(request.param)
    return found


def run(call: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(call)


def file_of(tmp_path: Path, size: int) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(size))
    return path


@pytest.mark.parametrize("size", [0, 1, 1000, BIG])
def test_what_is_put_is_read_back_byte_for_byte(objects: Objects, tmp_path: Path, size: int) -> None:
    path = file_of(tmp_path, size)
    run(objects.put("pages/a-1.parquet", path))
    source = ObjectSource(objects)
    assert source.list() == {"pages/a-1.parquet": size}
    assert source.read("pages/a-1.parquet") == path.read_bytes()
    assert source.read("pages/a-1.parquet", size // 2, 100) == path.read_bytes()[size // 2 :][:100]
    assert source.read("pages/a-1.parquet", size, 10) == b""
    assert Path(source.location("pages/a-1.parquet")).read_bytes() == path.read_bytes()


def test_putting_twice_is_harmless(objects: Objects, tmp_path: Path) -> None:
    path = file_of(tmp_path, 1000)
    for _ in range(2):
        run(objects.put("a", path))
    assert objects.list() == {"a": 1000}


@pytest.mark.parametrize("size", [1000, BIG])
def test_s3_proves_what_it_got_by_its_checksum_alone(
    s3: Objects, tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_again(name: str, path: Path) -> bool:
        raise AssertionError("the object was read again")

    monkeypatch.setattr(s3, "_is_same", read_again)
    run(s3.put("a", file_of(tmp_path, size)))


def test_an_object_that_is_not_what_was_sent_is_not_believed(folder: Objects, tmp_path: Path) -> None:
    path = file_of(tmp_path, 1000)
    run(folder.put("a", path))
    (tmp_path / "store" / "a").write_bytes(bytes(1000))
    assert not run(folder._is_same("a", path))


def test_a_file_that_changes_while_it_is_sent_is_not_believed(
    s3: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, 1000)
    monkeypatch.setattr("skitter.archive.objects._etag", lambda *_: "of what the file was before")
    monkeypatch.setattr("skitter.archive.objects._sha256", lambda _: "of what the file was before")
    with pytest.raises(ObjectsFailed, match="is not what was sent"):
        run(s3.put("a", path))


def test_taking_away_what_is_not_there_is_harmless(objects: Objects, tmp_path: Path) -> None:
    run(objects.put("a", file_of(tmp_path, 10)))
    run(objects.take_away(["a", "b"]))
    assert objects.list() == {}
    assert objects.size("a") is None
    assert run(objects.size_of("a")) is None


def test_a_read_of_what_is_gone_says_so(objects: Objects) -> None:
    with pytest.raises(ArchiveFailed, match="is gone"):
        ObjectSource(objects).read("a", 0, 10)


def test_a_probe_leaves_nothing_behind(objects: Objects) -> None:
    run(objects.probe())
    assert objects.list() == {}


def _wrong_bucket(monkeypatch: pytest.MonkeyPatch) -> Objects:
    return Objects("s3://no-such-bucket/crawl")


def _wrong_secret(monkeypatch: pytest.MonkeyPatch) -> Objects:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    return Objects(URL)


def _wrong_endpoint(monkeypatch: pytest.MonkeyPatch) -> Objects:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    return Objects(URL)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_wrong_bucket, "NoSuchBucket"),
        (_wrong_secret, "SignatureDoesNotMatch"),
        (_wrong_endpoint, "127.0.0.1:9"),
    ],
)
def test_a_store_that_cannot_be_used_says_why_in_a_line(
    s3: Objects, make: Callable[[pytest.MonkeyPatch], Objects], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        run(make(monkeypatch).probe())
    assert "\n" not in str(caught.value)
    assert "wrong" not in str(caught.value)


def test_a_store_that_is_away_fails_the_upload_and_takes_it_later(
    s3: Objects, server: S3Server, tmp_path: Path
) -> None:
    path = file_of(tmp_path, 1000)
    server.stop()
    with pytest.raises(ObjectsFailed):
        run(s3.put("a", path))
    server.start()
    run(s3.put("a", path))
    assert s3.list() == {"a": 1000}


def test_credentials_come_from_the_profile_where_the_environment_has_none(
    s3: Objects, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = server.environ
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = tmp_path / "credentials"
    file.write_text(
        f"[work]\naws_access_key_id = {given['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key = {given['AWS_SECRET_ACCESS_KEY']}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "work")
    run(Objects(URL).probe())


# -- segments of an archive that goes there


def archive_at(folder: Path, clock: FakeClock, **settings: Any) -> Archive:
    given = ArchiveSettings(url=URL, tables=(), metadata=False, **settings)
    return Archive.open(folder, given, clock, (), {}, in_child=False)


def appended(archive: Archive, number: int, original: Copy | None = None) -> Copy:
    sent = exchange(url=f"http://www.example.org/{number}")
    stored = stored_in(archive, sent, original=original)
    archive.marks()
    archive.committed()
    archive.sync()
    archive.synced()
    archive.rest()
    return Copy(sent.url, sent.sent_at, stored.record_id, stored.record.segment)


def test_a_segment_is_finished_when_it_is_old_enough(tmp_path: Path) -> None:
    clock = FakeClock()
    archive = archive_at(tmp_path, clock, segment_seconds=60)
    appended(archive, 1)
    clock.advance(59)
    archive.synced()
    assert not list(tmp_path.glob("*.warc.gz"))
    clock.advance(1)
    archive.synced()
    archive.sync()
    archive.synced()
    archive.rest()
    assert len(list(tmp_path.glob("*.warc.gz"))) == 1
    archive.close()


def kinds_of(folder: Path) -> dict[str, str]:
    found = (record for path in folder.glob("*.warc.gz") for record in read_with_warcio(path.read_bytes()))
    urls = {
        record.fields.get("WARC-Target-URI", ""): record.kind for record in found if record.kind != "request"
    }
    return {url[-1]: kind for url, kind in urls.items() if url}


def test_no_record_refers_to_one_that_may_yet_be_lost(tmp_path: Path) -> None:
    """A copy in the same segment or in a stored one is referred to, one that waits elsewhere is not."""
    archive = archive_at(tmp_path, FakeClock(), segment_size=1_500)
    first = appended(archive, 1)
    appended(archive, 2, first)
    while first.segment in archive.growing:
        appended(archive, 3)
    appended(archive, 4, first)
    archive.stored(first.segment)
    appended(archive, 5, first)
    archive.close()
    kinds = kinds_of(tmp_path)
    kinds.pop("3", None)
    assert kinds == {"1": "response", "2": "revisit", "4": "response", "5": "revisit"}


def test_there_is_no_merged_index_of_what_is_mostly_elsewhere(tmp_path: Path) -> None:
    archive = archive_at(tmp_path, FakeClock())
    appended(archive, 1)
    archive.close()
    assert not (tmp_path / "index.cdxj").exists()
