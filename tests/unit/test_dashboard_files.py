"""The dashboard's files: all served, none that could run what the web says or load what is not ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skitter.service import dashboard
from tests.service_kit import running_service

ASSETS = Path(dashboard.__file__).parent / "assets"
FILES = sorted(path for path in ASSETS.rglob("*") if path.is_file())
WAYS = (
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|srcdoc|DOMParser|createContextualFragment"
    r"|document\.write|\beval\b|new Function|setAttribute\(\"on"
)
SCRIPTS = [path for path in FILES if path.suffix == ".js"]


def test_every_file_is_served_with_a_policy_that_lets_nothing_else_in(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:
        for file in FILES:
            path = file.relative_to(ASSETS).as_posix()
            answer = service.get("/" if path == "index.html" else f"/{path}")
            assert (answer.status, answer.body) == (200, file.read_bytes())
            assert answer.headers["content-security-policy"].startswith("default-src 'self';")
            again = service.get(f"/{path}".replace("/index.html", "/"), if_none_match=answer.headers["etag"])
            assert (again.status, again.body) == (304, b"")
        for path in (
            "/index.html/",
            "/css/",
            "/../__init__.py",
            "/%2e%2e/__init__.py",
            "/js/../../__init__.py",
        ):
            assert service.get(path).status == 404


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_no_script_makes_elements_or_code_of_words(file: Path) -> None:
    assert re.findall(WAYS, file.read_text()) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_names_another_origin(file: Path) -> None:
    named = set(re.findall(r"""["'(]\s*((?:https?:)?//[\w.-]+)""", file.read_text()))
    assert named <= {"http://www.w3.org", "https://example.org"}


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_what_a_script_imports_is_there(file: Path) -> None:
    for name in re.findall(r"""from "(\.[^"]+)";""", file.read_text()):
        assert (file.parent / name).is_file()
