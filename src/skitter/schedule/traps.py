"""When a group of pages is a trap: the evidence, and whether it is enough. Pure arithmetic.

Fed and asked when a page is settled. A *subject* is the group that is judged: the URLs of a host that share a
skeleton, a whole host, the new hosts of a domain, a parameter. A *tag* is 4 bytes that stand for a text or a
page. Never judges by the form of a URL alone: as long as pages differ from each other, they are fetched.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec


class PageNovelty(StrEnum):
    """How new a page is, compared with the pages of its subject before it."""

    NOVEL = "novel"
    ENTRY = "entry"
    """Alike in its words, with a title and figures of its own (`schedule/entries.py`)."""
    BARE = "bare"
    """Too few words for a fingerprint, and a title that differs from another's in digits at most."""
    SAME_TEMPLATE = "kin"
    """The same template: the title of another page of its host, but for digits, and a similar text."""
    NEAR = "near"
    SAME = "same"
    """The same words, whatever the numbers."""
    ELSEWHERE = "elsewhere"
    """A redirect to a known page, or a page that names another known one as canonical."""
    COPY = "copy"
    SOFT_404 = "soft_404"
    """Like the host's answer to a path that does not exist."""


# bound once: looked up for every page
_NOVEL, _ENTRY = PageNovelty.NOVEL, PageNovelty.ENTRY
# Points per page. Near is half as much as a copy: the index of fingerprints takes 1.3 % of different pages for
# another (ADR 11), and a shop's texts about two shirts may differ in one word.
POINTS = {
    PageNovelty.NOVEL: 0,
    PageNovelty.ENTRY: 0,
    PageNovelty.BARE: 2,
    PageNovelty.SAME_TEMPLATE: 2,
    PageNovelty.NEAR: 3,
    PageNovelty.SAME: 4,
    PageNovelty.ELSEWHERE: 4,
    PageNovelty.COPY: 6,
    PageNovelty.SOFT_404: 6,
}
# Points in a row at which a subject is stopped: 8 copies, 12 pages of the same words, 16 near ones, 24 bare ones.
# Where the URL has the shape of a known trap half of it: 4, 6, 8, 12.
POINTS_TO_STOP = 48
POINTS_TO_STOP_SHAPE = 24
# After a verdict was ended, the evidence for another one must be this many times as strong.
PATIENCE = 4
# A run without a novel page must be this many times as long as the mean distance between two novel pages: chance
# brings that with e**-5. ln(novel) is added, because there were that many occasions for a long run.
_UNUSUAL = 5.0
# After so many novel pages of a stopped subject the verdict is wrong.
CONTRADICTIONS = 2
# A sample is let through at refusal 64, 256, 1,024, ...
_FIRST_CHECK = 64
# Two pages with one title have the same template when their fingerprints differ in at most so many of 64 bits.
# On honest hosts no page had the title of one of the eight before it. Of pages of endless sites that differ in
# more than three bits, nine in ten had one, with a text within twelve bits.
SAME_TEMPLATE_BITS = 12
TAG = 4
# A family is judged only when so many of its skeletons took part; otherwise the skeleton is judged.
_SCATTERED = 4
_TAGS_KEPT = 8


class Level(StrEnum):
    SKELETON = "skeleton"
    FAMILY = "family"
    UNSEEN = "unseen"
    SECTION = "section"
    LISTING = "listing"
    HOST = "host"
    DOMAIN = "domain"
    PARAMETER = "parameter"


class TrapKind(StrEnum):
    """What a stopped subject looks like, for people to read. The counts decide, not this name."""

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


# A verdict on many skeletons at once needs this many times the points.
_SCATTERED_LEVELS = {Level.FAMILY: 2, Level.UNSEEN: 4}


class Evidence(msgspec.Struct, array_like=True):
    """What is known of a subject. Stored by position: fields are only ever added at the end.

    Of every subject: `fetched` and `novel` pages since its host first repeated itself; the last `run` pages
    brought nothing new, worth `points`. `tags` of the last different texts, `last` keys of the last pages.
    `trap` is the verdict in force: since then `late` novel pages, `refused` URLs, and `passed` samples.
    `pardons` counts verdicts that were ended. `exempt`: the operator undid one. `scattered` has tags of a
    family's skeletons.

    Of a section: `grown` pages brought more of it, `brought` in all, and linked known pages of it `again`;
    `usual` has tags of links that every page has; `entered` pages were linked from elsewhere. `depth_probes`
    has the pages at which probes are now, and how deep; `endless_probes` in a row found no end; none starts
    before `probe_from` pages. `least` is of no use any more.

    Of a listing: `fetched` pages of it `brought` so many entries. `highest` is the highest number of a page that
    it led to, `step` the smallest distance between two numbers. `depth_probes` has the page at which the search
    for its end is now, and after how many leaps; `endless_probes` is the most leaps in a row.

    Of a parameter: `run` and `novel` weigh pairs of pages that differ in it alone, and were alike or not."""

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
    tags: bytes = b""
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
    depth_probes: dict[bytes, int] = msgspec.field(default_factory=dict)
    endless_probes: int = 0
    probe_from: int = 0
    highest: int = 0
    step: int = 0

    def scatter(self, tag: bytes, novelty: PageNovelty) -> None:
        """Note which skeletons of a family took part in the run."""
        if novelty is _NOVEL or novelty is _ENTRY:
            self.scattered = b""
        elif len(self.scattered) < TAG * _SCATTERED and not has_tag(self.scattered, tag):
            self.scattered += tag


def account(seen: Evidence, novelty: PageNovelty, *, size: int, depth: int, key: bytes = b"") -> None:
    seen.fetched += 1
    seen.received += size
    if depth > seen.deepest:
        seen.deepest = depth
    if key:
        seen.last = (key + seen.last)[: 3 * len(key)]
    if novelty is _NOVEL or novelty is _ENTRY:
        credit(seen)
        return
    seen.run += 1
    seen.points += POINTS[novelty]
    seen.soft += novelty is PageNovelty.SOFT_404


def credit(seen: Evidence) -> None:
    """The subject brought a novel page, or led to one."""
    seen.novel += 1
    seen.run = seen.points = 0
    seen.late += bool(seen.trap)


def is_to_be_stopped(seen: Evidence) -> bool:
    """Whether the evidence is enough for a verdict."""
    if seen.trap or seen.exempt:
        return False
    if seen.level in _SCATTERED_LEVELS and len(seen.scattered) < TAG * _SCATTERED:
        return False
    return seen.points >= points_needed(seen) and seen.run >= unusual_run(seen)


def points_needed(seen: Evidence) -> int:
    enough = POINTS_TO_STOP_SHAPE if seen.shaped else POINTS_TO_STOP
    return int(enough * _SCATTERED_LEVELS.get(seen.level, 1) * PATIENCE**seen.pardons)


def unusual_run(seen: Evidence) -> float:
    """How long a run without novel pages must be before it is no chance, by how often they came before."""
    if not seen.novel:
        return 0.0
    usual = max(1.0, (seen.fetched - seen.run) / seen.novel)
    return usual * (_UNUSUAL + math.log(seen.novel)) if usual > 1 else 0.0


def is_contradicted(seen: Evidence) -> bool:
    return bool(seen.trap) and seen.late >= CONTRADICTIONS


def is_to_be_checked(seen: Evidence) -> bool:
    """Whether the next URL is let through as a sample instead of being refused."""
    members = seen.refused + seen.passed
    return members >= _FIRST_CHECK and members & (members - 1) == 0 and members.bit_length() % 2 == 1


def most_at_once(seen: Evidence) -> int:
    """How many of its URLs one lease may take: about as many as would stop it if all were copies."""
    missing = max(points_needed(seen) - seen.points, 0)
    return max(1, missing // POINTS[PageNovelty.COPY])


# -- tags


def has_tag(tags: bytes, tag: bytes) -> bool:
    return tag in tags and any(tags[at : at + TAG] == tag for at in range(0, len(tags), TAG))


def with_tag(tags: bytes, tag: bytes) -> bytes:
    """The last few different ones, the latest first."""
    if tag in tags and has_tag(tags, tag):
        return tags
    return (tag + tags)[: TAG * _TAGS_KEPT]


# -- parameters

# Four copies, or eight pages of the same words.
_SAMPLES = 8
_RARELY = 20


def has_no_effect(seen: Evidence) -> bool:
    """Whether a parameter changes nothing: nearly all pairs of pages that differ in it alone were alike."""
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
