"""The pages that are generated say what the code says."""

from __future__ import annotations

import pytest

from skitter.reference import FOLDER, PAGES, description
from skitter.settings.load import HOST_FIELDS, SECTIONS


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name](), "run: python -m skitter.reference"


def test_every_setting_has_a_sentence() -> None:
    fields = [field for section in [*SECTIONS.values(), HOST_FIELDS] for field in section.values()]
    assert [field.name for field in fields if not description(field).endswith(".")] == []
