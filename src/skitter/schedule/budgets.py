"""How many pages a host may have, and a domain how many new hosts, before they have shown that they are worth it.

Pure arithmetic, asked when a page is settled. What is novel earns several times what it spends, so a site whose
pages are different never comes near its budget, however large it is. Never looks at a URL.
"""

from __future__ import annotations

EARNED_BY_NOVELTY = 8
"""One page in eight that is new keeps a host going."""


def allowance(start: int, novel: int) -> int:
    return start + EARNED_BY_NOVELTY * novel


def is_spent(start: int, pages: int, novel: int) -> bool:
    """`start` 0 means no limit."""
    return start > 0 and pages >= allowance(start, novel)
