"""The prose of the trap web: words, titles and sentences, each picked by a number.

Pure. A page is put together from sentences that are written once per process: two pages with different
numbers share next to nothing.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from itertools import product
from random import Random
from zlib import crc32

HEX = "0123456789abcdef"
_ONSETS = "b br c ch d dr f g gl h j k l m n p pl qu r s sh sl st t th tr v w".split()
_VOWELS = "a e i o u ai ea ou".split()
_CODAS = "n r l st nd ck m ss t sh".split()
_SENTENCES = 16_384
_SENTENCE_WORDS = 9


@cache
def vocabulary() -> tuple[str, ...]:
    """5,000 words of one or two syllables, none of them in a dictionary on purpose."""
    syllables = ["".join(parts) for parts in product(_ONSETS, _VOWELS, _CODAS)]
    dice = Random(1)
    return tuple(sorted({dice.choice(syllables) + dice.choice(["", *syllables]) for _ in range(5000)}))


@cache
def _sentences() -> tuple[str, ...]:
    dice, words = Random(2), vocabulary()
    return tuple(
        " ".join(dice.choices(words, k=_SENTENCE_WORDS)).capitalize() + "." for _ in range(_SENTENCES)
    )


def dice(*numbers: int) -> memoryview:
    """32 random numbers of 16 bits. Not by `mix`, whose result for a number and a step depends on few bits."""
    return memoryview(blake2b(str(numbers).encode()).digest()).cast("H")


def word(*numbers: int) -> str:
    words = vocabulary()
    return words[dice(*numbers)[0] % len(words)]


def title(*numbers: int) -> str:
    words = vocabulary()
    return " ".join([words[throw % len(words)] for throw in dice(*numbers)[1:4]]).capitalize()


def slug(*numbers: int) -> str:
    """Of one thing among thousands: three words, so that hardly any two are the same."""
    return title(*numbers).lower().replace(" ", "-")


def prose(sentences: int, *numbers: int) -> str:
    """32 sentences at most."""
    known = _sentences()
    return " ".join([known[throw % _SENTENCES] for throw in dice(*numbers)[:sentences]])


def token(alphabet: str, length: int, *numbers: int) -> str:
    """What passes for random, 32 characters at most."""
    return "".join([alphabet[throw % len(alphabet)] for throw in dice(*numbers)[:length]])


def number_of(text: str) -> int:
    """A number that a text stands for; `hash` would differ from process to process."""
    return crc32(text.encode())
