"""A WACZ package against its own word: every file that it lists is there, with the digest that it names, and the
signature, if there is one, is of that list."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path
from typing import Any

import msgspec

from skitter.collection.verify.findings import Report
from skitter.extras import has

_BLOCK = 1 << 20
_LIST, _DIGEST = "datapackage.json", "datapackage-digest.json"


def check_package(path: Path, report: Report) -> None:
    try:
        with zipfile.ZipFile(path) as package:
            names = set(package.namelist())
            if _LIST not in names:
                report.defect(path.name, None, f"has no {_LIST}")
                return
            told = package.read(_LIST)
            _check_resources(package, path, _decoded(told), report)
            if _DIGEST in names:
                _check_digest(path, told, _decoded(package.read(_DIGEST)), report)
    except (zipfile.BadZipFile, OSError) as error:
        report.defect(path.name, None, f"cannot be read to its end: {error}")


def _decoded(text: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _check_resources(package: zipfile.ZipFile, path: Path, told: dict[str, Any], report: Report) -> None:
    resources = told.get("resources")
    if not isinstance(resources, list):
        report.defect(path.name, None, f"{_LIST} lists no resources")
        return
    for resource in resources:
        name, said = (
            str(resource.get(key, "")) if isinstance(resource, dict) else "" for key in ("path", "hash")
        )
        if name not in package.namelist():
            report.defect(path.name, None, f"{name or 'a resource without a path'} is listed and not there")
        elif said and said != _digest(package, name, said.partition(":")[0]):
            report.defect(path.name, None, f"{name} has not the digest that {_LIST} names")


def _digest(package: zipfile.ZipFile, name: str, algorithm: str) -> str:
    if algorithm not in ("sha256", "md5", "sha1", "sha512"):
        return ""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with package.open(name) as member:
        while block := member.read(_BLOCK):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def _check_digest(path: Path, told: bytes, digest: dict[str, Any], report: Report) -> None:
    said = f"sha256:{hashlib.sha256(told).hexdigest()}"
    if digest.get("hash") != said:
        report.defect(path.name, None, f"{_LIST} has not the digest that {_DIGEST} names")
    signed = digest.get("signedData")
    if not isinstance(signed, dict) or "publicKey" not in signed:
        return
    if not has("cryptography"):
        report.note(path.name, "its signature was not checked: pip install 'skitter[identities]'")
    elif not _is_signed(signed, said):
        report.defect(path.name, None, "its signature is not of this content")


def _is_signed(signed: dict[str, Any], said: str) -> bool:
    from skitter.collection.export.signing import is_signature_of

    try:
        key, signature = (
            base64.b64decode(str(signed[name]), validate=True) for name in ("publicKey", "signature")
        )
    except (KeyError, ValueError):
        return False
    return signed.get("hash") == said and is_signature_of(signature, key, said)
