"""What another look at a URL showed, compared with the answer that it had before.

Asked by `settling.py` before the row takes the new answer. Never changes anything.
"""

from __future__ import annotations

from skitter.frontier.base import LookedAgain
from skitter.frontier.engine.answers.ledger import is_unchanged
from skitter.frontier.rows import UrlRow
from skitter.model import Failed, Fetched, NotModified, Redirected, Result

_GONE = (404, 410)


def looked_again(row: UrlRow, result: Result) -> LookedAgain | None:
    """None for a URL that had no answer yet: one that failed, or that a redirect to itself leads on."""
    answer = row.answer
    # a redirect that is being followed under its own key still says where it leads
    was_redirect = 300 <= answer.status < 400 and not answer.failure and not row.rule
    if not answer.body_status and not was_redirect:
        return None
    match result:
        case NotModified():
            return LookedAgain.UNCHANGED
        case Redirected():
            return LookedAgain.REDIRECTED
        case Failed():
            return LookedAgain.FAILED
        case Fetched() if result.status in _GONE:
            return LookedAgain.GONE
        case _:
            return LookedAgain.UNCHANGED if is_unchanged(row, result) else LookedAgain.CHANGED
