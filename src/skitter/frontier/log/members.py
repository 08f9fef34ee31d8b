"""Who is in a cluster: its nodes, which of them has which partition, and what all of them share.

Beside the log, in the same database, and by its clock alone. That a node is silent only says that others may try
to claim its partitions; that it can commit nothing afterwards is the fence's doing (`postgres.py`).
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import publicsuffixlist

from skitter import __version__
from skitter.errors import UsageError
from skitter.frontier.log import members_schema as sql
from skitter.frontier.log import postgres_schema
from skitter.frontier.log.postgres import Link
from skitter.frontier.log.replication import check_replication

_Connection = psycopg.Connection[Any]
_KEY_BYTES = 32
MOST_PARTS = 4_096


class ClusterCrawl(msgspec.Struct, frozen=True, kw_only=True):
    """What all nodes share. `key` seals leases and lets nodes know each other; `suffixes` is the fingerprint of
    the list of public suffixes by which hosts were given to partitions."""

    crawl: str
    parts: int
    key: bytes
    version: str
    suffixes: str
    settings: str
    settings_version: int


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A node, as the database knows it."""

    ident: str
    url: str
    place: str
    version: str
    silent: float
    is_live: bool
    is_draining: bool


class PartRow(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: who has it, and how far its log and its last checkpoint are."""

    part: int
    epoch: int
    sequence: int
    owner: str
    url: str
    silent: float | None
    is_free: bool
    checkpoint: int


class Beat(msgspec.Struct, frozen=True):
    """What a node hears when it says that it is alive: which partitions are still its own, whether it is to
    drain, and which version the settings have."""

    ours: frozenset[int]
    is_draining: bool
    settings_version: int


class Members:
    """Asked by one thread at a time; `link` may be shared with logs."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def begin(self, parts: int, settings: str, *, is_unreplicated: bool) -> ClusterCrawl:
        """Make a cluster in an empty database."""
        if not 1 <= parts <= MOST_PARTS:
            raise UsageError(f"a cluster has 1 to {MOST_PARTS:,} partitions, not {parts}")
        values = {
            "crawl": uuid.uuid4().hex,
            "parts": parts,
            "key": secrets.token_bytes(_KEY_BYTES),
            "version": __version__,
            "suffixes": suffixes_in_use(),
            "settings": settings,
        }

        def act(connection: _Connection) -> None:
            check_replication(connection, is_told=is_unreplicated)
            with connection.transaction():
                for statement in (*postgres_schema.CREATE, *sql.CREATE):
                    connection.execute(statement)
                if connection.execute("SELECT FROM skitter_fence LIMIT 1").fetchone() is not None:
                    raise UsageError(
                        "this database holds a crawl already: join it with skitter serve --cluster, or name "
                        "another database (or another schema, with options=-csearch_path%3DNAME)"
                    )
                connection.execute(sql.BEGIN, values)
                connection.execute(sql.BEGIN_PARTS, values)

        self._link.lasting(act, tries=3)
        crawl = self.crawl()
        assert crawl is not None
        return crawl

    def crawl(self) -> ClusterCrawl | None:
        """None where nobody has made a cluster."""

        def ask(connection: _Connection) -> tuple[Any, ...] | None:
            if connection.execute("SELECT to_regclass('skitter_crawl')").fetchone() == (None,):
                return None
            return connection.execute(sql.CRAWL).fetchone()

        row = self._link.lasting(ask, tries=3)
        if row is None:
            return None
        crawl, parts, key, version, suffixes, settings, settings_version = row
        return ClusterCrawl(
            crawl=crawl,
            parts=parts,
            key=bytes(key),
            version=version,
            suffixes=suffixes,
            settings=settings,
            settings_version=settings_version,
        )

    def check(self, crawl: ClusterCrawl, *, is_unreplicated: bool) -> None:
        """Whether this installation may be a node of it, and the database keeps what it says."""
        if crawl.suffixes != suffixes_in_use():
            raise UsageError(
                "this installation has another list of public suffixes than the one that hosts were given to "
                "partitions by: install the same version of publicsuffixlist as where the cluster was made"
            )
        self._link.lasting(lambda found: check_replication(found, is_told=is_unreplicated), tries=3)

    def change_settings(self, settings: str) -> int:
        """The new version: nodes hear of it with their next beat."""
        row = self._link.lasting(
            lambda found: found.execute(sql.CHANGE_SETTINGS, {"settings": settings}).fetchone(), tries=3
        )
        assert row is not None
        return int(row[0])

    # -- nodes

    def announce(self, ident: str, url: str, place: str, lapse: float) -> None:
        values = {"ident": ident, "url": url, "place": place, "version": __version__, "lapse": lapse}

        def act(connection: _Connection) -> None:
            connection.execute(sql.FORGET)
            connection.execute(sql.ANNOUNCE, values)

        self._link.lasting(act, tries=3)

    def beat(self, ident: str, epochs: Mapping[int, int]) -> Beat:
        """The node is alive, and so are these partitions under these epochs."""

        def act(connection: _Connection) -> Beat:
            row = connection.execute(sql.BEAT, {"ident": ident}).fetchone()
            values = {"parts": [*epochs], "epochs": [*epochs.values()]}
            ours = connection.execute(sql.BEAT_PARTS, values).fetchall() if epochs else []
            is_draining, version = row or (False, 0)
            return Beat(frozenset(part for (part,) in ours), is_draining, version)

        return self._link.lasting(act, tries=1)

    def nodes(self) -> list[Member]:
        rows = self._link.lasting(lambda found: found.execute(sql.NODES).fetchall(), tries=2)
        return [
            Member(
                ident=ident,
                url=url,
                place=place,
                version=version,
                silent=silent,
                is_live=is_live,
                is_draining=is_draining,
            )
            for ident, url, place, version, silent, is_live, is_draining in rows
        ]

    def drain(self, name: str) -> bool:
        """Whether there is such a node, by its name, URL or place. It hands its partitions over and ends."""
        done = self._link.lasting(lambda found: found.execute(sql.DRAIN, {"name": name}), tries=3)
        return done.rowcount > 0

    def leave(self, ident: str) -> None:
        self._link.lasting(lambda found: found.execute(sql.LEAVE, {"ident": ident}), tries=2)

    # -- partitions

    def parts(self) -> list[PartRow]:
        rows = self._link.lasting(lambda found: found.execute(sql.PARTS).fetchall(), tries=2)
        return [
            PartRow(
                part=part,
                epoch=epoch,
                sequence=sequence,
                owner=owner,
                url=url,
                silent=silent,
                is_free=is_free,
                checkpoint=checkpoint,
            )
            for part, epoch, sequence, owner, url, silent, is_free, checkpoint in rows
        ]

    def may_claim(self, part: int, ident: str) -> bool:
        """Whether it is worth trying: nobody has it, and nobody else is claiming it now."""
        values = {"part": part, "ident": ident}
        found = self._link.lasting(lambda asked: asked.execute(sql.MAY_CLAIM, values).fetchone(), tries=2)
        return found is not None

    # -- grants

    def granted(self) -> dict[int, int]:
        return dict(self._link.lasting(lambda found: found.execute(sql.GRANTED).fetchall(), tries=2))

    def grant(self, part: int, block: int, limit: int) -> int:
        """How many pages of the crawl's limit the partition may fetch in all, with one block more if there is one
        left."""
        values = {"part": part, "block": block, "limit": limit}

        def act(connection: _Connection) -> int:
            with connection.transaction():
                connection.execute(sql.LOCK_GRANTS)
                row = connection.execute(sql.GRANT, values).fetchone()
            assert row is not None
            return int(row[0])

        return self._link.lasting(act, tries=2)

    def give_back(self, part: int, used: int) -> None:
        """What the partition was granted and has no use for is for the others."""
        values = {"part": part, "used": used}
        self._link.lasting(lambda found: found.execute(sql.GIVE_BACK, values), tries=2)


def suffixes_in_use() -> str:
    """The fingerprint of this installation's list of public suffixes."""
    return blake2b(Path(publicsuffixlist.PSLFILE).read_bytes(), digest_size=8).hexdigest()
