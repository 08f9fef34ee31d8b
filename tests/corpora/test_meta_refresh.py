"""Meta refresh against the web platform's own cases."""

from __future__ import annotations

import json

from skitter.parse.markup.href import parse_refresh
from tests.corpora import corpus


def test_every_meta_refresh_is_read_as_the_standard_says() -> None:
    found = json.loads((corpus("html-meta-refresh") / "meta_refresh.json").read_text())
    wrong = []
    for case in found:
        expected = case["expected"]
        wanted = (expected["seconds"], expected["url"] or "") if expected else None
        if parse_refresh(case["content"]) != wanted:
            wrong.append((case, parse_refresh(case["content"])))
    assert len(found) == 73
    assert wrong == []
