"""Whether a PostgreSQL keeps what it says it keeps: asked once, before a log in it is claimed.

Beside `postgres.py`. Without a synchronous standby a promoted replica lacks the last commits that were answered:
behind one network cut 856 requests came closer than a host's delay, and 1,215 pages were archived twice.
"""

from __future__ import annotations

from typing import Any

import psycopg

from skitter.errors import UsageError

_ASKED = """SELECT current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_standby_names')"""


def check_replication(connection: psycopg.Connection[Any], *, is_told: bool) -> None:
    """Raises unless commits survive the loss of the database's machine, or the operator was told (`is_told`)."""
    row = connection.execute(_ASKED).fetchone()
    assert row is not None
    fsync, whole_pages, standbys = row
    if "off" in (fsync, whole_pages):
        raise UsageError(
            "the database of the frontier's log runs with fsync or full_page_writes off, and may be damaged by "
            "a power loss: turn them on"
        )
    if not standbys and not is_told:
        raise UsageError(
            "the database of the frontier's log has no synchronous standby (synchronous_standby_names is "
            "empty): if its machine is lost, commits are lost that were answered. Give it one, or say that you "
            "know with --frontier-log-unreplicated (frontier.log_unreplicated): see docs/cluster.md"
        )
