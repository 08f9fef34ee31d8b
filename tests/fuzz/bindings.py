"""Mutated arguments through every function of the extension module, which was built with sanitizers.

Run by `python -m tests.fuzz`, with the sanitizer's library loaded before Python: bindings.py MODULE SECONDS
SEED FILE... The cores have drivers of their own; this is about what lies between them and Python: buffers,
references, results.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
from array import array
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

LARGEST = 20_000
REFUSED = (TypeError, ValueError, IndexError, OverflowError)
MASKS = b"".join(random.Random(1).getrandbits(64).to_bytes(8, "little") for _ in range(4096))
FIELDS = ("url", "key", "host", "depth", "via", "parent", "hops", "priority", "kind", "nesting")


class Fuzzer:
    def __init__(self, kernels: Any, files: list[bytes], seed: int) -> None:
        self.kernels = kernels
        self.files = files
        self.random = random.Random(seed)

    def mutated(self, most: int = LARGEST) -> bytes:
        body = bytearray(self.random.choice(self.files)[:most])
        for _ in range(self.random.randrange(12)):
            at = self.random.randrange(len(body) + 1)
            if self.random.random() < 0.5:
                body[at : at + self.random.randrange(30)] = b""
            else:
                other = self.random.choice(self.files)
                start = self.random.randrange(len(other) + 1)
                body[at:at] = other[start : start + self.random.randrange(40)]
        return bytes(body[:most])

    def text(self) -> str:
        return self.mutated().decode(
            self.random.choice(["ascii", "latin-1", "utf-8", "utf-16-le"]), "replace"
        )

    def lines(self) -> list[str]:
        return self.mutated(3000).decode("latin-1").split("\n")[:200]

    def keys(self, count: int) -> bytes:
        return self.random.randbytes(16 * count + self.random.choice([0, 0, 0, 5]))

    # -- one call of each

    def markup(self) -> None:
        made = self.kernels.read_html(
            self.mutated(), self.random.random() < 0.7, True, b"skitter", lambda *parts: parts, str.strip
        )
        assert made is None or len(made) == 14

    def simhash(self) -> None:
        text = self.text()
        assert self.kernels.simhash(text) == self.kernels.simhash(text)

    def figures(self) -> None:
        given = self.text(), self.text(), self.text()
        assert self.kernels.figures(*given) == self.kernels.figures(*given)

    def hrefs(self) -> None:
        links = [
            SimpleNamespace(href=href, rel=self.random.choice(["", "nofollow"])) for href in self.lines()
        ]
        folder = self.random.choice(["http://a.example/b/", "https://h/", *[link.href for link in links[:1]]])
        host = folder[: folder.find("/", 8)] if folder.find("/", 8) > 0 else folder
        names = {"a", "b", "p1", "x"}
        found, odd = self.kernels.resolve_links(links, folder, host, bytes(8), True, names, {}, {})
        assert len(found) == len(links)
        assert all(found[place] is None for place in odd)
        keys, urls = self.kernels.select_followed(folder, links, found)
        assert len(keys) // 16 == (urls.count("\n") + 1 if keys else 0)
        assert len(self.kernels.list_targets(links, found)) <= len(links)

    def link_batch(self) -> None:
        lines = self.lines()
        keys = self.keys(max(0, len(lines) + self.random.choice([0, 0, 0, -1, 1])))
        numbers = [self.random.randrange(-1, len(lines) + 1) for _ in range(self.random.randrange(5))]
        common = (1, None, None, 0, None, 0)
        urls = "\n".join(line if self.random.random() < 0.2 else f"http://h/{line}" for line in lines)
        self.refuse(self.kernels.select_links, keys, urls, numbers, dict, *common)
        refused = self.refuse(self.kernels.split_batch, keys, urls, numbers, "http://h/", "http://h/x")
        assert refused or all(0 <= number < len(keys) // 16 for number in numbers)

    def keyset(self) -> None:
        table = mmap(-1, self.random.choice([64, 100, 6400]))
        keys, host = self.keys(self.random.randrange(40)), self.random.randbytes(8)
        linkers: dict[bytes, bytes] = {}
        each = [keys[at : at + 16] for at in range(0, len(keys), 16)]
        self.refuse(self.kernels.certain_add_all, table, each)
        self.refuse(self.kernels.certain_add_own, table, keys, host)
        self.refuse(self.kernels.certain_find_missing, table, keys, host)
        for _ in range(3):
            self.refuse(
                self.kernels.certain_find_news, table, keys, host, linkers, {}, self.random.randbytes(16)
            )
        parts = [(array("q", (0, 3)), mmap(-1, 8 * self.random.randint(1, 20))) for _ in range(3)]
        self.refuse(self.kernels.add_new_keys, table, parts, self.random.randint(0, 33), each)
        self.refuse(self.kernels.certain_move, table, mmap(-1, 12_800))

    def near_words(self) -> None:
        words = mmap(-1, 8 * self.random.randint(1, 100))
        prints = [self.random.getrandbits(self.random.choice([64, 64, 65])) for _ in range(5)]
        self.refuse(self.kernels.near_add, words, MASKS, prints)
        self.refuse(self.kernels.near_find_candidates, words, MASKS, prints)
        self.refuse(self.kernels.near_select_close, prints[0], prints, 6)
        self.refuse(self.kernels.near_unpack_close, prints[0], self.mutated(200), 30)

    def refuse(self, function: Callable[..., object], *arguments: object) -> bool:
        """Whether the arguments were refused: in one of these ways, and in no other."""
        try:
            function(*arguments)
        except REFUSED:
            return True
        return False


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(module: str, seconds: str, seed: str, *names: str) -> int:
    files = [Path(name).read_bytes() for name in names]
    fuzzer = Fuzzer(load(module), files, int(seed))
    each = (
        fuzzer.markup,
        fuzzer.simhash,
        fuzzer.figures,
        fuzzer.hrefs,
        fuzzer.link_batch,
        fuzzer.keyset,
        fuzzer.near_words,
    )
    end, calls = time.monotonic() + int(seconds), 0
    while time.monotonic() < end:
        for call in each:
            call()
            calls += 1
    print(f"{calls} inputs")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
