"""Record ids across all segments: each given once, every reference to one that is there, every request answered.

Memory does not grow with the archive: entries of 34 bytes are kept in buckets by id, which move to temporary
files when they pass a limit, and are compared bucket by bucket at the end.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path

from skitter.collection.verify.findings import Report

_ENTRY = struct.Struct("<16sBIQ5s")  # id, role, file, offset, the first bytes of the payload's digest
_BUCKETS = 256
_MOST_IN_MEMORY = 64 << 20
_NO_DIGEST = bytes(5)


class Role(IntEnum):
    GIVEN = 0
    REQUEST = 1
    """Given, and to be named by the record of its answer."""
    CONCURRENT = 2
    ORIGINAL = 3


class Identities:
    def __init__(self, *, foreign: bool = False) -> None:
        """In a `foreign` archive it is no defect to name a record that lies elsewhere, nor to ask in vain."""
        self._foreign = foreign
        self._files: list[str] = []
        self._buckets = [bytearray() for _ in range(_BUCKETS)]
        self._held = 0
        self._spilled: tempfile.TemporaryDirectory[str] | None = None

    def file(self, name: str) -> int:
        self._files.append(name)
        return len(self._files) - 1

    def add(self, role: Role, ident: str, file: int, offset: int, digest: str = "") -> None:
        key = blake2b(ident.encode(), digest_size=16).digest()
        short = blake2b(digest.encode(), digest_size=5).digest() if digest else _NO_DIGEST
        self._buckets[key[0]] += _ENTRY.pack(key, role, file, offset, short)
        self._held += _ENTRY.size
        if self._held > _MOST_IN_MEMORY:
            self._spill()

    def compare(self, report: Report) -> None:
        for number in range(_BUCKETS):
            self._compare(self._entries(number), report)
        if self._spilled is not None:
            self._spilled.cleanup()

    def _spill(self) -> None:
        if self._spilled is None:
            self._spilled = tempfile.TemporaryDirectory(prefix="skitter-verify-")
        for number, bucket in enumerate(self._buckets):
            with Path(self._spilled.name, str(number)).open("ab") as file:
                file.write(bucket)
            bucket.clear()
        self._held = 0

    def _entries(self, number: int) -> Iterator[tuple[bytes, int, int, int, bytes]]:
        raw = bytes(self._buckets[number])
        path = Path(self._spilled.name, str(number)) if self._spilled is not None else None
        if path is not None and path.exists():
            raw = path.read_bytes() + raw
        return _ENTRY.iter_unpack(raw)

    def _compare(self, entries: Iterator[tuple[bytes, int, int, int, bytes]], report: Report) -> None:
        given: dict[bytes, tuple[int, int, int, bytes]] = {}
        references = []
        for key, role, file, offset, digest in entries:
            if role in (Role.CONCURRENT, Role.ORIGINAL):
                references.append((key, role, file, offset, digest))
            elif key in given:
                _, other_file, other_offset, _ = given[key]
                where = f"{self._files[other_file]} at {other_offset}"
                what = f"WARC-Record-ID is also that of {where}"
                if self._foreign:
                    # Copies of a file lie beside each other, and wget gives its logs the id of its warcinfo.
                    report.note(self._files[file], f"{what} (at {offset})")
                else:
                    report.defect(self._files[file], offset, what)
            else:
                given[key] = (role, file, offset, digest)
        self._compare_references(given, references, report)

    def _compare_references(
        self,
        given: dict[bytes, tuple[int, int, int, bytes]],
        references: list[tuple[bytes, int, int, int, bytes]],
        report: Report,
    ) -> None:
        answered = set()
        for key, role, file, offset, digest in references:
            answered.add(key)
            target = given.get(key)
            if target is None:
                field = "WARC-Concurrent-To" if role == Role.CONCURRENT else "WARC-Refers-To"
                if not self._foreign:
                    what = f"{field} names a record that is not in the archive"
                    report.defect(self._files[file], offset, what)
            elif role == Role.ORIGINAL and _NO_DIGEST not in (digest, target[3]) and digest != target[3]:
                report.defect(self._files[file], offset, "the revisit's payload digest is not its original's")
        for key, (role, file, offset, _) in given.items():
            if role == Role.REQUEST and key not in answered and not self._foreign:
                report.defect(self._files[file], offset, "a request without its response")
