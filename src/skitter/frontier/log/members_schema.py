"""The tables of a cluster in PostgreSQL, beside those of its logs, and what is asked of them. Statements only.

`skitter_crawl` has one row: what all nodes share. `skitter_node` has a row for each node that was heard of.
`skitter_grant` says how many pages of the crawl's limit each partition may fetch. Who owns a partition is said by
its fence alone (`postgres_schema.py`).
"""

from __future__ import annotations

CREATE = (
    """CREATE TABLE IF NOT EXISTS skitter_crawl (
        one int PRIMARY KEY DEFAULT 1 CHECK (one = 1), crawl text NOT NULL, parts int NOT NULL,
        key bytea NOT NULL, version text NOT NULL, suffixes text NOT NULL,
        settings text NOT NULL, settings_version bigint NOT NULL DEFAULT 1)""",
    """CREATE TABLE IF NOT EXISTS skitter_node (
        ident text PRIMARY KEY, url text NOT NULL, place text NOT NULL, version text NOT NULL,
        heard timestamptz NOT NULL, lapse double precision NOT NULL, draining boolean NOT NULL DEFAULT false)
        WITH (fillfactor = 20)""",
    """CREATE TABLE IF NOT EXISTS skitter_grant (part int PRIMARY KEY, pages bigint NOT NULL)""",
)
BEGIN = """INSERT INTO skitter_crawl (crawl, parts, key, version, suffixes, settings)
    VALUES (%(crawl)s, %(parts)s, %(key)s, %(version)s, %(suffixes)s, %(settings)s)"""
BEGIN_PARTS = """INSERT INTO skitter_fence (part, crawl, epoch, sequence, settings)
    SELECT part, %(crawl)s, 0, 0, '' FROM generate_series(0, %(parts)s - 1) AS part"""
CRAWL = "SELECT crawl, parts, key, version, suffixes, settings, settings_version FROM skitter_crawl"
CHANGE_SETTINGS = """UPDATE skitter_crawl SET settings = %(settings)s, settings_version = settings_version + 1
    RETURNING settings_version"""

_IS_LIVE = "clock_timestamp() <= heard + lapse * interval '1 second'"
_SILENT = "extract(epoch FROM clock_timestamp() - heard)::double precision"

ANNOUNCE = """INSERT INTO skitter_node (ident, url, place, version, heard, lapse)
    VALUES (%(ident)s, %(url)s, %(place)s, %(version)s, clock_timestamp(), %(lapse)s)
    ON CONFLICT (ident) DO UPDATE SET url = excluded.url, place = excluded.place, version = excluded.version,
        heard = excluded.heard, lapse = excluded.lapse, draining = false"""
BEAT = """UPDATE skitter_node SET heard = clock_timestamp() WHERE ident = %(ident)s
    RETURNING draining, (SELECT settings_version FROM skitter_crawl)"""
# One statement for all partitions of a node: those that it returns are still its own.
BEAT_PARTS = """UPDATE skitter_fence SET heard = clock_timestamp()
    FROM unnest(%(parts)s::int[], %(epochs)s::bigint[]) AS ours(part, epoch)
    WHERE skitter_fence.part = ours.part AND skitter_fence.epoch = ours.epoch RETURNING skitter_fence.part"""
NODES = f"""SELECT ident, url, place, version, {_SILENT}, {_IS_LIVE}, draining FROM skitter_node
    ORDER BY ident"""
DRAIN = "UPDATE skitter_node SET draining = true WHERE ident = %(name)s OR url = %(name)s OR place = %(name)s"
LEAVE = "DELETE FROM skitter_node WHERE ident = %(ident)s"
FORGET = "DELETE FROM skitter_node WHERE clock_timestamp() > heard + interval '1 day'"

PARTS = """SELECT fence.part, fence.epoch, fence.sequence, coalesce(fence.owner, ''), coalesce(node.url, ''),
        extract(epoch FROM clock_timestamp() - fence.heard)::double precision,
        fence.owner IS NULL OR fence.heard IS NULL
            OR clock_timestamp() > fence.heard + fence.lapse * interval '1 second',
        coalesce((SELECT max(sequence) FROM skitter_checkpoint WHERE part = fence.part), 0)
    FROM skitter_fence AS fence LEFT JOIN skitter_node AS node ON node.ident = fence.owner
    ORDER BY fence.part"""
# A free partition, unless somebody else is claiming it at this very moment.
MAY_CLAIM = """SELECT part FROM skitter_fence WHERE part = %(part)s AND (owner IS NULL OR heard IS NULL
        OR owner = %(ident)s OR clock_timestamp() > heard + lapse * interval '1 second')
    FOR UPDATE SKIP LOCKED"""

GRANTED = "SELECT part, pages FROM skitter_grant"
# Grants are taken one after the other: their sum is never above the limit.
LOCK_GRANTS = "LOCK TABLE skitter_grant IN EXCLUSIVE MODE"
GRANT = """INSERT INTO skitter_grant (part, pages)
    VALUES (%(part)s, least(%(block)s,
        greatest(0, %(limit)s - (SELECT coalesce(sum(pages), 0) FROM skitter_grant))))
    ON CONFLICT (part) DO UPDATE SET pages = skitter_grant.pages + excluded.pages RETURNING pages"""
GIVE_BACK = """UPDATE skitter_grant SET pages = greatest(%(used)s, 0) WHERE part = %(part)s AND pages > %(used)s
    RETURNING pages"""
