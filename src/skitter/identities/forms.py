"""Forms and signs of a page: the form of a login filled in, and whether a page has what a recipe looks for. Pure.

Between the answer of a host and the login that is made of it. What a browser would send is sent: hidden fields,
checked boxes, the first button. Never raises on any page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

import msgspec
from turbohtml import Document, Element

from skitter.parse.content import Source
from skitter.parse.markup.html_tree import parse_document
from skitter.parse.media import HTML, parse_content_type
from skitter.urls.canonical import normalise

_PASSWORD = "input[type=password]"


class FilledForm(msgspec.Struct, frozen=True):
    """`problem` says why it cannot be sent; empty when it can."""

    action: str = ""
    body: bytes = b""
    problem: str = ""


class PageSigns(msgspec.Struct, frozen=True):
    """What tells one kind of page from others: an element or words."""

    selector: str = ""
    words: str = ""

    def are_on(self, tree: Document) -> bool:
        if self.selector and tree.select_one(self.selector) is not None:
            return True
        return bool(self.words) and " ".join(self.words.split()) in " ".join(tree.text.split())

    def __str__(self) -> str:
        return self.selector or repr(self.words)


def parse_page(body: bytes, url: str, content_type: str) -> Document:
    kind = parse_content_type(content_type)
    return parse_document(Source(body=body, url=url, media_type=HTML, charset=kind.charset))


def fill_form(tree: Document, url: str, selector: str, values: Mapping[str, str]) -> FilledForm:
    form = _find(tree, selector)
    if form is None:
        what = f"no form {selector}" if selector else "no form with a password field"
        return FilledForm(problem=f"the page has {what}")
    if (form.attr("method") or "get").lower() != "post":
        return FilledForm(problem="the form is sent by GET: its values would be in a URL")
    if (form.attr("enctype") or "").lower().startswith("multipart/"):
        return FilledForm(problem="the form is sent as multipart/form-data, which is not supported")
    fields = _fields(form, values)
    missing = [name for name in values if not any(name == field for field, _ in fields)]
    if missing:
        return FilledForm(problem=f"the form has no field {missing[0]}")
    sent = [(name, values.get(name, value)) for name, value in fields]
    target = normalise(form.attr("action") or url, url)
    if target is None:
        return FilledForm(problem="the form leads to no URL")
    return FilledForm(action=target, body=urlencode(sent).encode())


def _find(tree: Document, selector: str) -> Element | None:
    if selector:
        found = tree.select_one(selector)
        return found if found is not None and found.tag == "form" else None
    return next((form for form in tree.select("form") if form.select_one(_PASSWORD) is not None), None)


def _fields(form: Element, wanted: Iterable[str]) -> list[tuple[str, str]]:
    """As a browser sends them, with the first button; and those that are filled in though they are not sent when
    nobody touches them, as an unchecked box."""
    found = list(form.form_data())
    named = {name for name, _ in found}
    buttons = [one for one in form.select("button, input[type=submit]") if _is_submit(one)]
    found += [(one.attr("name") or "", one.attr("value") or "") for one in buttons[:1]]
    elements = {one.attr("name") for one in form.select("input, textarea, select")}
    return found + [(name, "") for name in wanted if name in elements and name not in named]


def _is_submit(button: Element) -> bool:
    kind = (button.attr("type") or "submit").lower()
    return kind == "submit" and bool(button.attr("name")) and button.attr("disabled") is None
