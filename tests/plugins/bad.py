"""Ten ways in which users' code goes wrong, each on the page of its name, and one function that is sound."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from typing import Any

import skitter


@skitter.page("*")
def sound(page: skitter.Page) -> dict[str, Any]:
    return {"url": page.url}


@skitter.page("*/raises")
def raises(page: skitter.Page) -> Iterator[dict[str, Any]]:
    yield {"kept": False}
    page.follow("/never")
    raise ValueError("no price here")


@skitter.page("*/loops")
def loops(page: skitter.Page) -> None:
    while True:
        pass


@skitter.page("*/backtracks")
def backtracks(page: skitter.Page) -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


@skitter.page("*/allocates")
def allocates(page: skitter.Page) -> int:
    return len(bytearray(8_000_000_000))


@skitter.page("*/exits")
def exits(page: skitter.Page) -> None:
    os._exit(3)


@skitter.page("*/crashes")
def crashes(page: skitter.Page) -> None:
    ctypes.string_at(0)


@skitter.page("*/floods")
def floods(page: skitter.Page) -> Iterator[dict[str, Any]]:
    while True:
        yield {"again": True}


@skitter.page("*/prints")
def prints(page: skitter.Page) -> dict[str, Any]:
    print("x" * 100_000, flush=True)
    os.write(1, b"\x00\x00\x00\x05hello")
    return {"printed": True}


@skitter.page("*/mistypes")
def mistypes(page: skitter.Page) -> int:
    return 7


@skitter.page("*/swallows")
def swallows(page: skitter.Page) -> None:
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue
