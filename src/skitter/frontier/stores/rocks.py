"""RocksDB behind the few operations the frontier needs: get, seek, and one atomic batch.

The only module that knows rocksdict. Its exceptions become `StoreFailed`, `DiskFull` or `FolderInUse` here.
The write-ahead log makes every batch survive the death of the process; `sync` makes it survive a power loss.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    Checkpoint,
    CompactOptions,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    SliceTransform,
    WriteBatch,
    WriteBufferManager,
)

from skitter.errors import DiskFull, FolderInUse, SkitterError, StoreFailed
from skitter.faultpoints import Point, reach
from skitter.frontier.stores.base import Changes
from skitter.frontier.stores.rocks_log_tail import is_readable, mend
from skitter.frontier.tables.layout import TABLES
from skitter.frontier.tables.memory_plan import MemoryPlan

# Each flush is merged into the whole table in the end: compaction took three times as much CPU with 16 MB as
# with 32. The other limit is half of all memtables, which by default is less.
_LARGEST_MEMTABLE = 64 << 20
# Flushed files that are merged at once. With 8 instead of 4 RocksDB's threads took a third less CPU; reads took
# no longer, because filters keep them from most files.
_MERGED_AT_ONCE = 8
# Sorted runs of the two largest tables. Universal compaction merges runs of one size with each other: at twenty
# million URLs each row was rewritten once, with levels twice or more.
_RUNS_BY_HOST = 16
# The log that is replayed after a crash, at some 100 MB/s: the first lease must be granted within 5 s.
_LONGEST_LOG = 160 << 20
# One SST per open file; more would only cost descriptors that connections need.
_OPEN_FILES = 512
_LOG_FILES = 3
# Memtables that are full and not flushed yet; on a full disk they stay so. Polled every `_LOOK` seconds, for 1 s.
_UNWRITTEN = "rocksdb.num-immutable-mem-table"
_LOOK, _MOST_LOOKS = 0.002, 500
# Tables whose keys begin with the host's id: scans stay within one host.
_BY_HOST = frozenset(("urls", "queue"))
_HOST = 8
# Tables that are read by key. The others are only scanned: Bloom filters would take up the block cache for
# nothing.
_LOOKED_UP = frozenset(
    ("urls", "hosts", "leases", "robots", "copies", "near", "anchors", "meta", "skeletons", "traps")
)


class RocksChanges:
    """Puts and deletes that become true together."""

    def __init__(self, store: RocksStore) -> None:
        self._handles = store.handles
        self.native = WriteBatch(raw_mode=True)
        self._put = self.native.put

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._put(key, value, self._handles[table])

    def put_all(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        put, handle = self._put, self._handles[table]
        for key, value in rows:
            put(key, value, handle)

    def delete(self, table: str, key: bytes) -> None:
        self.native.delete(key, self._handles[table])

    def is_empty(self) -> bool:
        return self.native.is_empty()

    def delete_range(self, table: str, start: bytes, end: bytes) -> None:
        self.native.delete_range(start, end, self._handles[table])


class SharedMemory:
    """One block cache and one bound for all memtables, for the stores of many partitions in one process."""

    def __init__(self, memory: MemoryPlan) -> None:
        self.cache = Cache.new_hyper_clock_cache(memory.block_cache, 0)
        self.memtables = WriteBufferManager(memory.memtables, False)


class RocksStore:
    keeps_every_commit = has_moved = False

    def __init__(
        self,
        folder: Path,
        memory: MemoryPlan,
        *,
        read_only: bool = False,
        shared: SharedMemory | None = None,
    ) -> None:
        """`read_only` looks at a crawl that another process may be writing, as it is now."""
        _check_log_tail(folder, read_only)
        self.read_only = read_only
        self._scratch = tempfile.TemporaryDirectory(prefix="skitter-") if read_only else None
        access = AccessType.secondary(self._scratch.name) if self._scratch else AccessType.read_write()
        cache = shared.cache if shared else Cache.new_hyper_clock_cache(memory.block_cache, 0)
        try:
            tables = {
                name: _options(
                    cache, memory.memtables, looked_up=name in _LOOKED_UP, by_host=name in _BY_HOST
                )
                for name in TABLES
            }
            whole = _options(cache, memory.memtables)
            if shared is not None:
                for options in (whole, *tables.values()):
                    options.set_write_buffer_manager(shared.memtables)
            self._db = Rdict(str(folder), whole, tables, access)
        except Exception as error:
            raise _translate(error, folder) from error
        self.folder = folder
        self.handles = {name: self._db.get_column_family_handle(name) for name in TABLES}
        self._tables = {name: self._db.get_column_family(name) for name in TABLES}

    def get(self, table: str, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._tables[table].get(key)
        except Exception as error:
            raise _translate(error, self.folder) from error
        return value

    def scan(self, table: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        # rocksdict does not keep the bound alive: an iterator that outlives `bounds` runs past it, into the
        # next host's queue. So `bounds` stays in this frame, and the end is checked here as well.
        bounds = _bounds(start, end)
        for key, value in self._items(table, start, bounds):
            if key >= end:
                return
            yield key, value

    def _items(self, table: str, start: bytes, bounds: ReadOptions) -> Iterator[tuple[bytes, bytes]]:
        try:
            return self._tables[table].items(from_key=start, read_opt=bounds)  # type: ignore[return-value]
        except Exception as error:
            raise _translate(error, self.folder) from error

    def first(self, table: str, start: bytes, end: bytes, most: int) -> list[tuple[bytes, bytes]]:
        bounds = _bounds(start, end)
        entries = self._items(table, start, bounds)
        return list(itertools.islice(entries, most))

    def first_keys(self, table: str, start: bytes, end: bytes, most: int) -> list[bytes]:
        bounds = _bounds(start, end)
        bounds.fill_cache(False)  # type: ignore[call-arg]  # its stub lacks the argument
        try:
            keys = self._tables[table].keys(from_key=start, read_opt=bounds)
            return list(itertools.islice(keys, most))  # type: ignore[arg-type]
        except Exception as error:
            raise _translate(error, self.folder) from error

    def changes(self) -> RocksChanges:
        return RocksChanges(self)

    def commit(self, changes: Changes) -> None:
        assert isinstance(changes, RocksChanges)
        reach(Point.BEFORE_COMMIT)
        try:
            self._db.write(changes.native)
        except Exception as error:
            raise _translate(error, self.folder) from error
        reach(Point.AFTER_COMMIT)

    def commit_soon(self, changes: Changes) -> None:
        self.commit(changes)

    def checkpoint(self, folder: Path) -> None:
        """All that is committed, as a folder of its own that must not exist yet: hard links, and no copies."""
        self._flush()
        try:
            Checkpoint(self._db).create_checkpoint(str(folder))
        except Exception as error:
            raise _translate(error, folder) from error

    def sync(self) -> None:
        try:
            self._db.flush_wal(True)
        except Exception as error:
            raise _translate(error, self.folder) from error

    def compact(self) -> None:
        """Rewrites every table down to its last level, where deletions are dropped with what they deleted. Two
        flushes: the log that holds what was deleted goes when a later one was begun."""
        force = CompactOptions()
        force.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        try:
            for table in self._tables.values():
                table.flush(True)
                table.compact_range(None, None, force)
            self._db.flush_wal(True)
        except Exception as error:
            raise _translate(error, self.folder) from error

    def close(self) -> None:
        if not self.read_only:
            self._flush()
        self._tables.clear()
        self.handles.clear()
        try:
            self._db.close()
        except Exception as error:
            raise _translate(error, self.folder) from error
        finally:
            if self._scratch:
                self._scratch.cleanup()

    def _flush(self) -> None:
        """Let RocksDB's own threads flush the memtables, and wait. rocksdict's `close` (or a checkpoint) would
        do it while holding the GIL (0.22 s for 120,000 URLs), and the archive finishes its last segment at the
        same time. An error here comes again in `close`, and is raised there."""
        tables = [*self._tables.values()]
        with contextlib.suppress(Exception):
            for table in tables:
                table.flush(False)
            for _ in range(_MOST_LOOKS):
                if not any(table.property_int_value(_UNWRITTEN) for table in tables):
                    return
                time.sleep(_LOOK)


def _bounds(start: bytes, end: bytes) -> ReadOptions:
    bounds = ReadOptions()
    bounds.set_iterate_upper_bound(end)
    if start[:_HOST] == end[:_HOST]:
        bounds.set_prefix_same_as_start(True)
    else:
        bounds.set_total_order_seek(True)
    return bounds


def _check_log_tail(folder: Path, read_only: bool) -> None:
    try:
        readable = is_readable(folder) if read_only else mend(folder)
    except OSError as error:
        raise _translate(error, folder) from error
    if not readable:
        raise StoreFailed(
            f"the frontier in {folder} ends in bytes that are not its own (power loss?): go on with the crawl, "
            f"which takes them away"
        )


def _options(cache: Cache, memtables: int, *, looked_up: bool = False, by_host: bool = False) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(min(_LARGEST_MEMTABLE, memtables // 2))
    options.set_db_write_buffer_size(memtables)
    options.set_max_open_files(_OPEN_FILES)
    options.set_keep_log_file_num(_LOG_FILES)
    options.set_max_total_wal_size(min(_LONGEST_LOG, 2 * memtables))
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_level_zero_file_num_compaction_trigger(_RUNS_BY_HOST if by_host else _MERGED_AT_ONCE)
    if by_host:
        options.set_compaction_style(DBCompactionStyle.universal())
        # writers are slowed down only when compaction does not keep up at all
        options.set_level_zero_slowdown_writes_trigger(2 * _RUNS_BY_HOST)
        options.set_level_zero_stop_writes_trigger(3 * _RUNS_BY_HOST)
    if not by_host:
        # Indexes by time are consumed at their head: files that are mostly tombstones are compacted early. Not
        # the queues: their tombstones are everywhere, and each host's low-water mark skips its own.
        options.add_compact_on_deletion_collector_factory(1024, 512, 0.5)
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    if looked_up or by_host:
        table.set_bloom_filter(10, False)
    if by_host:
        # A host's few rows lie in one file or two: the filters know which, and a scan leaves the others alone.
        options.set_prefix_extractor(SliceTransform.create_fixed_prefix(_HOST))
        options.set_memtable_prefix_bloom_ratio(0.02)
    # Unpartitioned, the index or filter of a 64 MB file takes a megabyte of a cache whose shards hold 1.6: they
    # evicted each other at 10 million URLs. With partitions only the blocks in use are cached.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_pin_top_level_index_and_filter(True)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options.set_block_based_table_factory(table)
    return options


def _translate(error: Exception, folder: Path) -> SkitterError:
    text = str(error)
    if "No space left" in text or "Disk quota exceeded" in text:
        return DiskFull(
            f"no room left on the disk of {folder}: make room, then run the same command again; nothing is lost"
        )
    if "LOCK" in text and ("lock" in text or "Resource temporarily" in text):
        return FolderInUse(f"{folder} is in use by another process: stop it first, or use another folder")
    if "Permission denied" in text or "Read-only file system" in text:
        return StoreFailed(f"cannot write to {folder}: check its owner and permissions ({text})")
    if "Corruption" in text:
        return StoreFailed(
            f"the frontier in {folder} is damaged ({' '.join(text.split())}): put back a copy of that folder, or "
            "begin a new crawl; what is archived can be read as before"
        )
    return StoreFailed(f"the frontier in {folder} failed: {' '.join(text.split())}")
