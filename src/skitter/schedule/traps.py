"""When a kind of page is a trap: what visits saw of it, and whether that is enough. Pure arithmetic.

Fed when a page is settled, asked in the same moment. A *subject* is what is judged: the URLs of a host that share
a skeleton, all of a host, the new hosts of a domain, a parameter. Whatever the store, the figures and the rule
are these. Never judges by a URL's looks alone: pages that keep being different go on, however they are named.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec


class Sight(StrEnum):
    """What a page turned out to be, beside what was known of its subject before."""

    NOVEL = "novel"
    BARE = "bare"
    """Too few words for a fingerprint, and a title that differs from another's in digits at most."""
    KIN = "kin"
    """The title of another page of its host, but for digits, and a text that is not far from that one's."""
    NEAR = "near"
    SAME = "same"
    """The same words, whatever the numbers."""
    ELSEWHERE = "elsewhere"
    """A redirect to what is known, or a page that names another known one as its original."""
    COPY = "copy"
    SOFT_404 = "soft_404"
    """Like the answer to a path that was made up."""


# Points of one sight. Near is half as much as a copy: an index of fingerprints takes 1.3 % of different pages
# for another (ADR 11), and what a shop says of two shirts may differ in one word.
# an enum's own attribute takes 0.1 us, eight times as long
_NOVEL = Sight.NOVEL
POINTS = {
    Sight.NOVEL: 0,
    Sight.BARE: 2,
    Sight.KIN: 2,
    Sight.NEAR: 3,
    Sight.SAME: 4,
    Sight.ELSEWHERE: 4,
    Sight.COPY: 6,
    Sight.SOFT_404: 6,
}
# Points in a row at which a subject is stopped: 8 copies, 12 pages of the same words, 16 near ones, 24 bare ones.
# Where the URL has the shape of a known trap half of it: 4, 6, 8, 12.
ENOUGH = 48
ENOUGH_OF_SHAPE = 24
# What was pardoned once has to be that much worse to be stopped again.
PATIENCE = 4
# A run without novelty must be so many times as long as the usual way from one novel page to the next:
# e**-5 at first; with ln(novel) more, as there were that many occasions for a long run.
_UNUSUAL = 5.0
# Novel pages seen of a stopped subject after which the verdict is wrong.
CONTRADICTIONS = 2
# Refusals at which one more member is let through, to see: 64, 256, 1,024, ...
_FIRST_CHECK = 64
# Bits of 64 in which the texts of two pages with one title differ that are still of one kind. Of the
# pages of honest hosts that were looked at none had the title of one of the eight before it; of the endless ones
# that differ in more than three bits nine in ten had, and a text within twelve.
KIN = 12
MARK = 4
# A family is judged for what its skeletons have in common: of one alone, the skeleton is judged.
_SCATTERED = 4
_MARKS_KEPT = 8


class Level(StrEnum):
    SKELETON = "skeleton"
    FAMILY = "family"
    UNSEEN = "unseen"
    SECTION = "section"
    HOST = "host"
    DOMAIN = "domain"
    PARAMETER = "parameter"


class TrapKind(StrEnum):
    """What a stopped subject looks like, for people; the figures decide, not the name."""

    CALENDAR = "calendar"
    FACETS = "facets"
    SESSION = "session"
    REPEATING = "repeating"
    VARIANT = "variant"
    ENDLESS_PATH = "endless_path"
    SOFT_404 = "soft_404"
    ALIKE = "alike"
    PARAMETER = "parameter"
    SUBDOMAINS = "subdomains"
    BUDGET = "budget"
    ENDLESS = "endless"


# A verdict on many kinds of pages at once takes that much more.
_SCATTERED_LEVELS = {Level.FAMILY: 2, Level.UNSEEN: 4}


class Evidence(msgspec.Struct, array_like=True):
    """What was seen of a subject. `fetched` and `novel` are since its host first repeated itself; `run` pages
    in a row brought nothing new, worth `points`. `marks` are of the last different texts, `last` the keys of
    the last pages. `trap` is the verdict in force; `late` counts novel pages since it fell, `refused` what it
    refused and `passed` what it let through as samples. `exempt` by the operator. `scattered` are marks of a
    family's skeletons. Of a section, `grown` pages brought more of the same, `brought` in all, and met
    `again` what was known of it, beside marks of what is `usual` on each; `entered` were linked from
    elsewhere. `lines` are the pages at which its soundings are now, and how deep; `bottomless` ones in a row
    found no end, and none begins before `sound_from` pages were looked at. `least` is of rows from before
    there were soundings. Of a parameter, `run` and `novel` weigh pairs of pages that differ in it alone:
    alike, or not."""

    name: str
    level: Level
    shaped: int = 0
    fetched: int = 0
    novel: int = 0
    run: int = 0
    points: int = 0
    soft: int = 0
    received: int = 0
    deepest: int = 0
    marks: bytes = b""
    last: bytes = b""
    trap: int = 0
    refused: int = 0
    late: int = 0
    pardons: int = 0
    exempt: bool = False
    passed: int = 0
    scattered: bytes = b""
    grown: int = 0
    brought: int = 0
    again: int = 0
    least: int = -1
    entered: int = 0
    usual: bytes = b""
    lines: dict[bytes, int] = msgspec.field(default_factory=dict)
    bottomless: int = 0
    sound_from: int = 0

    def scatter(self, mark: bytes, sight: Sight) -> None:
        """Of a family: which skeletons took part in the run."""
        if sight is Sight.NOVEL:
            self.scattered = b""
        elif len(self.scattered) < MARK * _SCATTERED and not has_mark(self.scattered, mark):
            self.scattered += mark


def account(seen: Evidence, sight: Sight, *, size: int, depth: int, key: bytes = b"") -> None:
    seen.fetched += 1
    seen.received += size
    if depth > seen.deepest:
        seen.deepest = depth
    if key:
        seen.last = (key + seen.last)[: 3 * len(key)]
    if sight is _NOVEL:
        credit(seen)
        return
    seen.run += 1
    seen.points += POINTS[sight]
    seen.soft += sight is Sight.SOFT_404


def credit(seen: Evidence) -> None:
    """It was worth its fetches: by a novel page of its own, or by one that it led to."""
    seen.novel += 1
    seen.run = seen.points = 0
    seen.late += bool(seen.trap)


def is_enough(seen: Evidence) -> bool:
    """Whether this subject is to be stopped now."""
    if seen.trap or seen.exempt:
        return False
    if seen.level in _SCATTERED_LEVELS and len(seen.scattered) < MARK * _SCATTERED:
        return False
    return seen.points >= needed(seen) and seen.run >= unusual_run(seen)


def needed(seen: Evidence) -> int:
    enough = ENOUGH_OF_SHAPE if seen.shaped else ENOUGH
    return int(enough * _SCATTERED_LEVELS.get(seen.level, 1) * PATIENCE**seen.pardons)


def unusual_run(seen: Evidence) -> float:
    """Pages in a row without novelty that chance would not bring, by how often novelty came before."""
    if not seen.novel:
        return 0.0
    usual = max(1.0, (seen.fetched - seen.run) / seen.novel)
    return usual * (_UNUSUAL + math.log(seen.novel)) if usual > 1 else 0.0


def is_contradicted(seen: Evidence) -> bool:
    return bool(seen.trap) and seen.late >= CONTRADICTIONS


def is_to_be_checked(seen: Evidence) -> bool:
    """Whether the member that would be refused next is let through instead, as a sample."""
    turn = seen.refused + seen.passed
    return turn >= _FIRST_CHECK and turn & (turn - 1) == 0 and turn.bit_length() % 2 == 1


def room(seen: Evidence) -> int:
    """How many more of it may be asked for at once: when all are copies, about as many as stop it."""
    missing = max(needed(seen) - seen.points, 0)
    return max(1, missing // POINTS[Sight.COPY])


# -- marks


def has_mark(marks: bytes, mark: bytes) -> bool:
    return mark in marks and any(marks[at : at + MARK] == mark for at in range(0, len(marks), MARK))


def with_mark(marks: bytes, mark: bytes) -> bytes:
    """The last few different ones, the latest first."""
    if mark in marks and has_mark(marks, mark):
        return marks
    return (mark + marks)[: MARK * _MARKS_KEPT]


# -- parameters

# Four copies, or eight pages of the same words.
_SAMPLES = 8
_RARELY = 20


def is_idle(seen: Evidence) -> bool:
    """Whether a parameter changes nothing: pages that differ in it alone were alike, and hardly ever not."""
    if seen.trap or seen.exempt:
        return False
    return seen.run >= _SAMPLES * PATIENCE**seen.pardons and seen.novel * _RARELY <= seen.run


def count_pair(seen: Evidence, weight: int, *, alike: bool) -> None:
    seen.fetched += 1
    if alike:
        seen.run += weight
    else:
        seen.novel += 1
        seen.late += bool(seen.trap)
