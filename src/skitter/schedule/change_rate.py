"""How often a page changes: what each visit teaches, and how sure we are.

A page's rate of changes a day has a Gamma distribution. Its shape and scale are what the page itself has shown
(`changes` in `days`) on top of a prior that pages of one pattern share, shrunk towards their host and then
towards all pages. Asked when a visit is settled. Pure arithmetic; every formula here is made of operators alone,
so that it works for arrays as well (`bench/freshness.py`).
"""

from __future__ import annotations

FIRST_RATE = 1 / 30
"""Changes a day that are assumed where nothing is known."""

# How much a prior counts beside what a page has shown: half a change.
_SHAPE = 0.5
# How many changes a pattern must have shown to count as much as its host does, and a host beside all pages.
_STRENGTH = 3.0
# All pages together learn from half a change on: nothing is known of a web beforehand, and a young crawl that
# holds to its first guess says for a day that its copies are fresh.
_STRENGTH_OF_ALL = 0.5
# Old evidence fades with each visit: pages do not keep their habits for ever.
_FADE = 0.98
_E = 2.718281828459045
# Keeps 0/0 away; a millionth of a change.
_TINY = 1e-6


def prior_rate(changes: float, days: float, parent: float) -> float:
    """The rate that a new page of a group is expected to have. The group has shown so many changes in so many
    days of watching; `parent` is the rate of the group around it."""
    return (changes + _STRENGTH) / (days + _STRENGTH / parent)


def rate_of_all(changes: float, days: float) -> float:
    """The rate of all pages together, which have shown so much."""
    return (changes + _STRENGTH_OF_ALL) / (days + _STRENGTH_OF_ALL / FIRST_RATE)


def error_of_all(changes: float, days: float) -> float:
    """How far the rate of all pages may be off (a standard error), as if one change in a day came before."""
    error: float = (changes + 1.0) ** 0.5 / (days + 1.0)
    return error


def rate_of(changes: float, days: float, prior: float) -> float:
    """The expected changes a day of a page that has shown so much itself."""
    return (_SHAPE + changes) / (_SHAPE / prior + days)


def learn(
    changes: float, watched: float, rate: float, days: float, changed: float
) -> tuple[float, float, float]:
    """What a page has shown (changes, days of watching) after one more visit, `days` after the one before; and
    how many changes its groups count. `changed` is 1 or 0.

    A change says only that there was at least one: x/(1 - e^-x) are expected then. After a wait in which many
    were expected anyway, that teaches little: its weight is x/(e^x - 1). A visit that found no change counts
    whole.
    """
    x = rate * days + _TINY
    still: float = _E**-x
    expected = x / (1 - still)
    weight = expected * still
    return (
        _FADE * changes + changed * weight * expected,
        _FADE * watched + days * (1 - changed + changed * weight),
        changed * expected,
    )


def learn_dated(
    changes: float, watched: float, rate: float, days: float, unchanged: float
) -> tuple[float, float, float]:
    """The same, where the page says when it changed last: it has been `unchanged` for so many days. One change is
    certain, and those days count whole; what was before it says nothing of the page."""
    return (
        _FADE * changes + 1.0,
        _FADE * watched + unchanged,
        1.0 + rate * max(0.0, days - unchanged),
    )


def chance_of_change(rate: float, days: float) -> float:
    still: float = _E ** -(rate * days)
    return 1 - still


def expected_freshness(changes: float, days: float, prior: float, age: float) -> float:
    """The chance that a copy of this age is still what the page says: the Gamma distribution's own mean of
    e^-(rate age), which is more than that of the expected rate."""
    scale = _SHAPE / prior + days
    fresh: float = (scale / (scale + age)) ** (_SHAPE + changes)
    return fresh
