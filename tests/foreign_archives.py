"""Archives as other tools write them, made on the spot by these tools: wget and warcio; and the samples that pywb
brings along."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

SAMPLES = Path(sys.prefix, "sample_archive", "warcs")
CHUNKED = b"5\r\n<titl\r\n1b;x=y\r\ne>In chunks</title><p>whole\r\n0\r\n\r\n"


def wget(url: str, folder: Path, *flags: str) -> Path:
    """A mirror by wget; returns its WARC file."""
    if shutil.which("wget") is None:
        pytest.skip("wget is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["wget", "--quiet", "--recursive", "--level=5", "--tries=1", "--execute=robots=off"]
    command += ["--warc-file=mirror", "--no-directories", "--delete-after", *flags, url]
    subprocess.run(
        command, cwd=folder, check=False, timeout=60, env={"PATH": "/usr/bin:/bin", "no_proxy": "*"}
    )
    return next(folder.glob("mirror.warc*"))


def write_warc(path: Path, *, compressed: bool = True) -> None:
    """By warcio: a chunked answer, a resource, a revisit that names no record, a redirect, a DNS answer."""
    # In a process of its own: warcio leaves its temporary files to the garbage collector, which warns of them.
    command = [sys.executable, "-m", "tests.foreign_archives", str(path), "gzip" if compressed else "plain"]
    subprocess.run(command, check=True, timeout=60, cwd=Path(__file__).parents[1])


def _write_warc(path: Path, compressed: bool) -> None:
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=compressed)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "warcio"}))
        headers = [("Content-Type", "text/html"), ("Transfer-Encoding", "chunked")]
        chunked = _record(writer, "http://site.test/chunked", CHUNKED, headers)
        writer.write_record(chunked)
        moved = [("Location", "http://site.test/chunked"), ("Content-Type", "text/html")]
        writer.write_record(_record(writer, "http://site.test/moved", b"", moved, "302 Found"))
        body, typed = io.BytesIO(b'{"a": 1}'), "application/json"
        writer.write_record(
            writer.create_warc_record(
                "http://site.test/data", "resource", payload=body, warc_content_type=typed
            )
        )
        writer.write_record(
            writer.create_warc_record(
                "dns:site.test", "response", payload=io.BytesIO(b"x"), warc_content_type="text/dns"
            )
        )
        digest = chunked.rec_headers.get_header("WARC-Payload-Digest")
        profile = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
        again = writer.create_warc_record(
            "http://site.test/again",
            "revisit",
            http_headers=StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1"),
            warc_headers_dict={"WARC-Profile": profile, "WARC-Payload-Digest": digest},
        )
        writer.write_record(again)


def _record(
    writer: WARCWriter, url: str, body: bytes, headers: list[tuple[str, str]], status: str = "200 OK"
) -> Any:
    head = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
    return writer.create_warc_record(url, "response", payload=io.BytesIO(body), http_headers=head)


def compress_whole(path: Path) -> Path:
    """The file in one gzip member, as some pack theirs by hand."""
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


if __name__ == "__main__":
    _write_warc(Path(sys.argv[1]), sys.argv[2] == "gzip")
