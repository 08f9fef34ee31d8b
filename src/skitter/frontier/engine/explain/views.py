"""Questions about a crawl: stats, hosts, dead letters, and why a URL was (not) crawled. Nothing here writes."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping

from skitter.frontier.base import (
    DeadLetter,
    Explanation,
    FetchView,
    Horizon,
    HostExplanation,
    HostOutlook,
    HostStanding,
    HostView,
    PolitenessLedger,
    RevisitFigures,
    Stats,
    Upcoming,
    UrlView,
)
from skitter.frontier.engine.admission import Admission
from skitter.frontier.engine.answers.aliases import stands_for
from skitter.frontier.engine.answers.near_duplicates import resembling
from skitter.frontier.engine.answers.redirects import leads_to
from skitter.frontier.engine.bare_seeds import http_form, was_led_to_http
from skitter.frontier.engine.changed_rules.readmission import as_found
from skitter.frontier.engine.changed_rules.rules_in_force import over_defaults
from skitter.frontier.engine.explain.host_report import fetch_fields, host_report
from skitter.frontier.engine.explain.lists import outlook, some_urls
from skitter.frontier.engine.explain.regions import region_figures, region_words
from skitter.frontier.engine.explain.renderings import next_rendering_at, render_figures, rendering_words
from skitter.frontier.engine.explain.traps import trap_words
from skitter.frontier.engine.explain.work_left import WorkWalk
from skitter.frontier.engine.load_limits import closed_words, is_closed
from skitter.frontier.engine.revisiting.revisit_budget import visits_a_second
from skitter.frontier.rows import HostRow, Tally, UrlRow
from skitter.frontier.tables import queries
from skitter.frontier.tables.row_cache import RowCache
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, Host, Refusal, TaskKind, UrlKey, UrlState, Via
from skitter.schedule.kinds import KINDS
from skitter.schedule.priority import REVISITS, TIERS, tier_of
from skitter.schedule.revisit import audited_freshness
from skitter.settings import Settings
from skitter.urls.canonical import host_id, host_of, target_of
from skitter.urls.keys import form_key, split_form

_LONGEST_TRAIL = 30
_MOST_COUNTED = 10_000
_HOSTS_AT_ONCE = 500
_MOST_WALKS = 100


class Views:
    def __init__(self, cache: RowCache, admission: Admission, settings: Settings) -> None:
        self._cache = cache
        self._admission = admission
        self._settings = settings

    def change_settings(self, settings: Settings) -> None:
        self._settings = settings

    # -- the crawl

    def horizon(self) -> Horizon:
        tally = self._cache.tally
        limit = self._settings.crawl.max_pages
        renders = tally.renders
        return Horizon(
            leased_hosts=tally.hosts.get(HostStanding.ACTIVE, 0) + (renders.leased if renders else 0),
            limit_reached=bool(limit) and tally.pages >= limit and not (renders and renders.pending),
            next_at=self._next_at(),
            never_ends=self._settings.revisit.keep_fresh,
        )

    def _next_at(self) -> float | None:
        """When there is work next: a host may be asked, a retry is due, or a walk over many URLs, which is done
        in bounded steps, has not ended."""
        cache = self._cache
        rejudged = next((cache.host(ident) for ident, _ in queries.hosts_to_rejudge(cache)), None)
        is_walking = (
            next(queries.hosts_to_empty(cache), None) is not None
            or bool(queries.walks(cache, 1))
            or queries.ended_verdict(cache) is not None
        )
        firsts = [
            queries.first_ready_at(cache),
            queries.first_due_at(cache),
            queries.first_revisit_at(cache) if self._settings.revisit.keep_fresh else None,
            cache.earliest_start(rejudged) if rejudged is not None else None,
            cache.tally.now if is_walking else None,
            next_rendering_at(cache),
        ]
        first = min((at for at in firsts if at is not None), default=None)
        return None if first is None else cache.by_the_clock(first)

    def upcoming(self, limit: int) -> list[Upcoming]:
        found = [*self._next_hosts(limit), *self._next_retries(limit)]
        return sorted(found, key=lambda one: one.at)[:limit]

    def _next_hosts(self, limit: int) -> Iterator[Upcoming]:
        seen = set()
        for at, ident in queries.next_host_times(self._cache, limit):
            row = self._cache.host(ident)
            if row is not None and ident not in seen:
                seen.add(ident)
                why = row.health.last_failure if row.health.failures else self._host_words(row)
                yield Upcoming(at=self._cache.by_the_clock(at), host=row.host, why=why)

    def _next_retries(self, limit: int) -> Iterator[Upcoming]:
        for at, key in queries.next_due(self._cache, limit):
            row = self._cache.url(key)
            if row is not None and row.state == UrlState.FAILED:
                why = _reason(row, UrlState.FAILED)
                yield Upcoming(at=self._cache.by_the_clock(at), host=host_of(row.url), url=row.url, why=why)

    def seeds(self, limit: int) -> list[str]:
        keys = itertools.islice(queries.urls(self._cache), _MOST_COUNTED)
        rows = (row for key in keys if (row := self._cache.url(key)) is not None)
        return [
            row.url for row in itertools.islice((one for one in rows if one.found.via is Via.SEED), limit)
        ]

    def stats(self, came_back: Mapping[str, int]) -> Stats:
        tally = self._cache.tally
        return Stats(
            urls={state.name.lower(): tally.urls.get(state, 0) for state in UrlState},
            hosts={standing.value: tally.hosts.get(standing, 0) for standing in HostStanding},
            tiers=tuple(tally.tiers[:TIERS]),
            pages=tally.pages,
            stored=tally.pages - (unstored := sum(pages for _, pages in tally.held.values())),
            unstored=unstored,
            lost=tally.lost,
            requisites=tally.requisites,
            sitemaps=tally.sitemaps,
            fetches=tally.fetches,
            robots_fetches=tally.robots_fetches,
            bytes=tally.received,
            failures={kind: n for kind, n in sorted(tally.failures.items()) if n},
            refusals={reason: n for reason, n in sorted(tally.refusals.items()) if n},
            statuses=dict(sorted(tally.statuses.items())),
            leases_expired=tally.leases_expired,
            stale_outcomes=tally.stale_outcomes,
            politeness=_ledger(tally),
            seen_filter=None if self._cache.read_only else self._cache.seen.figures(),
            next_at=self._next_at(),
            near_duplicates=tally.near,
            aliases=tally.aliases,
            came_back=dict(came_back),
            rejudging=self._rejudging(),
            verdicts=tally.verdicts,
            refusing=tally.refusing,
            revisits=self._revisits(),
            over_defaults=over_defaults(tally.refusals, self._settings),
            scored=tally.scored,
            on_topic=tally.on_topic,
            regions=region_figures(tally),
            renderings=render_figures(tally),
        )

    def _revisits(self) -> RevisitFigures | None:
        """None where nothing was ever to be visited again."""
        found = self._cache.tally.revisits
        if not self._settings.revisit.keep_fresh and not found.watched and not found.visits:
            return None
        first = queries.first_revisit_at(self._cache)
        fresh, error = audited_freshness(found.audits, found.audited, found.audited_fresh)
        return RevisitFigures(
            watched=found.watched,
            queued=self._cache.tally.tiers[REVISITS],
            price=found.price,
            budget=visits_a_second(self._settings.revisit.per_second, found.watched),
            visits=found.visits,
            changed=found.changed,
            late=max(0.0, self._cache.tally.now - first) if first is not None else 0.0,
            audits=found.audits,
            audited_freshness=fresh,
            audit_error=error,
        )

    def _rejudging(self) -> tuple[str, ...]:
        walks = queries.walks(self._cache, _MOST_WALKS)
        return tuple(sorted({reason for _, walk in walks for reason in walk.reasons}))

    def dead_letters(self, limit: int, host: Host | None) -> list[DeadLetter]:
        letters: list[DeadLetter] = []
        for key in queries.dead_letters(self._cache, host):
            if len(letters) >= limit:
                break
            row = self._cache.url(key)
            if row is not None and (host is None or host_of(row.url) == host):
                letters.append(
                    DeadLetter(
                        url=row.url,
                        kind=row.answer.failure,
                        detail=row.rule,
                        status=row.answer.status,
                        attempts=row.attempts,
                        at=row.answer.at,
                    )
                )
        return letters

    # -- hosts

    def host(self, host: Host) -> HostView | None:
        row = self._cache.host(host_id(host))
        return None if row is None else self.host_view(row)

    def some_hosts(
        self, chosen: list[HostRow], start: bytes, limit: int, standing: HostStanding | None, matching: str
    ) -> tuple[list[HostRow], bytes | None]:
        """The busiest hosts among `chosen` and the next slice of the table, and where the slice after it
        begins."""
        rows, go_on = queries.hosts(self._cache, start, _HOSTS_AT_ONCE)
        wanted = (
            row for row in rows if (standing is None or row.standing == standing) and matching in row.host
        )
        busiest = heapq.nlargest(limit, itertools.chain(chosen, wanted), key=_busyness)
        return busiest, go_on

    def host_view(self, row: HostRow) -> HostView:
        return HostView(
            host=row.host,
            standing=row.standing,
            queued=sum(row.queue.lengths),
            fetched=row.counts.fetched,
            failed=row.counts.failed,
            denied=row.counts.denied,
            bytes=row.counts.received,
            delay=self._cache.delay_of(row),
            delay_why=self._delay_why(row),
            robots=_robots_words(row),
            failures_in_a_row=row.health.failures,
            next_start=self._cache.by_the_clock(self._cache.earliest_start(row)),
            response_ms=row.pace.response_time * 1000,
            address=row.pace.address,
            policy=row.policy,
            smallest_gap=row.pace.tightest.seconds if row.pace.tightest else None,
        )

    def work_walk(self, now: float) -> WorkWalk:
        return WorkWalk(self._cache, self._settings, now, self._delay_why)

    def outlook(self, limit: int) -> list[HostOutlook]:
        return outlook(self._cache, limit, self._delay_why)

    def some_urls(
        self, start: bytes, most: int, state: UrlState | None, why: str, host: Host | None
    ) -> tuple[list[UrlView], bytes | None]:
        return some_urls(self._cache, self._state_now, start, most, state=state, why=why, host=host)

    def _state_now(self, key: bytes, row: UrlRow) -> UrlState:
        host = self._cache.host(host_id(host_of(row.url))) if row.slot else None
        return self._state(key, row, host)

    def explain_host(self, host: Host, fetches: int) -> HostExplanation | None:
        ident = host_id(host)
        row = self._cache.host(ident)
        if row is None:
            return None
        return host_report(self._cache, ident, row, self.host_view(row), self.pace_words(row), fetches)

    def pace_words(self, row: HostRow) -> str:
        """Why it is asked as often as it is."""
        health, robots = row.health, row.robots
        if row.policy is not None and row.policy.blocked:
            return "It is not asked: the operator blocked it."
        if health.given_up:
            return f"It is not asked any more after {_in_a_row(row)}."
        if health.failures:
            what = " for its robots.txt" if robots.failing_since or not robots.read_at else ""
            return f"It is left alone for a while{what} after {_in_a_row(row)}."
        delay = self._cache.delay_of(row)
        every = f"every {delay:.3g} s ({self._delay_why(row)})" if delay else "one request after the other"
        parallel = row.policy.parallel if row.policy is not None and row.policy.parallel else 1
        at_once = f", up to {parallel} at once" if parallel > 1 else ""
        if is_closed(row):
            return f"It is not asked now: {closed_words(row, self._settings)}."
        if row.pace.crowded_until and row.pace.crowded_until == row.pace.not_before:
            return f"Its address {row.pace.address} is busy with other hosts (politeness.address_rate)."
        if _is_costly(row):
            return "It rests: a page of it took too long to read (fetch.reading_seconds)."
        answers = (
            f"; its answers take {row.pace.response_time * 1000:.3g} ms" if row.pace.response_time else ""
        )
        return f"It is asked {every}{at_once}{answers}{region_words(row)}."

    def _delay_why(self, row: HostRow) -> str:
        slowed = f", times {row.pace.penalty:g} because it throttled us" if row.pace.penalty > 1 else ""
        if row.policy is not None and row.policy.delay is not None:
            return "the operator's policy" + slowed
        polite = self._settings.politeness
        crawl_delay = min(row.pace.crawl_delay or 0.0, polite.max_crawl_delay)
        slow = polite.slow_factor * row.pace.response_time
        if crawl_delay > max(polite.delay, slow):
            return f"robots.txt asks for Crawl-delay {row.pace.crawl_delay:g}" + slowed
        return ("its answers are slow" if slow > polite.delay else "politeness.delay") + slowed

    # -- one URL

    def explain(self, asked: str, url: str) -> Explanation:
        key = self._key_of(url)
        row = self._cache.url(key)
        if row is None:
            return self._explain_unknown(asked, url)
        host = self._cache.host(host_id(host_of(row.url)))
        state = self._state(key, row, host)
        waits, next_at = self._waits(row, state, host)
        alias_of, alias_why = stands_for(self._cache, key, row)
        return Explanation(
            asked=asked,
            url=row.url,
            key=key.hex(),
            host=host_of(row.url),
            known=True,
            state=state.name.lower(),
            reason=trap_words(self._cache, row.trap)
            if row.reason == Refusal.TRAP and state is UrlState.REFUSED
            else self._rule_in_force(key, row) or _reason(row, state),
            found=self._found_words(row),
            admitted="" if state is UrlState.REFUSED else self._admission.why(self._cache, row),
            trail=tuple(self._trail(row)),
            depth=row.found.depth,
            priority=row.priority,
            tier=f"F{tier_of(row.priority)}",
            waits=waits,
            robots=self._robots_ruling(row.url, host),
            attempts=row.attempts,
            title=row.answer.title,
            content_type=row.answer.content_type,
            fetches=tuple(self._fetches(key)),
            next_at=next_at,
            simhash="" if row.near.simhash is None else f"{row.near.simhash:016x}",
            resembles=self._resembles(row),
            distance=row.near.distance if row.near.of else None,
            resembling=resembling(self._cache, key, row),
            form=self._cache.keys.form(url),
            canonical=row.answer.canonical,
            alias_of=alias_of,
            alias_why=alias_why,
            leads_to=http_form(row.url) if was_led_to_http(row) else leads_to(row),
            rendering=rendering_words(self._cache, key, row, host, self._settings),
            next_crawl_at=next_at if state in (UrlState.COMPLETED, UrlState.GONE) else None,
        )

    def _key_of(self, url: str) -> UrlKey:
        """Also of a form that was posted, by the URL that stands for it in an index."""
        asked, form = split_form(url)
        key = form_key(self._cache.keys.key_of(asked), form) if form else None
        return key if key is not None and self._cache.url(key) else self._cache.keys.key_of(url)

    def _rule_in_force(self, key: UrlKey, row: UrlRow) -> str:
        """The rule as it is now, if a URL is still refused for the reason it was refused for."""
        if row.state != UrlState.REFUSED:
            return ""
        found = as_found(key, row)
        refused = self._admission.refusal(
            Transaction.begin(self._cache, 0.0), found, self._cache.host(host_id(found.host))
        )
        return f"{refused[0]}: {refused[1]}" if refused is not None and refused[0] == row.reason else ""

    def _explain_unknown(self, asked: str, url: str) -> Explanation:
        found = Discovered(
            url=url, key=self._cache.keys.key_of(url), host=host_of(url), depth=1, via=Via.LINK
        )
        refused = self._admission.judge(Transaction.begin(self._cache, 0.0), found)
        outcome = f"it would be refused ({refused[0]}): {refused[1]}" if refused else "it would be admitted"
        return Explanation(
            asked=asked,
            url=url,
            key=found.key.hex(),
            host=found.host,
            known=False,
            state="unknown",
            reason=f"no seed and no page crawled so far named it; if a page linked it, {outcome}",
            robots=self._robots_ruling(url, self._cache.host(host_id(found.host))),
            form=self._cache.keys.form(url),
        )

    def _state(self, key: bytes, row: UrlRow, host: HostRow | None) -> UrlState:
        if row.slot and host is not None and host.lease is not None:
            slots = self._cache.lease_slots(host_id(host.host), host.lease.token)
            if slots.get(key) == row.slot:
                return UrlState.IN_PROGRESS
        return UrlState(row.state)

    def _waits(self, row: UrlRow, state: UrlState, host: HostRow | None) -> tuple[str, float | None]:
        if state is UrlState.FAILED:
            return (
                f"for its retry after {row.answer.failure} (attempt {row.attempts})",
                self._cache.by_the_clock(row.due),
            )
        if state in (UrlState.COMPLETED, UrlState.GONE) and row.due:
            return "for its next visit", self._cache.by_the_clock(row.due)
        if state is not UrlState.QUEUED or host is None:
            return "", None
        before = queries.count_before(self._cache, row, _MOST_COUNTED)
        place = f"{before:,} URLs of {host.host} go first" if before else f"next of {host.host}"
        if row.answer.at and not row.answer.failure:
            place = f"to be looked at again; {place}"
        next_at = self._cache.by_the_clock(self._cache.earliest_start(host))
        return f"{place}; {self._host_words(host)}", next_at

    def _host_words(self, host: HostRow) -> str:
        health = host.health
        if host.policy is not None and host.policy.blocked:
            return "the operator blocked the host"
        if health.given_up:
            return f"the host is given up after {health.failures} failures in a row ({health.last_failure})"
        if host.lease is not None:
            return f"the host is being asked now by {host.lease.worker}"
        if health.failures:
            return (
                f"the host is backing off after {health.failures} failures in a row ({health.last_failure})"
            )
        if is_closed(host):
            return f"the host is not asked now: {closed_words(host, self._settings)}"
        if host.pace.crowded_until and host.pace.crowded_until == host.pace.not_before:
            return f"its address {host.pace.address} is busy with other hosts (politeness.address_rate)"
        if _is_costly(host):
            return "the host rests: a page of it took too long to read (fetch.reading_seconds)"
        if not host.robots.read_at:
            return "its robots.txt has not been read yet"
        return f"the host is asked every {self._cache.delay_of(host):g} s ({self._delay_why(host)})"

    def _found_words(self, row: UrlRow) -> str:
        match row.found.via:
            case Via.SEED:
                return "given as a seed"
            case Via.REDIRECT:
                led = f"a redirect led to it (hop {row.found.hops})"
                return f"{led}, for a page that needs it" if row.found.kind is TaskKind.REQUISITE else led
            case Via.LINK if KINDS[row.found.kind].lists_urls:
                return f"{next(self._trail(row), 'a page')} names it as its {row.found.kind}"
            case Via.LINK:
                followed = f"followed by the extractor {row.found.by}" if row.found.by else "linked"
                return f"{followed}, {row.found.depth} links from a seed"
            case Via.CANONICAL:
                return f"{next(self._trail(row), 'a page')} names it as canonical"
            case Via.PROBE if row.found.kind is TaskKind.SITEMAP:
                return "guessed, because robots.txt names no sitemap (sitemaps.probe)"
            case Via.PROBE if row.found.kind is TaskKind.DECLARATION:
                return "asked of every host, to learn what may be done with its content (opt_outs.files)"
            case Via.PROBE:
                return "made up, to see what the host says of pages that it does not have"
            case Via.RENDER:
                return f"asked for by {next(self._trail(row), 'a page')} while it was rendered"
            case Via.REQUISITE:
                return f"needed by {next(self._trail(row), 'a page')}"
            case Via.ROBOTS:
                return "named as a sitemap by a robots.txt"
            case Via.SITEMAP:
                return f"named by the sitemap {next(self._trail(row), '')}"
            case Via.PUSH:
                return "told of as changed (POST /v1/changed)"
            case Via.FEED:
                return f"named by the feed {next(self._trail(row), '')}"

    def _robots_ruling(self, url: str, host: HostRow | None) -> str:
        if host is None or not host.robots.read_at:
            return "robots.txt has not been read yet"
        ruling = self._cache.rules(host_id(host.host)).decide(target_of(url))
        verb = "allowed" if ruling.allowed else "denied"
        by = f" by line {ruling.line}: {ruling.rule}" if ruling.rule else ", no rule matches"
        return f"{verb}{by} ({_robots_words(host)})"

    def _trail(self, row: UrlRow) -> Iterator[str]:
        """The pages through which it was found, nearest first, up to the seed."""
        parent = row.found.parent
        for _ in range(_LONGEST_TRAIL):
            above = self._cache.url(parent) if parent else None
            if above is None:
                return
            yield above.url
            parent = above.found.parent

    def _resembles(self, row: UrlRow) -> str:
        above = self._cache.url(row.near.of) if row.near.of else None
        return above.url if above is not None else ""

    def _fetches(self, key: UrlKey) -> Iterator[FetchView]:
        for fetch in queries.fetches_of(self._cache, key):
            yield FetchView(**fetch_fields(fetch))


def _is_costly(row: HostRow) -> bool:
    return bool(row.pace.costly_until) and row.pace.costly_until == row.pace.not_before


def _busyness(row: HostRow) -> tuple[int, int, int]:
    return row.counts.fetched, sum(row.queue.lengths), row.health.failures


def _ledger(tally: Tally) -> PolitenessLedger:
    tightest = tally.tightest
    return PolitenessLedger(
        gaps=tally.gaps,
        violations=tally.violations,
        smallest_gap=tightest.seconds if tightest else None,
        required=tightest.required if tightest else None,
        host=tally.tightest_host,
    )


def _reason(row: UrlRow, state: UrlState) -> str:
    if state is UrlState.DENIED:
        return f"robots.txt, {row.rule}"
    if row.reason:
        return f"{row.reason}: {row.rule}" if row.rule else row.reason
    if row.answer.failure:
        return f"{row.answer.failure}: {row.rule}" if row.rule else row.answer.failure
    return row.rule


def _in_a_row(row: HostRow) -> str:
    count = row.health.failures
    return f"{count} failure{'s' * (count > 1)} in a row ({row.health.last_failure})"


def _robots_words(row: HostRow) -> str:
    if row.robots.is_elsewhere:
        return "robots.txt redirects to another host and is being asked for there"
    if not row.robots.read_at:
        return f"not read: {row.health.last_failure}" if row.health.failures else "not read yet"
    if row.robots.failing_since and not 200 <= row.robots.status < 300:
        return f"robots.txt answers {row.robots.status} for long: its last copy, or no rules, is obeyed"
    if 200 <= row.robots.status < 300:
        return "robots.txt read"
    return f"robots.txt answered {row.robots.status}: no rules"
