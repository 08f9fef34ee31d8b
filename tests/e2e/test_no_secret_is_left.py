"""A byte search for secrets, over everything that a crawl with an identity leaves behind or says."""

from __future__ import annotations

import gzip
import json
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, quote_plus

from skitter.frontier.stores.rocks import RocksStore
from skitter.frontier.tables.layout import TABLES
from skitter.frontier.tables.memory_plan import MemoryPlan
from skitter.settings import FrontierSettings
from tests.e2e.command import said, skitter
from tests.e2e.test_identities import ENVIRON, KEY, PASSWORD, SESSION, ForumServer, crawl
from tests.e2e.test_identities import server as server  # a fixture
from tests.service_kit import asked
from tests.serving import served

EXPORTS = ("wacz", "warc", "parquet", "jsonl", "markdown", "files", "cdxj")
URL = "http://forum.test/t/1"


def forms_of(secret: str) -> set[bytes]:
    """As it is, as URLs and forms spell it, in base 64 (also of basic authentication), in hexadecimal."""
    raw = secret.encode()
    spelled = {secret, quote(secret, safe=""), quote_plus(secret), raw.hex(), json.dumps(secret)[1:-1]}
    coded = {b64encode(b"x" * pad + raw).rstrip(b"=")[4 if pad else 0 : -1] for pad in (0, 1, 2)}
    return {form.encode() for form in spelled} | coded


FORMS = {secret: forms_of(secret) for secret in (PASSWORD, SESSION, KEY)}


def found_in(content: bytes) -> list[str]:
    return [secret for secret, forms in FORMS.items() if any(form in content for form in forms)]


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, whole and unpacked."""
    for file in folder.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            yield str(file), raw
            if file.suffix == ".gz":
                yield f"{file} unpacked", gzip.decompress(raw)
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as packed:
                    for name in packed.namelist():
                        part = packed.read(name)
                        yield f"{file} {name}", part
                        if name.endswith(".gz"):
                            yield f"{file} {name} unpacked", gzip.decompress(part)


def rows_of_the_frontier(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Its files are compressed: so row by row."""
    with closing(RocksStore(folder / "frontier", MemoryPlan.of(FrontierSettings()), read_only=True)) as store:
        for table in TABLES:
            for key, value in store.first(table, b"", b"\xff" * 64, 1_000_000):
                yield f"{table} {key.hex()}", key + value


def answers_of_the_api(folder: Path) -> Iterator[tuple[str, bytes]]:
    with served(folder, environ=ENVIRON) as server:
        where = server.where
        key = asked(where, "GET", f"/v1/explain?url={URL}").json["key"]
        host = quote("http://forum.test", safe="")
        paths = [
            *("/metrics", "/v1/crawl", "/v1/errors", "/v1/fetches", "/v1/hosts", "/v1/settings", "/v1/stats"),
            *("/v1/urls", "/v1/workers", "/v1/leases", "/v1/dead-letters", "/v1/traps", "/v1/health", "/"),
            *(f"/v1/hosts/{host}", f"/v1/hosts/{host}/explain", f"/v1/hosts/{host}/robots"),
            *(f"/v1/explain?url={URL}", f"/v1/urls/{key}"),
            *(f"/v1/urls/{key}/{part}" for part in ("body", "headers", "text")),
        ]
        for path in paths:
            answer = asked(where, "GET", path)
            assert answer.status == 200, (path, answer.body)
            yield path, answer.body + repr(answer.headers).encode()


def test_no_secret_is_in_anything_that_a_crawl_leaves_or_says(server: ForumServer, tmp_path: Path) -> None:
    folder, out = tmp_path / "crawl" / "forum", tmp_path / "out"
    folder.parent.mkdir()
    out.mkdir()
    done = crawl(server, folder, ENVIRON)
    said(done)
    texts = [("crawl", (done.stdout + done.stderr).encode())]
    for words in (
        ("stats", folder),
        ("hosts", folder),
        ("settings", "--in", folder),
        ("explain", URL, "--in", folder),
        ("show", folder, URL, "--headers"),
        ("query", folder, "select * from pages", "--format", "json"),
        ("verify", folder),
        *(("export", folder, "--to", form, out / form) for form in EXPORTS),
    ):
        ran = skitter(*words, environ=ENVIRON)
        assert ran.returncode == 0, (words, ran.stderr)
        texts.append((str(words), (ran.stdout + ran.stderr).encode()))
    looked_at = [*texts, *files_of(folder.parent), *files_of(out), *rows_of_the_frontier(folder)]
    looked_at += answers_of_the_api(folder)
    looked_at += [(f"after the service: {name}", raw) for name, raw in files_of(folder.parent)]
    assert {name: found for name, raw in looked_at if (found := found_in(raw))} == {}
    assert len(looked_at) > 100
    # what is looked for would be found
    assert found_in(b"".join(raw for _, raw in looked_at) + PASSWORD.encode()) == [PASSWORD]
    assert any(b"X-Api-Key: redacted" in raw for _, raw in looked_at)
    assert all(found_in(head.encode()) for line, head in server.requests if line == f"GET {URL[17:]}")
