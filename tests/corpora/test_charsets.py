"""Charset labels and prescans against the cases of others."""

from __future__ import annotations

import json

from skitter.parse.markup.charset import encoding_name
from skitter.parse.page import read_page
from tests.corpora import corpus


def test_every_label_of_the_encoding_standard_is_known() -> None:
    labels = json.loads((corpus("encoding-labels-wpt") / "labels.json").read_text())
    assert len(labels) == 228
    assert [each for each in labels if encoding_name(each["label"]) != each["encoding"]] == []
    assert [each for each in labels if encoding_name(f"\t{each['label'].upper()} ") != each["encoding"]] == []


def test_every_prescan_that_needs_no_script_finds_the_encoding() -> None:
    found = json.loads((corpus("html5lib-encoding") / "encoding_prescan.json").read_text())
    wrong = []
    for case in found:
        page = read_page(bytes.fromhex(case["data_hex"]), url="http://e.org/", content_type="text/html")
        if page.charset.lower() != case["expected_encoding"].lower():
            wrong.append((case["file"], case["expected_encoding"], page.charset))
    # The one case writes its <meta> from a script that would have to run.
    assert wrong == [("scripted/tests1.dat", "iso-8859-2", "windows-1252")]
    assert len(found) == 83
