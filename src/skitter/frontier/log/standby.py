"""A folder that follows a crawl's log while another machine works on it, so that taking over takes seconds.

Reads the log and writes its own tables; never claims anything. Whoever takes over opens the folder as any other.
"""

from __future__ import annotations

from pathlib import Path

from skitter.errors import LogFailed
from skitter.frontier.log.base import Log, Standing
from skitter.frontier.log.owning import Fetch, OpenTables, follow
from skitter.frontier.log.position import position_of


class Standby:
    """`behind` is how many commits the last step had to replay."""

    def __init__(self, folder: Path, open_tables: OpenTables, log: Log, fetch: Fetch | None) -> None:
        self._folder = folder
        self._open_tables = open_tables
        self._log = log
        self._fetch = fetch
        self._tables = open_tables()
        self.behind = 0

    def step(self) -> Standing:
        """Replay what was appended since; returns what the log said before that."""
        standing = self._log.standing()
        if standing is None:
            raise LogFailed(
                "no crawl has its log in this database: check frontier.log on the machine that crawls"
            )
        before = position_of(self._tables)
        at = before.sequence if before else 0
        self.behind = standing.sequence - at
        if self.behind:
            self._tables = follow(
                self._folder,
                self._tables,
                self._open_tables,
                self._log,
                standing.crawl,
                standing.sequence,
                self._fetch,
            )
        return standing

    def close(self) -> None:
        self._tables.close()
        self._log.close()
