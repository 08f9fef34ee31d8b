"""The commands that steer a crawl and show nothing else: seeds, pause, resume, settings --set, hosts --retry.

Each returns text for people or, with `as_json`, JSON for programs. What `policy`, `dead`, `refresh` and `traps`
change goes the same way (`carry_out.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from skitter.clock import SystemClock
from skitter.console.display.wording import counted, plain, span
from skitter.console.steer.carry_out import carry_out
from skitter.errors import UsageError
from skitter.folder import CrawlFolder
from skitter.seeds import hosts_named
from skitter.service.steering.hosts import HostRetried, retry_order
from skitter.service.steering.running import PAUSE, RESUME
from skitter.service.steering.settings import SettingsAsked, settings_order
from skitter.service.steering.urls import MOST_SEEDS, RefusedSeed, Seeds, SeedsTaken, seeds_order
from skitter.settings import Settings

_SHOWN = 20


async def seeds(folder: CrawlFolder, settings: Settings, urls: Sequence[str], *, as_json: bool) -> str:
    if not urls:
        raise UsageError("give at least one seed: a URL, a file with one URL a line, or - for standard input")
    parts = [urls[start : start + MOST_SEEDS] for start in range(0, len(urls), MOST_SEEDS)]
    done = [await carry_out(folder, settings, seeds_order(Seeds(urls=tuple(part)))) for part in parts]
    taken = SeedsTaken(
        accepted=sum(one.answer.accepted for one in done),
        duplicates_skipped=sum(one.answer.duplicates_skipped for one in done),
        refused=tuple(refused for one in done for refused in one.answer.refused),
    )
    if as_json:
        return _json(taken)
    return "\n".join(_seed_lines(taken, done[-1].who_goes_on(folder)))


def _seed_lines(taken: SeedsTaken, who: str) -> Iterator[str]:
    accepted = counted(taken.accepted, "seed")
    known, refused = taken.duplicates_skipped, len(taken.refused)
    fetched = f": {who} fetches them" if taken.accepted else ""
    yield f"{accepted} accepted, {known:,} known already, {refused:,} refused{fetched}"
    yield from (_refused(one) for one in taken.refused[:_SHOWN])
    if refused > _SHOWN:
        yield f"  and {refused - _SHOWN:,} more"


def _refused(seed: RefusedSeed) -> str:
    return f"  {plain(seed.url)}: {plain(seed.reason)}"


async def retry(folder: CrawlFolder, settings: Settings, host: str, *, as_json: bool) -> str:
    hosts_named(host)  # complains of what cannot be a host
    done = await carry_out(folder, settings, retry_order(host, SystemClock().now()))
    if as_json:
        return _json(done.answer.hosts)
    return "\n".join(_retried(one, done.answer.now) for one in done.answer.hosts)


def _retried(host: HostRetried, now: float) -> str:
    if host.standing == "blocked":
        return f"{host.host} is blocked by its policy: skitter policy DIR HOST --clear lifts it"
    back = f", {host.retries:,} of them to be tried again" if host.retries else ""
    what = f"{counted(host.queued, 'URL')} queued{back}"
    wait = host.next_start - now
    when = "is asked now" if wait <= 0 else f"is asked in {span(wait)}, after its delay"
    return f"{host.host} {when if host.queued else 'waits no more'}: {what}"


async def pause(folder: CrawlFolder, settings: Settings, *, as_json: bool) -> str:
    done = await carry_out(folder, settings, PAUSE)
    if as_json:
        return _json(done.answer)
    return f"paused: requests in flight end, no new ones begin; skitter resume {folder.path} goes on"


async def resume(folder: CrawlFolder, settings: Settings, *, as_json: bool) -> str:
    done = await carry_out(folder, settings, RESUME)
    return _json(done.answer) if as_json else "going on"


async def change(folder: CrawlFolder, settings: Settings, words: Sequence[str], *, as_json: bool) -> str:
    """`words` are `SECTION.NAME=VALUE`."""
    wanted = dict(_assignment(word) for word in words)
    asked = SettingsAsked(settings=dict(wanted))
    done = await carry_out(folder, settings, settings_order(asked))
    now = {name: _value(done.answer.settings, name) for name in wanted}
    if as_json:
        return _json(now)
    since = "now" if done.holder else "from the next run on"
    return "\n".join(
        f"{name} = {msgspec.json.encode(value).decode()}, {since}" for name, value in now.items()
    )


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.strip():
        raise UsageError(
            f"{word!r} is no setting and value: write SECTION.NAME=VALUE, such as crawl.max_pages=500"
        )
    return name.strip(), value.strip()


def _value(sections: dict[str, dict[str, object]], name: str) -> object:
    section, _, key = name.partition(".")
    return sections[section][key]


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
