"""Object storage behind the few operations that an archive needs: put a file, list, read ranges, take away.

The only module that knows obstore; its errors become ours here. Names are those of the archive's folder. An
object is visible by its name only when it is whole, and is believed only when its length and checksum are those
of the file.
"""

from __future__ import annotations

import asyncio
import configparser
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import from_url

from skitter.errors import ArchiveFailed, ObjectsFailed, UsageError

_PROBE = "skitter-was-here"
# S3 takes 10,000 parts of an object; memory is this times the parts under way.
_PART = 8 << 20
_MOST_PARTS = 5_000
_AT_ONCE = 4
_BLOCK = 1 << 20
_CLIENT = {"allow_http": True, "connect_timeout": "5s", "timeout": "120s"}
# Short: whoever waits for an upload tries again by itself, and says so meanwhile.
_RETRY: Any = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=15),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
}
_SAID = re.compile(r"<Code>([^<]*)</Code>(?:\s*<Message>([^<]*)</Message>)?")
_NO_RANGES = "non-partial response"


class NoRanges(ArchiveFailed):
    """The server answers the range of an object with something else."""


class Objects:
    """An object store, or a folder, by its URL. Cheap to make: nothing is asked before it is needed."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self._store: Any = _store(self.url)
        except (exceptions.BaseError, ValueError, OSError) as error:
            raise UsageError(f"archive.url {self.url} cannot be used: {_words(error)}") from error

    async def probe(self) -> None:
        """Write, look and take away again: whether the archive can go there at all. Under a name of its own:
        the nodes of a cluster begin together."""
        name = f"{_PROBE}-{secrets.token_hex(4)}.tmp"
        try:
            async with self._asking("write to"):
                await obstore.put_async(self._store, name, b"skitter")
                await obstore.head_async(self._store, name)
                await obstore.delete_async(self._store, name)
        except ObjectsFailed as error:
            raise UsageError(
                f"{error}: check archive.url, its bucket, and the credentials and endpoint in the environment"
            ) from error

    async def put(self, name: str, path: Path) -> None:
        """Upload a file and compare what arrived. Twice is harmless: same name, same bytes."""
        size = path.stat().st_size
        part = max(_PART, -(-size // _MOST_PARTS))
        async with self._asking("write to"):
            done = await obstore.put_async(
                self._store, name, path, chunk_size=part, max_concurrency=_AT_ONCE, use_multipart=size > part
            )
            there = await obstore.head_async(self._store, name)
        if there["size"] != size:
            raise ObjectsFailed(
                f"{self.url}/{name} has {there['size']:,} bytes, not {size:,}: is anybody else writing?"
            )
        # An S3 ETag is made of MD5 sums (2 ms a MB here); encrypted by KMS, and in other stores, it is not, and
        # all that was written is read again: as many bytes down as up.
        wanted = await asyncio.to_thread(_etag, path, part, size > part)
        if (done["e_tag"] or "").strip('"') != wanted and not await self._is_same(name, path):
            raise ObjectsFailed(f"{self.url}/{name} is not what was sent: it will be sent again")

    async def _is_same(self, name: str, path: Path) -> bool:
        wanted, found = await asyncio.to_thread(_sha256, path), hashlib.sha256()
        async with self._asking("read"):
            answer = await obstore.get_async(self._store, name)
            async for chunk in answer.stream(min_chunk_size=_BLOCK):
                found.update(chunk)
        return found.hexdigest() == wanted

    async def size_of(self, name: str) -> int | None:
        async with self._asking("read"):
            try:
                return int((await obstore.head_async(self._store, name))["size"])
            except (exceptions.NotFoundError, FileNotFoundError):
                return None

    async def take_away(self, names: list[str]) -> None:
        async with self._asking("delete in"):
            for name in names:
                try:
                    await obstore.delete_async(self._store, name)
                except (exceptions.NotFoundError, FileNotFoundError):
                    continue

    # -- for readers, which have nothing else to do meanwhile

    def list(self) -> dict[str, int]:
        with self._reading():
            return {
                found["path"]: found["size"]
                for some in obstore.list(self._store)
                for found in some
                if not found["path"].startswith(_PROBE)
            }

    def size(self, name: str) -> int | None:
        with self._reading():
            try:
                return int(obstore.head(self._store, name)["size"])
            except (exceptions.NotFoundError, FileNotFoundError):
                return None

    def read(self, name: str, offset: int, length: int) -> bytes:
        """A range within the object."""
        with self._reading():
            return bytes(obstore.get_range(self._store, name, start=offset, length=length)) if length else b""

    def fetch(self, name: str, path: Path) -> None:
        """The whole object into a file, under another name until it is there."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._reading(), temporary.open("wb") as file:
            for chunk in obstore.get(self._store, name).stream(min_chunk_size=_BLOCK):
                file.write(chunk)
        os.replace(temporary, path)

    # -- their faults

    @asynccontextmanager
    async def _asking(self, to: str) -> AsyncIterator[None]:
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            raise ObjectsFailed(f"cannot {to} {self.url} ({_words(error)})") from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            if _NO_RANGES in str(error):
                raise NoRanges(f"{self.url} does not answer ranges") from error
            raise ArchiveFailed(
                f"cannot read {self.url} ({_words(error)}): check the credentials and endpoint in the environment"
            ) from error


def _store(url: str) -> Any:
    if url.startswith(("file:", "memory:")):
        return from_url(url, mkdir=True) if url.startswith("file:") else from_url(url)
    given = _aws_files() if url.startswith("s3:") and "AWS_ACCESS_KEY_ID" not in os.environ else {}
    return from_url(url, client_options=_CLIENT, retry_config=_RETRY, **given)  # type: ignore[call-overload]


def _aws_files() -> dict[str, str]:
    """What ~/.aws says of the profile: obstore itself looks at the environment and the instance only."""
    profile = os.environ.get("AWS_PROFILE", "default")
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", profile if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", profile),
    ):
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(os.path.expanduser(os.environ.get(variable, file)))
        except (configparser.Error, UnicodeDecodeError):
            continue
        if parser.has_section(section):
            found |= dict(parser[section])
    names = {"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"}
    asked = {name: value for name, value in found.items() if name in names}
    renamed = {"endpoint_url": "aws_endpoint", "region": "aws_region"}
    return {renamed.get(name, name): value for name, value in asked.items()}


def _etag(path: Path, part: int, in_parts: bool) -> str:
    with path.open("rb") as file:
        sums = [hashlib.md5(chunk, usedforsecurity=False) for chunk in iter(lambda: file.read(part), b"")]
    if not in_parts:
        return sums[0].hexdigest() if sums else hashlib.md5(b"", usedforsecurity=False).hexdigest()
    whole = hashlib.md5(b"".join(each.digest() for each in sums), usedforsecurity=False)
    return f"{whole.hexdigest()}-{len(sums)}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _words(error: Exception) -> str:
    """What a store says of itself, in a line: its code and message, or the beginning of the error."""
    text = str(error)
    if said := _SAID.search(text):
        return ": ".join(filter(None, said.groups()))[:200]
    first = text.partition("\n\nDebug source")[0].replace("\n", " ")
    return re.sub(r" {2,}", " ", first)[:240]
