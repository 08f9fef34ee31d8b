"""Mutations from a seed: of bytes, and of values that are encoded again afterwards.

For the harnesses in Python (`deliveries.py`, `journals.py`, `stores.py`). Not atheris: what reads these bytes is
msgspec, Arrow and RocksDB, whose code libFuzzer would not see, and changed bytes alone rarely pass a decoder. A
changed value that is encoded again always does. The same seed gives the same inputs on every machine.
"""

from __future__ import annotations

import random
import sys
from math import inf, nan
from typing import Any

_BYTES = (0, 1, 0x0A, 0x22, 0x7F, 0x80, 0x92, 0xC0, 0xC1, 0xCB, 0xCF, 0xD3, 0xDC, 0xDF, 0xFF)
_NUMBERS = (
    0,
    1,
    -1,
    99,
    200,
    304,
    65_535,
    1 << 31,
    -(1 << 31),
    1 << 53,
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
)
_TIMES = (0.0, -1.0, 1.0, nan, inf, -inf, 1e18, 4e9)
_TEXTS = (
    "",
    "\0",
    "\r\n",
    "\n",
    '"',
    "x" * 300_000,
    "http://",
    "http://a.test/",
    "http://h1.test/p",
    "javascript:alert(1)",
    "é\u202e\U0001f600",
    "../../etc/passwd",
)
_BLOBS = (b"", b"\0", b"\xff" * 16, b"k" * 32, b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xc1\xff\xff\xff\xff")


_TOLD_EVERY = 1_000


def tell_progress(done: int) -> None:
    """On standard error: what ends it early leaves a figure."""
    if done % _TOLD_EVERY == 0:
        print(f"{done:,}", file=sys.stderr, flush=True)


class Mutator:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def of_bytes(self, message: bytes, most: int = 4) -> bytes:
        """Up to so many places changed, cut out, repeated or put in."""
        dice, changed = self.dice, bytearray(message)
        for _ in range(dice.randint(1, most)):
            at = dice.randrange(len(changed) + 1)
            match dice.randrange(6):
                case 0:
                    changed[at : at + 1] = bytes((dice.randrange(256),))
                case 1:
                    changed[at : at + 1] = bytes((dice.choice(_BYTES),))
                case 2:
                    del changed[at : at + dice.choice((1, 2, 5, 40, 400))]
                case 3:
                    changed[at:at] = dice.randbytes(dice.choice((1, 4, 9, 100)))
                case 4:
                    changed[at:at] = changed[at : at + dice.choice((1, 5, 60, 600))]
                case _:
                    length = dice.choice((1, 4, 30, 300))
                    changed[at : at + length] = b"\0" * len(changed[at : at + length])
        return bytes(changed)

    def of_same_length(self, message: bytes) -> bytes:
        """As a disk would do it: nothing moves."""
        changed = self.of_bytes(message)[: len(message)]
        return changed + self.dice.randbytes(len(message) - len(changed))

    def of_value(self, value: Any) -> Any:
        """One place in lists, dicts and leaves changed."""
        dice = self.dice
        if isinstance(value, dict) and value and dice.random() < 0.9:
            name = dice.choice(list(value))
            if dice.random() < 0.05:
                return {key: one for key, one in value.items() if key != name}
            return {**value, name: self.of_value(value[name])}
        if isinstance(value, list | tuple) and value and dice.random() < 0.9:
            return self._of_list(list(value))
        return self._of_leaf(value)

    def _of_list(self, value: list[Any]) -> list[Any]:
        at = self.dice.randrange(len(value))
        match self.dice.randrange(12):
            case 0:
                del value[at]
            case 1:
                value.insert(at, value[at])
            case 2:
                value[at], value[-1] = value[-1], value[at]
            case _:
                value[at] = self.of_value(value[at])
        return value

    def _of_leaf(self, value: Any) -> Any:
        dice = self.dice
        if dice.random() < 0.1:
            return dice.choice((None, True, 0, "", b"", [], {}, dice.choice(_TIMES), dice.choice(_NUMBERS)))
        match value:
            case bool():
                return not value
            case int():
                return dice.choice((value + 1, value - 1, -value, dice.choice(_NUMBERS)))
            case float():
                return dice.choice((value + dice.uniform(-100, 100), -value, dice.choice(_TIMES)))
            case str():
                return dice.choice((self._of_text(value), dice.choice(_TEXTS)))
            case bytes():
                return dice.choice((self.of_bytes(value), self.of_bytes(value), dice.choice(_BLOBS)))
        return dice.choice((*_TEXTS, *_NUMBERS))

    def _of_text(self, value: str) -> str:
        return self.of_bytes(value.encode("utf-8", "replace")).decode("utf-8", "replace")
