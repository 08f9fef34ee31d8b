"""Questions about renderings: how many there are, and what became of that of a page. Nothing here writes."""

from __future__ import annotations

from skitter.frontier.base import RenderFigures
from skitter.frontier.engine.renders import SKIPPED
from skitter.frontier.rows import HostRow, RenderRow, RenderState, Tally, UrlRow
from skitter.frontier.tables import render_tables as tables
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.url_patterns import pattern_of
from skitter.model import UrlKey
from skitter.schedule.rendering import AUTO, words_of
from skitter.settings import Settings
from skitter.urls.canonical import host_id, host_of


def render_figures(tally: Tally) -> RenderFigures | None:
    """None where nothing was ever to be rendered."""
    found = tally.renders
    if found is None:
        return None
    return RenderFigures(
        queued=found.queued,
        leased=found.leased,
        awaiting=found.awaiting,
        done=found.done,
        rounds=found.rounds,
        changed=found.changed,
        failed=found.failed,
        skipped=found.skipped,
        gained=found.gained,
        seconds=found.seconds,
    )


def next_rendering_at(cache: RowCache) -> float | None:
    """When there is one to be done, or to be waited for no longer."""
    found = cache.tally.renders
    if found is None or not found.pending:
        return None
    if found.queued:
        return cache.tally.now
    return min((at for at, _ in tables.timers(cache, None, 1)), default=None)


def rendering_words(
    cache: RowCache, key: UrlKey, row: UrlRow, host: HostRow | None, settings: Settings
) -> tuple[str, ...]:
    """What became of the rendering of a page, and what is known of its kind; empty where there was none."""
    found = tables.stored_rendering(cache, key) if cache.tally.renders is not None else None
    if found is None:
        return ()
    lines = [_state_words(found)]
    if found.why:
        lines.append(f"why: {found.why}")
    own = host.policy.render if host is not None and host.policy is not None else None
    if (own or settings.crawl.render) == AUTO:
        kind = pattern_of(cache, host_id(host_of(row.url)), key, row.url)
        if words := words_of(tables.stored_evidence(cache, kind.own)):
            lines.append(f"pages like {kind.shape.fine}: {words}")
    return tuple(lines)


def _state_words(row: RenderRow) -> str:
    rounds = f" after {row.rounds} rounds" if row.rounds > 1 else " after a round" if row.rounds else ""
    match row.state:
        case RenderState.QUEUED:
            return f"it waits to be rendered{rounds}"
        case RenderState.LEASED:
            return f"it is being rendered by {row.worker}{rounds}"
        case RenderState.AWAITING:
            return f"its rendering waits for {row.awaited} answers{rounds}"
        case _ if row.ending == SKIPPED:
            return "it was not rendered"
        case _:
            lacking = f", {row.lacking} requests without an answer" if row.lacking else ""
            return (
                f"{row.ending}{rounds}: {row.requests} requests{lacking}, {row.seconds:.1f} s in the browser; "
                f"text of {row.text:,} characters instead of {row.plain_text:,}, {row.gained} new URLs"
            )
