"""Budgets: how many pages a host, and how many new hosts a domain, may have before they have shown novel pages.

Pure arithmetic, asked when a page is settled. A novel page earns more than it spends, so a site whose pages
differ never reaches its budget, however large it is. Never looks at a URL.
"""

from __future__ import annotations

EARNED_BY_NOVELTY = 8
"""One page in eight that is new keeps a host going."""


def allowance(start: int, novel: int) -> int:
    return start + EARNED_BY_NOVELTY * novel


def is_spent(start: int, pages: int, novel: int) -> bool:
    """`start` 0 means no limit."""
    return start > 0 and pages >= allowance(start, novel)
