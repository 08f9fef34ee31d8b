"""The tables of a log in PostgreSQL, and what is asked of them. Statements only.

One database, or one schema, is of one crawl. Each partition has a fence, which is one hot row: it needs room on
its page for its own updates, and no long transaction in its database. A crawl without a cluster is partition 0.
"""

from __future__ import annotations

# One that is there already costs no lock that an append would wait for.
CREATE = (
    "SELECT pg_advisory_xact_lock(7295119)",
    """CREATE TABLE IF NOT EXISTS skitter_fence (
        part int PRIMARY KEY, crawl text NOT NULL, epoch bigint NOT NULL, sequence bigint NOT NULL,
        owner text, place text, heard timestamptz, lapse double precision NOT NULL DEFAULT 15,
        moved boolean NOT NULL DEFAULT false, settings text NOT NULL DEFAULT '') WITH (fillfactor = 20)""",
    """CREATE TABLE IF NOT EXISTS skitter_log (
        part int, sequence bigint, epoch bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
        body bytea NOT NULL, PRIMARY KEY (part, sequence))""",
    # it is packed already
    "ALTER TABLE skitter_log ALTER COLUMN body SET STORAGE EXTERNAL",
    """CREATE TABLE IF NOT EXISTS skitter_checkpoint (
        part int, sequence bigint, epoch bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(),
        files jsonb NOT NULL, PRIMARY KEY (part, sequence))""",
)
BEGIN = """INSERT INTO skitter_fence (part, crawl, epoch, sequence) VALUES (%(part)s, %(crawl)s, 0, 0)
    ON CONFLICT DO NOTHING"""

# No statement of ours is ever ended by a timeout, and none is answered before its standby has it.
SESSION = (
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET client_min_messages = warning",
    """SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')""",
)

_IS_FREE = """(owner IS NULL OR heard IS NULL
    OR clock_timestamp() > heard + lapse * interval '1 second')"""
_SILENT = "extract(epoch FROM clock_timestamp() - heard)::double precision"

LOCK = f"""SELECT crawl, epoch, sequence, owner, place, {_IS_FREE}, {_SILENT}
    FROM skitter_fence WHERE part = %(part)s FOR UPDATE"""
# That it has moved is forgotten with the first commit of the new owner, which ends the leases of the former one.
CLAIM = """UPDATE skitter_fence SET epoch = epoch + 1, moved = moved OR coalesce(owner <> %(ident)s, false),
        owner = %(ident)s, place = %(place)s, lapse = %(lapse)s, heard = clock_timestamp()
    WHERE part = %(part)s RETURNING epoch, moved"""

# The fence and the commit in one statement: a row is inserted only if the fence was ours and moved.
APPEND = """WITH moved AS (
        UPDATE skitter_fence SET sequence = %(sequence)s, moved = false
        WHERE part = %(part)s AND epoch = %(epoch)s AND sequence = %(sequence)s - 1 RETURNING part)
    INSERT INTO skitter_log (part, sequence, epoch, body)
    SELECT part, %(sequence)s, %(epoch)s, %(body)s FROM moved"""
HEARTBEAT = """UPDATE skitter_fence SET heard = clock_timestamp() WHERE part = %(part)s AND epoch = %(epoch)s
    RETURNING sequence"""
RELEASE = "UPDATE skitter_fence SET heard = NULL WHERE part = %(part)s AND epoch = %(epoch)s"
KEEP_SETTINGS = "UPDATE skitter_fence SET settings = %(settings)s WHERE part = %(part)s AND epoch = %(epoch)s"

STANDING = f"""SELECT crawl, epoch, sequence,
        coalesce((SELECT min(sequence) FROM skitter_log WHERE part = %(part)s), sequence + 1),
        owner, place, {_SILENT}, {_IS_FREE}, settings
    FROM skitter_fence WHERE part = %(part)s"""
READ = """SELECT sequence, epoch, body FROM skitter_log WHERE part = %(part)s AND sequence >= %(start)s
    ORDER BY sequence LIMIT %(most)s"""

_IF_OURS = "EXISTS (SELECT FROM skitter_fence WHERE part = %(part)s AND epoch = %(epoch)s FOR UPDATE)"
ADD_CHECKPOINT = f"""INSERT INTO skitter_checkpoint (part, sequence, epoch, files)
    SELECT %(part)s, %(sequence)s, %(epoch)s, %(files)s::jsonb WHERE {_IF_OURS}
    ON CONFLICT (part, sequence) DO UPDATE SET files = excluded.files, epoch = excluded.epoch, at = now()"""
CHECKPOINTS = (
    "SELECT sequence, epoch, files FROM skitter_checkpoint WHERE part = %(part)s ORDER BY sequence DESC"
)
DROP_CHECKPOINT = (
    f"DELETE FROM skitter_checkpoint WHERE part = %(part)s AND sequence = %(sequence)s AND {_IF_OURS}"
)
# Without the fence's lock, which appends would wait for: what a kept checkpoint has may go, whoever says so.
TRIM = """DELETE FROM skitter_log WHERE part = %(part)s AND sequence <= %(sequence)s
    AND EXISTS (SELECT FROM skitter_fence WHERE part = %(part)s AND epoch = %(epoch)s)"""
