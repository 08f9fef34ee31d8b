"""Questions about a crawl: stats, hosts, dead letters, and why a URL was (not) crawled. Nothing here writes."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from skitter.frontier.base import (
    DeadLetter,
    Explanation,
    FetchView,
    Horizon,
    HostExplanation,
    HostStanding,
    HostView,
    PolitenessLedger,
    Stats,
)
from skitter.frontier.rocks.admission import Admission
from skitter.frontier.rocks.aliases import stands_for
from skitter.frontier.rocks.book import Book
from skitter.frontier.rocks.dossier import dossier, fetch_fields
from skitter.frontier.rocks.near import resembling
from skitter.frontier.rocks.rows import (
    ABANDON,
    LISTED,
    REJUDGE,
    HostRow,
    Tally,
    UrlRow,
    decode_host,
    seconds,
)
from skitter.frontier.rocks.subjects import RELEASE
from skitter.frontier.rocks.trap_views import trap_words
from skitter.frontier.rocks.turn import Turn
from skitter.model import Discovered, Host, Refusal, UrlState, Via
from skitter.schedule.priority import TIERS, tier_of
from skitter.settings import Settings
from skitter.urls.canonical import host_id, host_of, target_of

_END = b"\xff" * 16
_LONGEST_TRAIL = 30
_MOST_COUNTED = 10_000
# 2 us each
_HOSTS_AT_ONCE = 500


class Views:
    def __init__(self, book: Book, admission: Admission, settings: Settings) -> None:
        self._book = book
        self._admission = admission
        self._settings = settings

    # -- the crawl

    def horizon(self) -> Horizon:
        tally = self._book.tally
        limit = self._settings.crawl.max_pages
        return Horizon(
            leased_hosts=tally.hosts.get(HostStanding.ACTIVE, 0),
            limit_reached=bool(limit) and tally.pages >= limit,
            next_at=self._next_at(),
        )

    def _next_at(self) -> float | None:
        book = self._book
        firsts = []
        for tier in range(TIERS):
            first = book.ready.first(book.store, tier)
            firsts += [seconds(first[1:9])] if first else []
        due = book.store.scan("due", book.due_low, _END)
        firsts += [seconds(key[:8]) for key, _ in itertools.islice(due, 1)]
        changed = book.store.scan("meta", REJUDGE, REJUDGE + b"\xff" * 9)
        hosts = [book.host(key[len(REJUDGE) :]) for key, _ in itertools.islice(changed, 1)]
        firsts += [book.earliest_start(host) for host in hosts if host is not None]
        abandoned = book.store.scan("meta", ABANDON, ABANDON + b"\xff" * 9)
        firsts += [book.tally.now for _ in itertools.islice(abandoned, 1)]
        if book.store.get("meta", LISTED) is not None:
            firsts.append(book.tally.now)
        released = book.store.scan("meta", RELEASE, RELEASE + b"\xff" * 5)
        firsts += [book.tally.now for _ in itertools.islice(released, 1)]
        return book.by_the_clock(min(firsts)) if firsts else None

    def stats(self) -> Stats:
        tally = self._book.tally
        return Stats(
            urls={state.name.lower(): tally.urls.get(state, 0) for state in UrlState},
            hosts={standing.value: tally.hosts.get(standing, 0) for standing in HostStanding},
            tiers=tuple(tally.tiers),
            pages=tally.pages,
            stored=tally.pages - (unstored := sum(pages for _, pages in tally.held.values())),
            unstored=unstored,
            lost=tally.lost,
            requisites=tally.requisites,
            fetches=tally.fetches,
            robots_fetches=tally.robots_fetches,
            bytes=tally.received,
            failures={kind: n for kind, n in sorted(tally.failures.items()) if n},
            refusals={reason: n for reason, n in sorted(tally.refusals.items()) if n},
            statuses=dict(sorted(tally.statuses.items())),
            leases_expired=tally.leases_expired,
            stale_outcomes=tally.stale_outcomes,
            politeness=_ledger(tally),
            seen_filter=None if self._book.read_only else self._book.seen.figures(),
            next_at=self._next_at(),
            near_duplicates=tally.near,
            aliases=tally.aliases,
        )

    def dead_letters(self, limit: int, host: Host | None) -> list[DeadLetter]:
        prefix = self._book.keys.prefix(host) if host else b""
        letters: list[DeadLetter] = []
        for key, _ in self._book.store.scan("dead", prefix, prefix + _END):
            if len(letters) >= limit:
                break
            row = self._book.url(key)
            if row is not None and (host is None or host_of(row.url) == host):
                letters.append(
                    DeadLetter(
                        url=row.url,
                        kind=row.failure,
                        detail=row.rule,
                        status=row.status,
                        attempts=row.attempts,
                        at=row.fetched_at,
                    )
                )
        return letters

    # -- hosts

    def host(self, host: Host) -> HostView | None:
        row = self._book.host(host_id(host))
        return None if row is None else self.host_view(row)

    def some_hosts(
        self, chosen: list[HostRow], start: bytes, limit: int, standing: HostStanding | None, matching: str
    ) -> tuple[list[HostRow], bytes | None]:
        """The busiest of those chosen so far and of a slice of the table; where the next slice begins."""
        found = list(itertools.islice(self._book.store.scan("hosts", start, _END), _HOSTS_AT_ONCE + 1))
        rows = (decode_host(raw) for _, raw in found[:_HOSTS_AT_ONCE])
        wanted = (
            row for row in rows if (standing is None or row.standing == standing) and matching in row.host
        )
        busiest = heapq.nlargest(limit, itertools.chain(chosen, wanted), key=_busyness)
        return busiest, found[-1][0] if len(found) > _HOSTS_AT_ONCE else None

    def host_view(self, row: HostRow) -> HostView:
        return HostView(
            host=row.host,
            standing=row.standing,
            queued=sum(row.queued),
            fetched=row.fetched,
            failed=row.failed,
            denied=row.denied,
            bytes=row.received,
            delay=self._book.delay_of(row),
            delay_why=self._delay_why(row),
            robots=_robots_words(row),
            failures_in_a_row=row.failures,
            next_start=self._book.by_the_clock(self._book.earliest_start(row)),
            response_ms=row.response_time * 1000,
            address=row.address,
            policy=row.policy,
            smallest_gap=row.tightest.seconds if row.tightest else None,
        )

    def explain_host(self, host: Host, fetches: int) -> HostExplanation | None:
        ident = host_id(host)
        row = self._book.host(ident)
        return None if row is None else dossier(self._book, ident, row, self.host_view(row), fetches)

    def _delay_why(self, row: HostRow) -> str:
        slowed = f", times {row.penalty:g} because it throttled us" if row.penalty > 1 else ""
        if row.policy is not None and row.policy.delay is not None:
            return "the operator's policy" + slowed
        polite = self._settings.politeness
        crawl_delay = min(row.crawl_delay or 0.0, polite.max_crawl_delay)
        slow = polite.slow_factor * row.response_time
        if crawl_delay > max(polite.delay, slow):
            return f"robots.txt asks for Crawl-delay {row.crawl_delay:g}" + slowed
        return ("its answers are slow" if slow > polite.delay else "politeness.delay") + slowed

    # -- one URL

    def explain(self, asked: str, url: str) -> Explanation:
        key = self._book.keys.key_of(url)
        row = self._book.url(key)
        if row is None:
            return self._explain_unknown(asked, url)
        host = self._book.host(host_id(host_of(row.url)))
        state = self._state(key, row, host)
        waits, next_at = self._waits(row, state, host)
        alias_of, alias_why = stands_for(self._book, key, row)
        return Explanation(
            asked=asked,
            url=row.url,
            key=key.hex(),
            host=host_of(row.url),
            known=True,
            state=state.name.lower(),
            reason=trap_words(self._book, row.trap)
            if row.reason == Refusal.TRAP and state is UrlState.REFUSED
            else _reason(row, state),
            found=self._found_words(row),
            admitted="" if state is UrlState.REFUSED else self._admission.why(self._book, row),
            trail=tuple(self._trail(row)),
            depth=row.depth,
            priority=row.priority,
            tier=f"F{tier_of(row.priority)}",
            waits=waits,
            robots=self._robots_ruling(row.url, host),
            attempts=row.attempts,
            title=row.title,
            content_type=row.content_type,
            fetches=tuple(self._fetches(key)),
            next_at=next_at,
            simhash="" if row.simhash is None else f"{row.simhash:016x}",
            resembles=self._resembles(row),
            distance=row.distance if row.near_of else None,
            resembling=resembling(self._book, key, row),
            form=self._book.keys.form(url),
            canonical=row.canonical,
            alias_of=alias_of,
            alias_why=alias_why,
        )

    def _explain_unknown(self, asked: str, url: str) -> Explanation:
        found = Discovered(url=url, key=self._book.keys.key_of(url), host=host_of(url), depth=1, via=Via.LINK)
        refused = self._admission.judge(Turn.begin(self._book, 0.0), found)
        verdict = f"it would be refused ({refused[0]}): {refused[1]}" if refused else "it would be admitted"
        return Explanation(
            asked=asked,
            url=url,
            key=found.key.hex(),
            host=found.host,
            known=False,
            state="unknown",
            reason=f"no seed and no page crawled so far named it; if a page linked it, {verdict}",
            robots=self._robots_ruling(url, self._book.host(host_id(found.host))),
            form=self._book.keys.form(url),
        )

    def _state(self, key: bytes, row: UrlRow, host: HostRow | None) -> UrlState:
        if row.slot and host is not None and host.lease is not None:
            slots = self._book.lease_slots(host_id(host.host), host.lease.token)
            if slots.get(key) == row.slot:
                return UrlState.IN_PROGRESS
        return UrlState(row.state)

    def _waits(self, row: UrlRow, state: UrlState, host: HostRow | None) -> tuple[str, float | None]:
        if state is UrlState.FAILED:
            return f"for its retry after {row.failure} (attempt {row.attempts})", self._book.by_the_clock(
                row.due
            )
        if state is not UrlState.QUEUED or host is None:
            return "", None
        before = self._before(row)
        place = f"{before:,} URLs of {host.host} go first" if before else f"next of {host.host}"
        if row.fetched_at and not row.failure:
            place = f"to be looked at again; {place}"
        next_at = self._book.by_the_clock(self._book.earliest_start(host))
        return f"{place}; {self._host_words(host)}", next_at

    def _before(self, row: UrlRow) -> int:
        ident = row.slot[:8]
        return sum(
            1 for _ in itertools.islice(self._book.store.scan("queue", ident, row.slot), _MOST_COUNTED)
        )

    def _host_words(self, host: HostRow) -> str:
        if host.policy is not None and host.policy.blocked:
            return "the operator blocked the host"
        if host.given_up:
            return f"the host is given up after {host.failures} failures in a row ({host.last_failure})"
        if host.lease is not None:
            return f"the host is being asked now by {host.lease.worker}"
        if host.failures:
            return f"the host is backing off after {host.failures} failures in a row ({host.last_failure})"
        if host.crowded and host.crowded == host.not_before:
            return f"its address {host.address} is busy with other hosts (politeness.address_rate)"
        if not host.robots_at:
            return "its robots.txt has not been read yet"
        return f"the host is asked every {self._book.delay_of(host):g} s ({self._delay_why(host)})"

    def _found_words(self, row: UrlRow) -> str:
        match row.via:
            case Via.SEED:
                return "given as a seed"
            case Via.REDIRECT:
                led = f"a redirect led to it (hop {row.hops})"
                return f"{led}, for a page that needs it" if row.requisite else led
            case Via.LINK:
                return f"linked, {row.depth} links from a seed"
            case Via.CANONICAL:
                return f"{next(self._trail(row), 'a page')} names it as canonical"
            case Via.PROBE:
                return "made up, to see what the host says of pages that it does not have"
            case Via.REQUISITE:
                return f"needed by {next(self._trail(row), 'a page')}"

    def _robots_ruling(self, url: str, host: HostRow | None) -> str:
        if host is None or not host.robots_at:
            return "robots.txt has not been read yet"
        ruling = self._book.rules(host_id(host.host)).decide(target_of(url))
        verb = "allowed" if ruling.allowed else "denied"
        by = f" by line {ruling.line}: {ruling.rule}" if ruling.rule else ", no rule matches"
        return f"{verb}{by} ({_robots_words(host)})"

    def _trail(self, row: UrlRow) -> Iterator[str]:
        """The pages through which it was found, nearest first, up to the seed."""
        parent = row.parent
        for _ in range(_LONGEST_TRAIL):
            above = self._book.url(parent) if parent else None
            if above is None:
                return
            yield above.url
            parent = above.parent

    def _resembles(self, row: UrlRow) -> str:
        above = self._book.url(row.near_of) if row.near_of else None
        return above.url if above is not None else ""

    def _fetches(self, key: bytes) -> Iterator[FetchView]:
        for entry, raw in self._book.store.scan("ledger", key, key + _END):
            yield FetchView(**fetch_fields(entry, raw))


def _busyness(row: HostRow) -> tuple[int, int, int]:
    return row.fetched, sum(row.queued), row.failures


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
    if row.failure:
        return f"{row.failure}: {row.rule}" if row.rule else row.failure
    return row.rule


def _robots_words(row: HostRow) -> str:
    if row.robots_elsewhere:
        return "robots.txt redirects to another host and is being asked for there"
    if not row.robots_at:
        return f"not read: {row.last_failure}" if row.failures else "not read yet"
    if row.robots_failing_since and not 200 <= row.robots_status < 300:
        return f"robots.txt answers {row.robots_status} for long: its last copy, or no rules, is obeyed"
    if 200 <= row.robots_status < 300:
        return "robots.txt read"
    return f"robots.txt answered {row.robots_status}: no rules"
