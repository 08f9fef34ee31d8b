"""The guess which pages need a browser: made pages of many tools, honest pages like them, real documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from skitter.parse.page import read_page
from skitter.parse.shell import ShellScore, score_shell
from skitter.testing.scripted.shells import HONEST, SHELLS

DOCUMENTS = Path("/usr/share/doc")


def _score(html: str | bytes) -> ShellScore:
    body = html if isinstance(html, bytes) else html.encode()
    page = read_page(body, url="http://a.test/", content_type="text/html", with_text=True)
    return score_shell(body, page)


def test_nineteen_of_twenty_shells_are_recognised() -> None:
    missed = [name for name, html in SHELLS.items() if not _score(html).is_shell]
    assert len(missed) <= len(SHELLS) * 0.05, missed


def test_no_honest_page_is_taken_for_a_shell() -> None:
    assert [name for name, html in HONEST.items() if _score(html).is_shell] == []


def test_real_documentation_is_hardly_ever_taken_for_a_shell() -> None:
    # Examples of chart libraries are shells indeed.
    files = [file for file in sorted(DOCUMENTS.rglob("*.html")) if "examples" not in file.parts][::10][:600]
    if len(files) < 100:
        pytest.skip("needs Debian's documentation packages")
    taken = [file for file in files if _score(file.read_bytes()).is_shell]
    assert len(taken) <= len(files) * 0.005, taken


def test_a_guess_names_its_signs() -> None:
    told = _score(SHELLS["react"])
    assert told.points == 10
    assert told.signs == ("an empty mount node", "hardly any text", "no link", "noscript asks for scripts")


@pytest.mark.parametrize(
    "body", [b"", b"\0" * 1000, b"<" * 100_000, b"<div>" * 100_000, b"<script>" * 1000, b"<body id=root>"]
)
def test_hostile_bytes_get_a_score(body: bytes) -> None:
    assert _score(body).points <= 20
