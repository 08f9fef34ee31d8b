"""Targets that are folders of files: a folder of this machine, and prefixes of object stores.

A file for each part, called after it and written whole: so the names that are there say what was delivered, and a
part that is written twice is the same file. An empty part is a file too, for the same reason.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from skitter.archive.objects import Objects
from skitter.archive.segments import sync_folder
from skitter.archive.tables.parts import write_part
from skitter.errors import ArchiveFailed, ObjectsFailed, TargetFailed, UsageError
from skitter.sinks.reading import Delivery
from skitter.sinks.target import json_lines, without_secrets

FORMATS = ("parquet", "jsonl")


def _parquet(delivery: Delivery) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(delivery.rows, sink, compression="zstd")
    return bytes(sink.getvalue())


_WRITERS: dict[str, Callable[[Delivery], bytes]] = {"parquet": _parquet, "jsonl": json_lines}


def _file_name(part: str, form: str) -> str:
    return f"{part}.{form}"


def _part_name(file: str, form: str) -> str:
    return file.removesuffix(f".{form}")


class FolderTarget:
    """`file:///path`: each file is on the disk before it has its name."""

    def __init__(self, url: str, form: str) -> None:
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise UsageError(f"{url} is no folder of this machine: write file:///path/of/the/folder")
        self._folder = Path(unquote(parts.path))
        self._form = form
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self._folder} cannot be made ({error.strerror}): check the path") from error

    def delivered(self) -> set[str]:
        found = self._folder.glob(f"*/*.{self._form}")
        return {_part_name(path.relative_to(self._folder).as_posix(), self._form) for path in found}

    def deliver(self, delivery: Delivery) -> None:
        path = self._folder / _file_name(delivery.name, self._form)
        try:
            write_part(path, memoryview(_WRITERS[self._form](delivery)))
            # The new one first: a kill in between leaves rows twice for as long as nobody goes on.
            for name in delivery.replaces:
                (self._folder / _file_name(name, self._form)).unlink(missing_ok=True)
            sync_folder(path.parent)
        except OSError as error:
            raise TargetFailed(f"cannot write {path} ({error.strerror}): check disk and owner") from error

    def close(self) -> None:
        for path in self._folder.glob("*/*.tmp"):
            path.unlink(missing_ok=True)


class ObjectTarget:
    """`s3://BUCKET/PREFIX` and the like; an object is there whole or not at all."""

    def __init__(self, url: str, form: str) -> None:
        self._url = url
        self._form = form
        try:
            self._objects = Objects(url)
            asyncio.run(self._objects.probe())
        except UsageError as error:
            raise UsageError(without_secrets(str(error).replace("archive.url", "--to"))) from error

    def delivered(self) -> set[str]:
        try:
            names = self._objects.list()
        except ArchiveFailed as error:
            raise TargetFailed(without_secrets(str(error))) from error
        return {_part_name(name, self._form) for name in names if name.endswith(f".{self._form}")}

    def deliver(self, delivery: Delivery) -> None:
        content = _WRITERS[self._form](delivery)
        handle, path = tempfile.mkstemp(prefix="skitter-sink-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            asyncio.run(self._put(delivery, Path(path)))
        except ObjectsFailed as error:
            raise TargetFailed(without_secrets(str(error))) from error
        finally:
            os.unlink(path)

    async def _put(self, delivery: Delivery, path: Path) -> None:
        await self._objects.put(_file_name(delivery.name, self._form), path)
        await self._objects.take_away([_file_name(name, self._form) for name in delivery.replaces])

    def close(self) -> None:
        pass
