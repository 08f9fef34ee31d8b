"""What `skitter crawl` and `skitter serve` have in common: check, open, admit seeds, run until ended, close.

Between the commands and the wiring. Signals are in `stop_signals.py`, which `skitter worker` shares: a worker
process must not load the store that is opened here. Prints nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from skitter.clock import SystemClock
from skitter.errors import SettingsError, UsageError
from skitter.extras import advice, has, need
from skitter.fetch.resolver import Resolver
from skitter.fetch_stack import GC_THRESHOLDS
from skitter.folder import CrawlFolder
from skitter.frontier.blocklists import Blocklists
from skitter.model import Discovered, VerdictKind
from skitter.runtime.stop_signals import stop_event
from skitter.seeds import hosts_named, require_addresses, require_contact
from skitter.settings import Settings
from skitter.settings.load import dump_toml
from skitter.settings.plugins import is_file
from skitter.settings.rules import RuleSettings
from skitter.urls.canonical import normalise
from skitter.wiring import CrawlServices, probe_objects

_BEAT = 0.05
_SEED_BATCH = 5_000


# -- open


async def check_settings(settings: Settings, seeds: Sequence[Discovered]) -> Settings:
    """The settings as every later run shall read them. Raises when they cannot be carried out: what the settings'
    own checks cannot know is looked at before anything is written."""
    settings = _with_whole_paths(settings)
    Resolver(settings.fetch, SystemClock())
    Blocklists(settings.crawl.blocklists).load()
    _check_places(settings.archive.dedup_against)
    for name in settings.hosts:
        hosts_named(name)
    _check_rules(settings)
    if settings.focus.model:
        from skitter.focus.model_file import read_model

        read_model(settings.focus.model)
    settings = await _with_plugins(settings)
    require_contact(settings, seeds)
    require_addresses(settings, seeds)
    await probe_objects(settings)
    return settings


def require_browser(settings: Settings) -> None:
    """Of a crawl with workers of its own. Raises where there is nothing to render pages with."""
    policies = settings.hosts.values()
    if settings.crawl.render != "never" or any(policy.render not in (None, "never") for policy in policies):
        from skitter.render.browser import find_program

        find_program(settings.render)


def _check_places(places: Sequence[str]) -> None:
    for place in places:
        if "://" not in place and not os.path.exists(place):
            raise UsageError(
                f"archive.dedup_against: {place} does not exist: name an archive, or leave it out"
            )


def _with_whole_paths(settings: Settings) -> Settings:
    """A later run may start in another directory, and means the same files."""
    lists = tuple(os.path.abspath(path) for path in settings.crawl.blocklists)
    others = tuple(
        os.path.abspath(place) if "://" not in place else place for place in settings.archive.dedup_against
    )
    plugins = tuple(os.path.abspath(name) if is_file(name) else name for name in settings.plugins.with_)
    model = os.path.abspath(settings.focus.model) if settings.focus.model else ""
    return replace(
        settings,
        crawl=replace(settings.crawl, blocklists=lists),
        focus=replace(settings.focus, model=model),
        archive=replace(settings.archive, dedup_against=others),
        plugins=replace(settings.plugins, with_=plugins),
    )


def _check_rules(settings: Settings) -> None:
    rules = settings.rules
    if rules == RuleSettings() and not settings.seeds:
        return
    from skitter.urls.rewriting import Rewriting
    from skitter.urls.seed_rules import SeedRules

    try:
        Rewriting(rules.rewrite)
        SeedRules(settings.seeds, settings.crawl.scope, rules.surts)
    except ValueError as error:
        raise SettingsError(f"[rules] {error}") from None
    for seed in settings.seeds:
        if "://" not in seed or normalise(seed) is None:
            raise SettingsError(f'[seeds."{seed}"] is no URL: write https://example.org/docs/')
    if rules.follow or rules.keep:
        from skitter.extend.patterns import complaint_about

        for glob in (*rules.follow, *rules.keep):
            if complaint := complaint_about(glob):
                raise SettingsError(f"[rules] {complaint}")


async def _with_plugins(settings: Settings) -> Settings:
    """With the versions and types of users' code that this run has; raises where it cannot be loaded."""
    if not (settings.plugins.with_ or settings.extract):
        return replace(settings, plugins=replace(settings.plugins, versions=(), types=()))
    need("pyarrow")
    from skitter.extend.declared import extractors_of
    from skitter.extend.versions import with_versions

    extractors_of(settings.extract)
    return replace(settings, plugins=await with_versions(settings.plugins, settings.extract))


def within_installed(settings: Settings, note: Callable[[str], None] = lambda _: None) -> Settings:
    """What is kept beside the WARC files as far as there is something installed to write it with. Not written
    down: a later run that has it keeps it."""
    if not settings.archive.tables or has("pyarrow"):
        return settings
    note(f"no tables are kept beside the WARC files: {advice('pyarrow')}")
    return replace(settings, archive=replace(settings.archive, tables=()))


@contextlib.contextmanager
def own_folder(folder: CrawlFolder, settings: Settings) -> Iterator[None]:
    """Holds the folder's lock, and writes the settings that are in force from now on."""
    folder.lock()
    try:
        folder.write_settings(dump_toml(settings))
        gc.set_threshold(*GC_THRESHOLDS)
        yield
    finally:
        folder.unlock()


async def bring_back_private(
    services: CrawlServices, settings: Settings, note: Callable[[str], None]
) -> None:
    """What an earlier run refused for its address is asked for now, if this one allows it."""
    back = await services.frontier.allow_private(settings.fetch.allow_private)
    if back:
        note(f"{back:,} URLs refused for their address came back")


async def admit_seeds(
    services: CrawlServices, seeds: Sequence[Discovered], note: Callable[[str], None]
) -> None:
    """`note` is told what the operator should know."""
    known = 0
    _tell_of_bare_seeds(seeds, note)
    for start in range(0, len(seeds), _SEED_BATCH):
        batch = seeds[start : start + _SEED_BATCH]
        verdicts = await services.frontier.admit(batch)
        known += sum(verdict.kind is VerdictKind.KNOWN for verdict in verdicts)
        for seed, verdict in zip(batch, verdicts, strict=True):
            if verdict.kind is VerdictKind.REFUSED:
                note(f"seed refused: {seed.url} ({verdict.reason}: {verdict.rule})")
        if len(seeds) > _SEED_BATCH:
            note(f"{min(start + _SEED_BATCH, len(seeds)):,} of {len(seeds):,} seeds read")
    if known:
        note(f"{known:,} of {len(seeds):,} seeds were known already")


def _tell_of_bare_seeds(seeds: Sequence[Discovered], note: Callable[[str], None]) -> None:
    bare = [seed for seed in seeds if seed.over_http]
    if bare:
        more = f" and {len(bare) - 1:,} more" if len(bare) > 1 else ""
        note(f"asking for {bare[0].url}{more}; over http where https cannot be connected")


# -- run until ended


async def run_chores(services: CrawlServices) -> None:
    """The committer's periodic chores, for a process without a worker loop. Ends only by a fault, such as a disk
    that is nearly full."""
    while True:
        await services.committer.beat()
        services.committer.complain_of_room()
        services.log.flush()
        await asyncio.sleep(_BEAT)


async def run_until_stopped(
    services: CrawlServices,
    ready: Callable[[], None] = lambda: None,
    stopped: asyncio.Event | None = None,
) -> None:
    """Does the chores until a stop signal comes, or `stopped` is set; then no more leases are given. Calls
    `ready` once a signal is understood: whoever hears of it may stop it at once."""
    stopped = stopped or stop_event()
    ready()
    chores = asyncio.create_task(run_chores(services))
    stopping = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait((chores, stopping), return_when=asyncio.FIRST_COMPLETED)
        if chores.done():
            chores.result()
    finally:
        services.committer.drain()
        for task in (chores, stopping):
            task.cancel()
        await asyncio.gather(chores, stopping, return_exceptions=True)
