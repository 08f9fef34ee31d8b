"""Content-Type parsing against the web platform's own cases."""

from __future__ import annotations

import json
from typing import Any

from skitter.parse.markup.charset import encoding_name
from skitter.parse.media import parse_content_type, parse_media_type
from tests.corpora import corpus


def cases(name: str) -> list[dict[str, Any]]:
    return [case for case in json.loads((corpus("mime") / name).read_text()) if isinstance(case, dict)]


def test_every_media_type_parses_and_serialises_as_the_standard_says() -> None:
    found = cases("mime-types.json") + cases("generated-mime-types.json")
    wrong = []
    for case in found:
        media = parse_media_type(case["input"])
        if (str(media) if media else None) != case["output"]:
            wrong.append((case, str(media)))
    assert len(found) > 900
    assert wrong == []


def test_every_media_type_names_its_encoding() -> None:
    wrong = []
    for case in cases("mime-types.json"):
        media = parse_media_type(case["input"])
        name = encoding_name(media.charset) if media else ""
        if name != (case.get("encoding") or ""):
            wrong.append((case, name))
    assert wrong == []


def test_several_content_type_lines_are_read_as_one_header() -> None:
    wrong = []
    for case in cases("content-types.json"):
        media = parse_content_type(", ".join(case["contentType"]))
        if (str(media), encoding_name(media.charset)) != (case["mimeType"] or "", case["encoding"] or ""):
            wrong.append((case, str(media)))
    assert wrong == []
