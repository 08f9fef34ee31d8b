"""What a page says for machines: JSON-LD, microdata, OpenGraph and RDFa as plain dicts of one shape.

Below `Page.data` and the built-in `structured`. turbohtml reads the four; here lists and graphs are flattened,
types and properties get their short names, and URLs become absolute. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from turbohtml import Document

from skitter.urls.canonical import normalise

Thing = dict[str, Any]
# Properties of schema.org whose values are URLs; microdata, OpenGraph and RDFa say so themselves.
_URLS = frozenset("@id url image logo sameAs contentUrl thumbnailUrl embedUrl mainEntityOfPage".split())
_SHOWN_OTHERWISE = "[itemprop][content]:not(meta)"


def structured_data(tree: Document, base: str, parse_again: Callable[[], Document]) -> list[Thing]:
    """A dict for each thing: its properties, `@type`, and `@syntax`, which says how the page states it. Several
    values of a property are a list."""
    # Shops write <span content="19.50">19,50 Euro</span> and mean the attribute, HTML means the text. A tree of
    # its own is changed for that.
    shown = tree.select(_SHOWN_OTHERWISE)
    found = (_with_content(parse_again()) if shown else tree).structured_data(base)
    things = [_marked(thing, "json-ld") for said in found.json_ld for thing in _of_json(said, base)]
    things += [_marked(_of_microdata(item), "microdata") for item in found.microdata]
    things += [_marked(_of_rdfa(item), "rdfa") for item in found.rdfa]
    if graph := {name.removeprefix("og:"): value for name, value in found.opengraph.items()}:
        things.append(_marked({"@type": "OpenGraph", **graph}, "opengraph"))
    return things


def _with_content(tree: Document) -> Document:
    for element in tree.select(_SHOWN_OTHERWISE):
        element.set_text(element.attr("content") or "")
    return tree


def _marked(thing: Thing, syntax: str) -> Thing:
    return {**thing, "@syntax": syntax}


def _of_json(said: object, base: str) -> Iterator[Thing]:
    """Lists and `@graph` hold several things."""
    if isinstance(said, list):
        for each in said:
            yield from _of_json(each, base)
    elif isinstance(said, dict):
        graph = said.get("@graph")
        if graph is not None:
            yield from _of_json(graph, base)
        if graph is None or "@type" in said:
            yield _absolute({name: value for name, value in said.items() if name != "@graph"}, base)


def _absolute(value: Any, base: str, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _absolute(each, base, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_absolute(each, base, name) for each in value]
    if name in _URLS and isinstance(value, str) and not value.startswith(("http:", "https:", "_:")):
        return normalise(value, base) or value
    return value


def _of_microdata(item: Any) -> Thing:
    properties = {name: _values(values, _of_microdata) for name, values in item.properties.items()}
    return {"@type": short_name(item.type or ""), **({"@id": item.id} if item.id else {}), **properties}


def _of_rdfa(item: Any) -> Thing:
    types = [short_name(name) for name in item.type or ()]
    properties = {short_name(name): _values(each, _of_rdfa) for name, each in item.properties.items()}
    about = {"@id": item.resource} if item.resource else {}
    return {"@type": types[0] if len(types) == 1 else types, **about, **properties}


def _values(values: list[Any], take: Callable[[Any], Thing]) -> Any:
    taken = [take(value) if hasattr(value, "properties") else value for value in values]
    return taken[0] if len(taken) == 1 else taken


def short_name(name: str) -> str:
    """`Product` of `http://schema.org/Product`, whichever way it is spelled."""
    return name.rstrip("/#").rpartition("/")[2].rpartition("#")[2] if "/" in name else name


def type_of(thing: Thing) -> str:
    """Of several types the first."""
    said = thing.get("@type")
    if isinstance(said, list):
        said = next((each for each in said if isinstance(each, str)), "")
    return short_name(said) if isinstance(said, str) else ""
