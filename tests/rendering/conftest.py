"""Tests with a browser are skipped where there is none."""

from __future__ import annotations

import pytest

from skitter.errors import UsageError
from skitter.render.browser import find_program
from skitter.settings.rendering import RenderSettings


@pytest.fixture(autouse=True, scope="session")
def needs_a_browser() -> None:
    try:
        find_program(RenderSettings())
    except UsageError:
        pytest.skip("needs the Debian package chromium-headless-shell")
