"""docs/python.md: what `import skitter` has, by signatures and docstrings. Part of `python -m skitter.reference`.

A name without a docstring is listed with its signature alone. Never imports users' code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property

import skitter
from skitter.collection import collection
from skitter.extend import api
from skitter.extend.page import Page

_INTRO = """\
# Python

`import skitter` loads nothing of this before it is asked for. What users' functions in a crawl can do is told in
[plugins](plugins.md); how to read archives, with examples, in [reading](reading.md).
"""


def python_page() -> str:
    parts = [
        _INTRO,
        _functions("Functions", (skitter.open, skitter.crawl, skitter.extract)),
        _class("What skitter.open gives", collection.Collection),
        _fields("A row of pages", collection.Page),
        _class("A page with its body", Page),
        _functions(
            "For functions of yours", (api.page, api.correct, api.score, api.links, api.reader, api.number)
        ),
    ]
    return "\n".join(parts)


def _functions(title: str, found: tuple[object, ...]) -> str:
    return f"## {title}\n\n" + "\n".join(_entry(f"skitter.{one.__name__}", one) for one in found)  # type: ignore[attr-defined]


def _class(title: str, found: type) -> str:
    lines = [f"## {title}", "", _doc(found), ""]
    lines += [_entry(name, member) for name, member in _members(found)]
    return "\n".join(lines)


def _members(found: type) -> Iterator[tuple[str, object]]:
    for name, member in vars(found).items():
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            yield name, member.__func__
        elif inspect.isfunction(member) or isinstance(member, property | cached_property):
            yield name, member


def _fields(title: str, found: type) -> str:
    fields = ", ".join(f"`{name}`" for name in found.__struct_fields__)  # type: ignore[attr-defined]
    return f"## {title}\n\n{_doc(found)}\n\n{fields}\n"


def _entry(name: str, member: object) -> str:
    if isinstance(member, property | cached_property):
        return f"### {name}\n\n{_doc(member)}\n"
    return f"### {name}\n\n    {name}{_signature(member)}\n\n{_doc(member)}\n"


def _signature(member: object) -> str:
    signature = inspect.signature(member)  # type: ignore[arg-type]
    kept = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    # Annotations are texts here, and shown in quotes.
    return re.sub(r"'([^']+)'", r"\1", str(signature.replace(parameters=kept)))


def _doc(member: object) -> str:
    text = inspect.getdoc(member) or ""
    return " ".join(text.split()) if "\n\n" not in text else text
