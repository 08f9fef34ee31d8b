"""What went wrong with a call, as RFC 9457 has it: a closed set of kinds, each with its status and title.

A route raises `Problem` with a sentence that says what to do; the application turns it into
`application/problem+json`. Never carries a traceback, a path of this machine or a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

MEDIA = "application/problem+json"


class Trouble(Enum):
    """The kinds: slug (the last part of `type`), status, title."""

    MALFORMED = ("malformed", 400, "The body is not what the media type says")
    UNAUTHENTICATED = ("unauthenticated", 401, "A token is needed")
    FORBIDDEN = ("forbidden", 403, "The token does not allow this")
    FOREIGN_ORIGIN = ("foreign-origin", 403, "Another site's page may not call this")
    NOT_YOUR_TASK = ("not-your-task", 403, "The task was given to another worker")
    NO_SUCH_PATH = ("no-such-path", 404, "There is nothing here")
    UNKNOWN_TASK = ("unknown-task", 404, "This crawl never gave out such a task")
    UNKNOWN_URL = ("unknown-url", 404, "This crawl does not know such a URL")
    UNKNOWN_HOST = ("unknown-host", 404, "This crawl does not know such a host")
    UNKNOWN_TRAP = ("unknown-trap", 404, "This crawl gave no such verdict")
    UNKNOWN_SUBSCRIPTION = ("unknown-subscription", 404, "Nobody subscribed to this")
    UNKNOWN_SETTING = ("unknown-setting", 404, "There is no such setting")
    NO_CLUSTER = ("no-cluster", 404, "This server is not a node of a cluster")
    NOT_ARCHIVED = ("not-archived", 404, "The archive holds no such copy")
    NO_SUCH_METHOD = ("no-such-method", 405, "This cannot be done here")
    CONTRADICTORY = ("contradictory", 409, "The report does not fit its task")
    BAD_SETTING = ("bad-setting", 409, "A setting cannot have this value")
    BAD_URL = ("bad-url", 409, "This is no URL that can be asked for")
    BAD_CONDITION = ("bad-condition", 409, "The archive's tables cannot be asked so")
    NEEDS_RESTART = ("needs-restart", 409, "This cannot change while the crawl runs")
    TOO_LARGE = ("too-large", 413, "The body is too large")
    WRONG_MEDIA = ("wrong-media", 415, "The body has another media type than expected")
    MISDIRECTED = ("misdirected", 421, "Another node of the cluster has this")
    INVALID = ("invalid", 422, "A value is missing, unknown or out of range")
    KEY_REUSED = ("key-reused", 409, "The idempotency key belongs to another request")
    FAULT = ("fault", 500, "A bug; the log has its details")
    UNAVAILABLE = ("unavailable", 503, "The crawl cannot do this now")

    def __init__(self, slug: str, status: int, title: str) -> None:
        self.slug = slug
        self.status = status
        self.title = title

    @property
    def uri(self) -> str:
        return f"urn:skitter:problem:{self.slug}"


class ProblemAnswer(msgspec.Struct, frozen=True, kw_only=True, rename={"kind": "type"}):
    """RFC 9457: `type` names the kind, `detail` says what to do about this one."""

    kind: str
    title: str
    status: int
    detail: str


class Problem(Exception):
    def __init__(self, trouble: Trouble, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.trouble = trouble
        self.detail = detail
        self.headers = dict(headers or {})

    def answer(self) -> ProblemAnswer:
        trouble = self.trouble
        return ProblemAnswer(kind=trouble.uri, title=trouble.title, status=trouble.status, detail=self.detail)
