"""A worker of its own: joins a server, and fetches for it until it is told to stop.

What `skitter worker` runs, on another machine or as a process that a crawl started. Stateless: what it holds is
in memory and can be fetched again. A stop signal drains it: what is in flight ends and is delivered, the rest is
given back. A second one ends it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import socket
from collections.abc import Callable, Collection
from math import inf
from pathlib import Path

from skitter.clock import Clock, SystemClock
from skitter.errors import SkitterError
from skitter.fetch_stack import GC_THRESHOLDS, open_fetch_stack, raise_descriptor_limit
from skitter.log import Log
from skitter.runtime.parent_death import end_with_parent
from skitter.runtime.stop_signals import drain_when, on_stop_signal
from skitter.runtime.worker_guard import Allowed, guarded, warning_of, words_of
from skitter.schedule.regions import name_in
from skitter.settings import Settings
from skitter.worker.loop import Loop
from skitter.worker.remote.cluster_work_source import ClusterWorkSource, open_nodes
from skitter.worker.remote.http_link import Away, HttpLink
from skitter.worker.remote.remote_work_source import RemoteWorkSource
from skitter.worker.remote.server_notes import ServerNotes

_RETRY = 1.0
# Of a process that a crawl started: the crawl is being opened meanwhile.
_RETRY_AS_CHILD = 0.02
_LONGEST_FAREWELL = 30.0
_LOOK = 1.0
_INTERRUPTED = 130


async def run_worker(
    server: str,
    token: str,
    log_file: Path | None,
    *,
    name: str,
    region: str = "",
    is_child: bool,
    note: Callable[[str], None],
    log_json: bool = False,
    allowed: Collection[Allowed] = (),
    give_up_after: float = inf,
) -> None:
    """`is_child` is of a crawl's own process, and ends with the crawl. `note` is told when the worker has joined
    its server, lost it and found it again, and while it waits; the log hears of the changes. `allowed` is what
    the server may loosen. A server that is silent for longer than `give_up_after` seconds is given up."""
    if is_child:
        end_with_parent()
    clock = SystemClock()
    link = HttpLink(server, token)
    links = [link]
    name = name or name_in(region, f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")
    log = Log(log_file or Path(os.devnull), clock, echo=log_json)
    source = RemoteWorkSource(link, clock, name)
    notes = source.notes = ServerNotes(server, name, log, note, clock)
    stopped = asyncio.Event()
    on_stop_signal(lambda _: _stop(stopped))
    if warning := warning_of(server):
        notes.warn(warning)
    watching = asyncio.create_task(_watch(notes, stopped, give_up_after))
    try:
        settings = await _join(source, stopped, _RETRY_AS_CHILD if is_child else _RETRY)
        if settings is not None and not is_child:
            settings = _guard(source, settings, allowed)
        if settings is not None:
            work_source: RemoteWorkSource | ClusterWorkSource = source
            if source.parts:
                open_node = open_nodes(
                    token, clock, name, source.notes, links, verifies_tls=source.verifies_tls
                )
                work_source = ClusterWorkSource(source, server, open_node, clock)
                work_source.take_settings(settings)
            await _work(work_source, raise_descriptor_limit(settings), clock, name, stopped)
        if notes.silent_for >= give_up_after:
            raise SkitterError(f"{server} did not answer for {give_up_after:g} s: is a crawl served there?")
    finally:
        watching.cancel()
        log.close()
        for each in links:
            await each.close()


async def _watch(notes: ServerNotes, stopped: asyncio.Event, give_up_after: float) -> None:
    """Says that the worker still waits for its server, and stops it when that takes too long."""
    while notes.silent_for < give_up_after:
        await asyncio.sleep(min(_LOOK, give_up_after / 2))
        notes.remind()
    stopped.set()


def _guard(source: RemoteWorkSource, settings: Settings, allowed: Collection[Allowed]) -> Settings:
    """The worker's own guard, which no server loosens."""
    settings, kept = guarded(settings, allowed)
    source.verifies_tls = Allowed.TLS not in allowed
    if kept and source.notes is not None:
        source.notes.warn(words_of(kept))
    return settings


def _stop(stopped: asyncio.Event) -> None:
    if stopped.is_set():
        os._exit(_INTERRUPTED)
    stopped.set()


async def _join(source: RemoteWorkSource, stopped: asyncio.Event, retry: float) -> Settings | None:
    """The settings to work by; None when it was stopped before. A server that is not there yet is waited for:
    machines come up in any order."""
    while not stopped.is_set():
        try:
            return await source.join()
        except Away:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(retry):
                    await stopped.wait()
    return None


async def _work(
    source: RemoteWorkSource | ClusterWorkSource,
    settings: Settings,
    clock: Clock,
    name: str,
    stopped: asyncio.Event,
) -> None:
    gc.set_threshold(*GC_THRESHOLDS)
    async with open_fetch_stack(settings, clock) as stack:
        loop = Loop(source, stack.step, clock, settings, name=name)
        source.in_flight, source.held = lambda: stack.fetcher.in_flight, lambda: loop.held
        source.take_concurrency = loop.change_concurrency
        async with drain_when(stopped, loop.drain):
            await loop.run()
            await _deliver_the_rest(source)


async def _deliver_the_rest(source: RemoteWorkSource | ClusterWorkSource) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_FAREWELL):
            await source.leave()
            while source.undelivered:
                await source.beat()
                await asyncio.sleep(0.1)
    if source.undelivered:
        raise SkitterError(
            f"the server is away: {source.undelivered} answers are lost, and will be fetched again"
        )
