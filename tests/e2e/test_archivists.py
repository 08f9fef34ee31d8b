"""For archivists: a crawl says what it is, its packages are signed, and archives of others are taken on."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.command import complaint, read_json, said, serving_site, skitter

CONFIG = """\
[fetch]
allow_private = true
[politeness]
delay = 0.0
[traps]
mode = "off"
[about]
title = "Harbour records"
description = "Before the move"
publisher = "City archive"
is_part_of = "City web"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "my.toml"
    file.write_text(CONFIG)
    return file


def test_a_collection_says_what_it_is_and_is_signed(tmp_path: Path, config: Path) -> None:
    into, package, key = tmp_path / "crawl", tmp_path / "crawl.wacz", tmp_path / "key.pem"
    with serving_site({"/": b"<title>Home</title>"}) as server:
        assert skitter("crawl", f"{server.url}/", "--into", into, "--config", config).returncode == 0
    [segment] = (into / "archive").glob("*.warc.gz")
    info = gzip.decompress(segment.read_bytes())[:2000]
    for line in (b"title: Harbour records", b"description: Before the move", b"publisher: City archive"):
        assert line + b"\r\n" in info
    assert b"isPartOf: City web\r\n" in info
    private = ec.generate_private_key(ec.SECP384R1())
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(private.private_bytes(*pem))
    said(skitter("export", into, "--to", "wacz", package, "--sign-key", key))
    told = json.loads(zipfile.ZipFile(package).read("datapackage.json"))
    assert (told["title"], told["description"], told["isPartOf"]) == (
        "Harbour records",
        "Before the move",
        "City web",
    )
    assert told["contributors"] == [{"title": "City archive", "role": "publisher"}]
    checked = read_json("verify", package)
    assert (checked["sound"], checked["findings"]) == (True, [])
    refused = skitter("export", into, "--to", "jsonl", tmp_path / "x", "--sign")
    assert "only a WACZ package" in complaint(refused, 2)
    key.write_text("no key")
    assert "PEM" in complaint(
        skitter("export", into, "--to", "wacz", package, "--force", "--sign-key", key), 2
    )
