"""`skitter plan`: what a crawl will take, before it or in the midst of it.

Gathers what the model needs and asks it. The model is `plan/`; words are in `plan_words.py`. Looks only:
nothing is fetched and nothing is changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import msgspec

from skitter.console.citizen.plan_words import Planned, lines_of
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.frontier.base import Stats
from skitter.plan.estimate import Estimate, SoFar, estimate
from skitter.plan.growth import Band
from skitter.plan.prices import Prices, parse_prices
from skitter.plan.target import Assumptions, target
from skitter.plan.workload import HostLeft
from skitter.seeds import read_seeds
from skitter.settings import Settings
from skitter.settings.load import load
from skitter.urls.keys import Keys
from skitter.wiring import open_frontier

# Of hosts that nobody has seen yet, one in ten is larger than ten times the usual one, and one smaller.
_UNKNOWN = 10.0
_FEWEST_PAGES = 20


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    words: tuple[str, ...] = ()
    pages: float | None = None
    seconds: float | None = None
    pages_per_host: float = 1_000.0
    page_bytes: float | None = None
    machine_cores: int = 8
    prices: Prices
    config: Path | None = None


def example_prices() -> str:
    return resources.files("skitter.plan").joinpath("example-prices.toml").read_text()


def read_prices(file: Path | None) -> Prices:
    if file is None:
        return parse_prices(example_prices(), "the shipped table")
    try:
        return parse_prices(file.read_text(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


async def plan(asked: Asked, environ: Mapping[str, str], *, as_json: bool) -> str:
    planned = await _planned(asked, environ)
    if as_json:
        return msgspec.json.format(msgspec.json.encode(planned), indent=2).decode()
    return "\n".join(lines_of(planned))


async def _planned(asked: Asked, environ: Mapping[str, str]) -> Planned:
    folders = [word for word in asked.words if os.path.isdir(word)]
    if folders and len(asked.words) > 1:
        raise UsageError(f"{folders[0]} is a folder: name one crawl, or seeds, not both")
    if folders:
        return await _of_crawl(asked, CrawlFolder.existing(Path(folders[0])), environ)
    settings = load(config_file=asked.config, environ=environ).settings
    given = _given(asked, settings)
    if asked.words:
        return _of_seeds(asked, settings, given)
    if asked.pages is None:
        raise UsageError("name a crawl's folder, seeds, or a target: skitter plan --pages 1e9 --in 7d")
    # without a time: as long as one machine takes
    seconds = asked.seconds or asked.pages / (given.pages_a_core * given.cores)
    return Planned(assumed=given, target=target(asked.pages, seconds, given, asked.prices))


def _given(asked: Asked, settings: Settings) -> Assumptions:
    usual = Assumptions()
    return Assumptions(
        page_bytes=asked.page_bytes or usual.page_bytes,
        cores=asked.machine_cores,
        delay=settings.politeness.delay,
        segment_bytes=float(settings.archive.segment_size),
    )


def _of_seeds(asked: Asked, settings: Settings, given: Assumptions) -> Planned:
    """Nothing is known of the hosts: each is taken for a usual one, and the band says how little that is."""
    hosts = list(dict.fromkeys(seed.host for seed in read_seeds(asked.words, (), Keys(settings.keys))))
    each = asked.pages / len(hosts) if asked.pages else asked.pages_per_host
    budget = settings.politeness.host_budget or float("inf")
    urls = Band(each / _UNKNOWN, each, each * _UNKNOWN).at_most(budget)
    if asked.pages:
        urls = Band(each, each, each)
    left = [
        HostLeft(
            host=host,
            count=1,
            urls=urls,
            bytes=urls.likely * given.page_bytes,
            interval=settings.politeness.delay,
            gap=0.0,
            opens_in=0.0,
            why="politeness.delay",
        )
        for host in hosts
    ]
    so_far = SoFar(max_pages=settings.crawl.max_pages, is_open=settings.crawl.scope == "any")
    found = estimate(left, so_far, given.pages_a_core * (os.cpu_count() or 1))
    return _with_target(asked, Planned(assumed=given, estimate=found, hosts=len(hosts)), found, 0, 0.0)


async def _of_crawl(asked: Asked, folder: CrawlFolder, environ: Mapping[str, str]) -> Planned:
    settings = load(crawl_file=folder.settings_file, config_file=asked.config, environ=environ).settings
    async with open_frontier(folder, settings, read_only=True) as frontier:
        stats, found = await frontier.stats(), await frontier.estimate()
    given = _measured(_given(asked, settings), asked, stats, folder)
    planned = Planned(
        folder=str(folder.path),
        assumed=given,
        estimate=found,
        hosts=sum(stats.hosts.values()),
        pages=stats.pages,
        bytes=stats.bytes,
        is_measured=stats.pages >= _FEWEST_PAGES,
    )
    return _with_target(asked, planned, found, stats.pages, float(stats.bytes))


def _measured(given: Assumptions, asked: Asked, stats: Stats, folder: CrawlFolder) -> Assumptions:
    """What a crawl shows goes before what is assumed."""
    if stats.pages < _FEWEST_PAGES or not stats.bytes:
        return given
    known, archived = sum(stats.urls.values()), _size(folder.archive)
    return msgspec.structs.replace(
        given,
        page_bytes=asked.page_bytes or stats.bytes / stats.pages,
        archived=archived / stats.bytes if archived else given.archived,
        known=max(0.0, known / stats.pages - 1),
        bytes_a_url=min(given.bytes_a_url * 4, max(given.bytes_a_url / 4, _size(folder.frontier) / known)),
    )


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _with_target(asked: Asked, planned: Planned, found: Estimate, pages: int, received: float) -> Planned:
    """The sums of all of it: in the time asked for, or in the time that it takes."""
    whole = asked.pages or pages + found.pages.likely
    seconds = asked.seconds or max(1.0, found.seconds.likely)
    if whole < 1:
        return planned
    sums = target(whole, seconds, planned.assumed, asked.prices)
    return msgspec.structs.replace(planned, target=sums)
