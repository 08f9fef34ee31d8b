"""Pages that are alike by construction, and pages of one template that are not: what fingerprints are judged by.

Each page is changed in its HTML, in ways that leave it the same page to a reader, and read again by the parser.
The other pages of the same documentation are what it must not be taken for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from skitter.parse.page import read_page

Fingerprint = Callable[[str], int | None]
FURTHEST = 8
_WORD = re.compile(rb"(?<=[\s>])[a-z]{4,}(?=[\s<.,;])")
_BODY = re.compile(rb"<main[^>]*>|<body[^>]*>")


class Pair(msgspec.Struct, frozen=True):
    kind: str
    page: str
    variant: str


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """By the distance allowed, 0 to `FURTHEST`. `confused` is the share of pages that have a different one that
    near; precision is that of a crawl of all pages and one variant of each."""

    recall: dict[str, list[float]]
    overall: list[float]
    confused: list[float]
    precision: list[float]
    judged: int


def texts_of(files: Sequence[Path]) -> dict[Path, str]:
    """The main texts; of pages with the same text the first."""
    found: dict[str, Path] = {}
    for file in files:
        found.setdefault(_text(file.read_bytes()), file)
    return {file: text for text, file in found.items()}


def pairs_of(files: Sequence[Path], rng: random.Random) -> list[Pair]:
    words = _WORD.findall(b" ".join(file.read_bytes() for file in files[:100]))
    kinds: dict[str, Callable[[bytes], bytes]] = {
        "re-dated": lambda body: _redated(body, rng),
        "templated": _templated,
        "0.5 % edited": lambda body: _edited(body, 0.005, words, rng),
        "2 % edited": lambda body: _edited(body, 0.02, words, rng),
        "2 % cut off": lambda body: _cut(body, 0.02),
        "10 % cut off": lambda body: _cut(body, 0.10),
    }
    pairs = []
    for file in files:
        body = file.read_bytes()
        text = _text(body)
        pairs += [Pair(kind, text, _text(change(body))) for kind, change in kinds.items()]
    return pairs


def judge(pages: Sequence[str], pairs: Sequence[Pair], fingerprint: Fingerprint, seed: int) -> Curve:
    known = _known(pages, fingerprint)
    confused = np.array([_nearest_other(known, place) for place in range(len(known))])
    apart: dict[str, list[int]] = {}
    for pair in pairs:
        one, other = fingerprint(pair.page), fingerprint(pair.variant)
        if one is not None:
            apart.setdefault(pair.kind, []).append(64 if other is None else (one ^ other).bit_count())
    recall = {kind: _shares(np.array(distances)) for kind, distances in apart.items()}
    overall = [float(np.mean(column)) for column in zip(*recall.values(), strict=True)]
    return Curve(
        recall=recall,
        overall=overall,
        confused=_shares(confused),
        precision=_precision(known, pairs, fingerprint, confused, seed),
        judged=len(known),
    )


def _precision(
    known: NDArray[np.uint64],
    pairs: Sequence[Pair],
    fingerprint: Fingerprint,
    confused: NDArray[np.int64],
    seed: int,
) -> list[float]:
    """One variant a page, of a kind drawn at random, and as many pages without: what does each resemble?"""
    rng = random.Random(seed)
    by_page: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_page.setdefault(pair.page, []).append(pair)
    right, wrong = np.zeros(FURTHEST + 1), np.zeros(FURTHEST + 1)
    asked = 0
    for page, variants in by_page.items():
        own, variant = fingerprint(page), fingerprint(rng.choice(variants).variant)
        if own is None or variant is None:
            continue
        asked += 1
        distances = np.bitwise_count(known ^ np.uint64(variant))
        nearest = int(distances.min())
        is_own = (own ^ variant).bit_count() == nearest
        (right if is_own else wrong)[nearest:] += 1
    wrong += np.array(_shares(confused)) * asked
    return [float(r / (r + w)) if r + w else 1.0 for r, w in zip(right, wrong, strict=True)]


def _known(pages: Sequence[str], fingerprint: Fingerprint) -> NDArray[np.uint64]:
    return np.array([found for page in pages if (found := fingerprint(page)) is not None], np.uint64)


def _nearest_other(known: NDArray[np.uint64], place: int) -> int:
    distances = np.bitwise_count(known ^ known[place])
    distances[place] = 64
    return int(distances.min())


def _shares(distances: NDArray[np.int64]) -> list[float]:
    return [float((distances <= limit).mean()) for limit in range(FURTHEST + 1)]


# -- how pages change and stay the same


def _text(body: bytes) -> str:
    return read_page(
        body, url="http://docs.test/", content_type="text/html; charset=utf-8", with_text=True
    ).text


def _inside(body: bytes) -> tuple[int, int]:
    """Where the content begins and ends."""
    begins = list(_BODY.finditer(body))
    ends = max(body.rfind(b"</main>"), 0) or max(body.rfind(b"</body>"), 0) or len(body)
    return (begins[-1].end() if begins else 0), ends


def _redated(body: bytes, rng: random.Random) -> bytes:
    begin, end = _inside(body)
    day, minute, visitor = rng.randint(1, 28), rng.randint(10, 59), rng.randint(1_000, 9_999_999)
    above = f"<p>Last updated: {day} November 2026, 14:{minute}</p>".encode()
    below = f"<p>Page generated in {minute} ms for visitor {visitor}</p>".encode()
    return body[:begin] + above + body[begin:end] + below + body[end:]


def _templated(body: bytes) -> bytes:
    begin, end = _inside(body)
    return (
        b"<html><body><header>Mirror of many documents</header><nav><a href=/>Home</a> <a href=/all>All</a></nav>"
        b"<main><p>You are reading a copy.</p>" + body[begin:end] + b"<p>Share this page</p></main>"
        b"<footer>Hosted by nobody in particular</footer></body></html>"
    )


def _edited(body: bytes, share: float, words: Sequence[bytes], rng: random.Random) -> bytes:
    begin, end = _inside(body)
    places = list(_WORD.finditer(body, begin, end))
    chosen = rng.sample(places, min(len(places), max(1, int(len(places) * share))))
    for place in sorted(chosen, key=lambda found: -found.start()):
        body = body[: place.start()] + rng.choice(words) + body[place.end() :]
    return body


def _cut(body: bytes, share: float) -> bytes:
    begin, end = _inside(body)
    return body[: end - int((end - begin) * share)]
