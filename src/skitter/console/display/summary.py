"""What a crawl says at its end: what was fetched, what was not and why, where it is, what to do next."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator

import msgspec

from skitter.console.display.wording import amounts, counted, moment, plain, rate, refused_by, size, span
from skitter.headline import over_defaults
from skitter.model import Refusal
from skitter.telemetry import Ended, Snapshot

WIDTH = 80


HEADLINES = {
    Ended.COMPLETE: "Complete: nothing is left to fetch.",
    Ended.NO_SEED: "Nothing is left to do.",
    Ended.LIMIT: "Stopped at the page limit; more is queued.",
    Ended.WAITING: "Ended early: all that is left has to wait.",
    Ended.INTERRUPTED: "Interrupted; requests in flight were finished, and nothing is lost.",
    Ended.STOPPED: "Stopped at once; requests in flight were dropped and will be made again.",
}


class SeedFate(msgspec.Struct, frozen=True, kw_only=True):
    """A seed that was not fetched, and why."""

    url: str
    why: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl ended. `folder`, `archives`, `index` and `log` are paths as a user would type them, `url`
    is where the archive goes, if not into the folder. `seeds` are named when none of them was fetched, the first
    of them and how many more; `next_up` are those who are asked next."""

    ended: Ended
    last: Snapshot
    folder: str
    archives: tuple[str, ...] = ()
    index: str = ""
    log: str = ""
    resume: str = ""
    url: str = ""
    seeds: tuple[SeedFate, ...] = ()
    more_seeds: int = 0
    next_up: tuple[str, ...] = ()


def render_summary(summary: Summary) -> str:
    """Text for people, in 80 columns; only a path or a command may be longer, so that it can be copied."""
    blocks = [
        _no_seed(summary),
        [*_headline(summary), *_fetched(summary.last), *_stored(summary)],
        _titled("Items", _items(summary)),
        _titled("Not fetched", _not_fetched(summary.last)),
        _titled("Errors on the way (retried where that helps)", _errors(summary.last)),
        _titled("Where it is", _places(summary)),
        _titled("Next", _next_steps(summary)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _how_it_ended(summary: Summary) -> str:
    """A crawl that is complete but for something that nobody asked to leave out says so first."""
    losses = list(_losses(summary)) if summary.ended is Ended.COMPLETE else []
    if not losses:
        return HEADLINES[summary.ended]
    if len(losses) == 1:
        return f"Complete but for {losses[0]}"
    return "\n".join(("Complete but for", *(f"  {loss}" for loss in losses)))


def _losses(summary: Summary) -> Iterator[str]:
    """Each with the command that shows it or brings it back."""
    last, folder = summary.last, _path(shlex.quote(summary.folder))
    if refused := last.refusals.get(Refusal.TRAP, 0):
        kinds, what = counted(last.refusing, "kind"), "a trap" if last.refusing == 1 else "traps"
        yield f"{counted(refused, 'page')} of {kinds} taken for {what}: {_traps_command(summary)}"
    if last.dead:
        yield f"{counted(last.dead, 'dead letter')}: skitter dead {folder}"
    if last.unrendered:
        yield f"{counted(last.unrendered, 'page')} that could not be rendered: skitter render {folder}"
    undoing = {
        Refusal.DEPTH: f"skitter crawl --into {folder} --max-depth N",
        Refusal.BUDGET: f"skitter policy {folder} HOST --budget N",
    }
    for reason, words in over_defaults(last.over_defaults).items():
        yield f"{words}: {undoing[reason]}"


def _traps_command(summary: Summary) -> str:
    return f"skitter traps {_path(shlex.quote(summary.folder))}"


def _titled(title: str, lines: Iterator[str]) -> list[str]:
    found = list(lines)
    return [title, *found] if found else []


def _no_seed(summary: Summary) -> list[str]:
    """Above everything else: what follows is about nothing."""
    if not summary.seeds:
        return []
    lines = [line for fate in summary.seeds for line in (f"  {_path(fate.url)}", *_wrapped(fate.why, "    "))]
    more = [f"  and {summary.more_seeds:,} more"] if summary.more_seeds else []
    return ["No seed could be fetched.", *lines, *more]


def _headline(summary: Summary) -> Iterator[str]:
    last = summary.last
    yield _how_it_ended(summary)
    if summary.ended is Ended.WAITING and last.next_at is not None:
        yield f"Come again {moment(last.next_at, last.at)}; then the next is ready:"
        for one in summary.next_up:
            yield from _wrapped(one, "  ")


def _wrapped(text: str, indent: str) -> list[str]:
    text = plain(text, 400)
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _fetched(last: Snapshot) -> Iterator[str]:
    what = f"{counted(last.pages, 'page')} of {counted(last.hosts_total, 'host')}"
    yield f"{what} in {span(last.elapsed)}, {rate(last.rate_mean)}"
    if last.scored:
        yield f"{last.on_topic:,} of {last.scored:,} pages about the topic, {last.on_topic / last.scored:.0%}"
    if last.requisites:
        yield f"{counted(last.requisites, 'file')} that pages need to look as they do"
    if last.rendered:
        yield f"{counted(last.rendered, 'page')} rendered in a browser without a network"
    warm = f", {min(1.0, last.reused / last.requests):.0%} on open connections" if last.requests else ""
    yield f"{size(last.bytes)} received in {counted(last.requests, 'request')}{warm}"
    if last.dns_lookups:
        hits = last.dns_hits / (last.dns_hits + last.dns_lookups)
        each = f"{last.dns_ms / last.dns_lookups:,.0f} ms each"
        yield f"{counted(last.dns_lookups, 'DNS lookup')} of {each}; {hits:.0%} of names were known"
    if last.looked_again:
        shown = {"failed": "without an answer"}
        parts = [f"{count:,} {shown.get(name, name)}" for name, count in last.looked_again.items()]
        yield f"{counted(sum(last.looked_again.values()), 'URL')} looked at again: {', '.join(parts)}"
    if last.pages_in_all > last.pages:
        yield f"{counted(last.pages_in_all, 'page')} in all, with earlier runs"
    for reason, count in last.came_back.items():
        yield f"{refused_by(reason, count)} came back"


def _stored(summary: Summary) -> Iterator[str]:
    if not summary.url:
        return
    last, where = summary.last, _path(summary.url)
    if last.unstored:
        safe = last.pages_in_all - last.unstored
        yield f"{last.pages_in_all:,} pages, {safe:,} of them safe in {where}, {last.unstored:,} waiting"
    else:
        yield f"{last.pages_in_all:,} pages, all of them safe in {where}"


def _items(summary: Summary) -> Iterator[str]:
    extractors = summary.last.extractors
    for name, (items, _) in sorted(extractors.items(), key=lambda each: -each[1][0])[:8]:
        yield from _row(items, f"by {plain(name, 40)}")
    for name, (_, faults) in sorted(extractors.items(), key=lambda each: -each[1][1])[:8]:
        yield from _row(faults, f"pages of which {plain(name, 40)} made nothing, because of a fault")


def _not_fetched(last: Snapshot) -> Iterator[str]:
    yield from _row(last.refused, f"refused: {amounts(last.refusals)}")
    yield from _row(last.denied, "denied by robots.txt")
    yield from _row(last.gone, "gone: the host says 404 or 410")
    yield from _row(last.dead, "dead letters: every attempt failed")
    when = f", the next {moment(last.next_at, last.at)}" if last.next_at else ""
    yield from _row(last.waiting_retry, f"to be tried again{when}")
    yield from _row(last.queued + last.in_progress, "queued, not asked for yet")


def _errors(last: Snapshot) -> Iterator[str]:
    for kind, count in sorted(last.errors.items(), key=lambda item: -item[1])[:8]:
        yield from _row(count, plain(kind, 40).replace("_", " "))


def _row(count: int, words: str) -> Iterator[str]:
    if count:
        first = f"{count:>10,}  "
        yield textwrap.fill(words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))


def _places(summary: Summary) -> Iterator[str]:
    if summary.url:
        yield f"  {'archive':<8} {_path(summary.url)}"
    for number, archive in enumerate(summary.archives[:3]):
        yield f"  {'' if number else 'here' if summary.url else 'archive':<8} {_path(archive)}"
    if len(summary.archives) > 3:
        yield f"  {'':<8} and {len(summary.archives) - 3:,} more beside them"
    for name, path in (("index", summary.index), ("log", summary.log)):
        if path:
            yield f"  {name:<8} {_path(path)}"
    if summary.last.log_dropped:
        yield f"  {'':<8} {summary.last.log_dropped:,} lines could not be written"


def _next_steps(summary: Summary) -> Iterator[str]:
    folder = _path(shlex.quote(summary.folder))
    steps = [
        (f"skitter stats {folder}", "the figures again, by host"),
        (f"skitter explain URL --in {folder}", "why a URL was fetched, or was not"),
    ]
    if summary.last.verdicts:
        traps = _traps_command(summary)
        steps.append((traps, "what was taken for a trap, and why"))
        steps.append((f"{traps} --undo ID", "take that back: the next crawl fetches it"))
    if any(faults for _, faults in summary.last.extractors.values()):
        asked = "select extractor, fault, count(*) from items_all where fault is not null group by all"
        steps.append((f'skitter query {folder} "{asked}"', "the faults of extractors"))
    if summary.last.dead:
        steps.append((f"skitter dead {folder}", "the dead letters, and how to retry them"))
    is_over = summary.ended in (Ended.COMPLETE, Ended.NO_SEED)
    if summary.resume and (not is_over or summary.last.unstored):
        steps.insert(0, (_path(summary.resume), "go on from here"))
    width = min(44, max(len(command) for command, _ in steps))
    for command, purpose in steps:
        fits = len(command) <= width
        yield f"  {command:<{width}}  {purpose}" if fits else f"  {command}\n  {'':<{width}}  {purpose}"


def _path(path: str) -> str:
    return plain(path, 4096)
