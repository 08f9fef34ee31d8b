"""The fingerprint of a text: the same for ever, near for texts alike, and bounded whatever the text."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.parse.fingerprints import fingerprint_plain
from skitter.parse.fingerprints.fingerprint import simhash
from skitter.parse.fingerprints.fingerprint_plain import FEWEST_WORDS, MOST_BYTES

_ALL = (1 << 64) - 1
_BASE = 0x9E37_79B9_7F4A_7C15
STORY = """The harbour was quiet when the ferry came in, and nobody on the quay looked up from what they were
doing. Nets were mended, boxes were stacked, a dog slept in the shade of the customs house. Only the pilot,
who had been waiting since the small hours with his collar turned up against the wind, raised one hand."""


def plainly(text: str) -> int | None:
    """The definition, word by word."""
    kept = bytes(code if code >= 0x80 or chr(code).isalpha() else 0 for code in range(256))
    raw = text.encode("utf-8", "replace")[:MOST_BYTES].translate(kept).lower()
    words = raw.replace(b"\0", b" ").split(b" ")
    words += [raw[place : place + 6] for place, code in enumerate(raw) if 0xE3 <= code <= 0xED]
    words = [word for word in words if word]
    if len(words) < FEWEST_WORDS:
        return None
    hashes = [_mix(_polynomial(word)) for word, n in Counter(words).items() for _ in range(min(n, 16))]
    ones = [sum(value >> bit & 1 for value in hashes) for bit in range(64)]
    return sum(1 << bit for bit in range(64) if 2 * ones[bit] > len(hashes))


def _polynomial(word: bytes) -> int:
    return sum(code * pow(_BASE, place, 1 << 64) for place, code in enumerate(word)) & _ALL


def _mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58_476D_1CE4_E5B9 & _ALL
    value = (value ^ value >> 27) * 0x94D0_49BB_1331_11EB & _ALL
    return value ^ value >> 31


def bits_apart(one: str, other: str) -> int:
    first, second = simhash(one), simhash(other)
    assert first is not None
    assert second is not None
    return (first ^ second).bit_count()


@given(st.text(st.characters(max_codepoint=0x24F), max_size=2_000))
def test_it_is_what_its_definition_says(text: str) -> None:
    assert simhash(text) == fingerprint_plain.simhash(text) == plainly(text)


@given(st.text("ab 1é\x85—港はまだ静か한국😀", min_size=10, max_size=300))
def test_it_is_what_its_definition_says_of_scripts_without_spaces(text: str) -> None:
    assert simhash(text) == fingerprint_plain.simhash(text) == plainly(text)


@given(st.lists(st.text("abcé", min_size=1, max_size=2), min_size=FEWEST_WORDS, max_size=100))
def test_ties_and_repetitions_are_as_its_definition_says(words: list[str]) -> None:
    text = " ".join(words)
    assert simhash(text) == plainly(text)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_it_is_what_its_definition_says_of_as_many_words_as_there_can_be(length: int) -> None:
    rng = random.Random(length)
    words = ("".join(rng.choices("abcdef静", k=length)) for _ in range(MOST_BYTES))
    text = " ".join(words)
    assert simhash(text) == plainly(text)


def test_it_never_changes() -> None:
    """On any machine, with any Python: fingerprints lie on disk."""
    assert simhash(STORY) == KNOWN
    assert simhash("港はまだ静かで、誰も船を見ていなかった。" * 3) == KNOWN_DENSE


KNOWN = 0xBFBA_2D3F_D67A_A1EC
KNOWN_DENSE = 0x9E73_FF6B_4BD3_2A92


@given(st.text(), st.integers(1, 50))
def test_no_text_breaks_it(text: str, times: int) -> None:
    found = simhash(text * times)
    assert found is None or 0 <= found <= _ALL


@given(st.binary(max_size=500))
def test_neither_do_lone_surrogates(raw: bytes) -> None:
    text = raw.decode("utf-16-le", "surrogatepass" if len(raw) % 2 == 0 else "replace")
    assert simhash(text) == fingerprint_plain.simhash(text)


@pytest.mark.parametrize("length", [*range(1, 26), 63, 64, 65, 128])
def test_words_of_any_length_count_wherever_they_lie(length: int) -> None:
    for shift in range(0, 70, 3):
        words = [chr(97 + number) * (1 + number % length) for number in range(26)]
        text = "." * shift + "Z" * length + " " + " ".join(words) + ".é" * (shift % 2) + "X" * length
        assert simhash(text) == plainly(text)


@pytest.mark.parametrize("text", ["", " ", "1 2 3 4 5" * 50, "word " * (FEWEST_WORDS - 1), "\0" * 1_000])
def test_a_text_of_few_words_says_nothing(text: str) -> None:
    assert simhash(text) is None


def test_case_digits_and_spacing_do_not_matter() -> None:
    assert (
        simhash(STORY) == simhash(STORY.upper()) == simhash(STORY.replace(" ", "\n  ") + " 2026-11-16 12:30")
    )


def test_few_changed_words_change_few_bits_and_another_text_changes_many() -> None:
    rng = random.Random(7)
    words = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(600)]
    text = " ".join(words * 2)
    assert bits_apart(text, text.replace(words[3], "other", 1)) <= 3
    other = " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(1_200))
    assert bits_apart(text, other) >= 15


def test_scripts_without_spaces_are_read_by_pairs_of_characters() -> None:
    rng = random.Random(3)
    characters = [chr(0x4E00 + rng.randrange(3_000)) for _ in range(1_000)]
    text = "".join(characters)
    assert bits_apart(text, "".join([*characters[:500], "新", *characters[500:]])) <= 3
    assert bits_apart(text, "".join(rng.sample(characters, 1_000))) >= 15


def test_a_longer_text_is_judged_by_its_beginning() -> None:
    text = STORY * (MOST_BYTES // len(STORY) + 1)
    assert simhash(text) == simhash(text[:MOST_BYTES]) == simhash(text + "something else " * 10_000)


@pytest.mark.parametrize("unit", ["a", "word ", "é ", "漢", "ㄱ ", "1", "\ud800", "x漢 "])
@pytest.mark.parametrize("repeats", [19, 20, MOST_BYTES // 3, MOST_BYTES - 1, MOST_BYTES, 3 * MOST_BYTES])
def test_both_forms_agree_where_a_text_is_cut(unit: str, repeats: int) -> None:
    for before in ("", "x", "é"):
        text = before + unit * repeats
        assert simhash(text) == fingerprint_plain.simhash(text)
