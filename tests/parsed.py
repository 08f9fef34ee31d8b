"""Which hrefs went to the parser, for tests of what spares it."""

from __future__ import annotations

import pytest

from skitter.urls import links
from skitter.urls.canonical import normalise


def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with every href that a `LinkReader` has parsed from now on."""
    asked: list[str] = []

    def noted(href: str, base: str | None = None) -> str | None:
        asked.append(href)
        return normalise(href, base)

    monkeypatch.setattr(links, "normalise", noted)
    return asked
