"""The settings of users' code in a crawl: `[plugins]`, and extractors without code, `[extract.NAME]`.

Sections of `Settings` like the others, in a file of their own. docs/plugins.md explains them to users.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Doc = Meta


class PluginSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"with_": "with"}
):
    """Your code in the crawl: docs/plugins.md."""

    with_: Annotated[
        tuple[str, ...],
        Doc(
            description="Files, modules and names of installed plugins whose functions see the pages, and the "
            "built-ins structured, json, article, tables and contacts."
        ),
    ] = ()
    seconds: Annotated[
        Annotated[float, Meta(gt=0)],
        Doc(description="That one function may take for one page; then it is ended, and a fault is kept."),
    ] = 2.0
    memory: Annotated[
        Annotated[int, Meta(ge=100_000_000)],
        Doc(description="Bytes of RAM of the process that runs the functions, one beside each worker."),
    ] = 512_000_000
    versions: Annotated[
        tuple[str, ...],
        Doc(
            description="Hashes of the sources of `with`, noted by skitter when a crawl starts. A worker whose "
            "sources differ refuses to start."
        ),
    ] = ()
    types: Annotated[
        tuple[str, ...],
        Doc(
            description="Media types that are fetched because `with` reads them, noted by skitter when a crawl "
            "starts. What was refused for a type that is new here is asked for again."
        ),
    ] = ()


def is_file(name: str) -> bool:
    """Whether a plugin is named by its file, and not as a module."""
    return name.endswith(".py") or "/" in name


class FieldRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"as_": "as"}):
    """How the value of one field is found; a text stands for `css` alone."""

    css: Annotated[str, Doc(description="CSS selector of the element.")] = ""
    xpath: Annotated[str, Doc(description="XPath of the element, the attribute or the text.")] = ""
    attr: Annotated[str, Doc(description="The attribute to take instead of the text.")] = ""
    as_: Annotated[str, Doc(description="text, number, url, urls or html.")] = "text"
    all: Annotated[bool, Doc(description="A list of all values instead of the first.")] = False


class ExtractRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An extractor without code."""

    match: Annotated[
        str | tuple[str, ...], Doc(description="Globs of hosts and paths, such as shop.example/products/*.")
    ] = "*"
    type: Annotated[str, Doc(description="The items' type; without it the name of the rule.")] = ""
    each: Annotated[
        str,
        Doc(description="CSS selector of the elements that are an item each; without it the page is one."),
    ] = ""
    key: Annotated[str | tuple[str, ...], Doc(description="The fields that make two items one.")] = ()
    fields: Annotated[
        dict[str, str | FieldRule], Doc(description="By name a CSS selector, or css, xpath, attr, as, all.")
    ] = {}
