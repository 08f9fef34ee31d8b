"""The description of the API says what the table of routes says."""

from __future__ import annotations

from skitter.service.http.openapi import FILE, document, text
from skitter.service.http.route_table import ROUTES


def test_the_document_in_docs_is_what_the_code_says() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run: python -m skitter.service.http.openapi"


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [operation["operationId"] for path in document()["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names) > 0


def test_no_two_routes_answer_the_same_call() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
