"""The plan of a synthetic web: which hosts and pages exist, and what a correct crawl of them requests.

Pure and deterministic from its fields, so that the server, the audit and a test that runs in another process
agree without talking. `expected` walks the plan's own links by the rules of a crawler; it never looks at the
HTML that is rendered from them, so that either can show the other wrong.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from skitter.testing.features import (
    FEATURE_SHARES,
    GENTLE_SHARES,
    NAMED_PRODUCT,
    ROBOTS_SHARES,
    RULES,
    Feature,
    Kind,
    RobotsKind,
    Rules,
)
from skitter.testing.sites import FOLLOWED, SITEMAP, Link, Page, Site, Traits, mix

SUBDOMAINS = ("www", "a", "b", "c", "d")
HOST_NAME = re.compile(r"h([0-9]{5,9})(?:\.web)?\.test|(www|[abcd])\.d([0-9]{3,9})\.test")
_NAMELESS = frozenset({RobotsKind.ABSENT, RobotsKind.FORBIDDEN, RobotsKind.UNAVAILABLE, RobotsKind.ELSEWHERE})
HUB_TROUBLE = frozenset({RobotsKind.UNAVAILABLE, RobotsKind.ELSEWHERE, RobotsKind.MOVED})

# A site of 20 pages takes 10 to 13 KB: this bounds the cache at some 250 MB.
CACHED_SITES = 20_000

AtLeastOne = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]


class Expected(NamedTuple):
    """A URL that a correct crawl requests. `fails` as in `Page`: 500s before the answer, -1 for ever."""

    url: str
    kind: Kind
    status: int
    depth: int
    fails: int = 0

    def requests(self, attempts: int) -> int:
        """How often a crawler that tries a failing URL `attempts` times asks for this one."""
        return attempts if self.fails < 0 else min(self.fails + 1, attempts)


class WebPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """`pages` is the mean size of a host's tree, `spread` how far (as a share) a host may differ from it, `tls`
    the share of hosts with https. `listed` is the share of a host's pages that only its sitemap names, and
    `lies` the share of dates in sitemaps that are wrong. `apart` gives the other hosts registrable domains of
    their own, so that a cluster has them in different partitions.

    Hosts are introduced `fanout` at a time by the home pages of the first few (the hubs), which therefore
    have no trouble with their own robots.txt.
    """

    seed: int = 1
    hosts: AtLeastOne = 1000
    pages: AtLeastOne = 20
    spread: Fraction = 0.5
    fanout: AtLeastOne = 200
    features: Mapping[Feature, Fraction] = msgspec.field(default_factory=FEATURE_SHARES.copy)
    robots: Mapping[RobotsKind, Fraction] = msgspec.field(default_factory=ROBOTS_SHARES.copy)
    crawl_delay: Annotated[float, Meta(ge=0)] = 0.2
    tls: Fraction = 0.0
    flaky_failures: AtLeastOne = 2
    listed: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    lies: Fraction = 0.0
    apart: bool = False

    @classmethod
    def demo(cls, seed: int = 1) -> WebPlan:
        """Some 300 pages on 25 hosts, with a little of everything."""
        return cls(seed=seed, hosts=25, pages=9, features=GENTLE_SHARES, crawl_delay=0.1, flaky_failures=1)

    @classmethod
    def plain(cls, hosts: int = 1000, pages: int = 20, seed: int = 1) -> WebPlan:
        """Nothing but pages: for measuring speed."""
        return cls(seed=seed, hosts=hosts, pages=pages, spread=0.0, features={}, robots={})

    @property
    def seeds(self) -> tuple[str, ...]:
        return (self.url(0, "/"),)

    def name(self, host: int) -> str:
        """One host in ten shares its registrable domain with four others."""
        if host % 10 == 3:
            return f"{SUBDOMAINS[host // 10 % 5]}.d{host // 50:03d}.test"
        return f"h{host:05d}.test" if self.apart else f"h{host:05d}.web.test"

    def index(self, name: str) -> int | None:
        """The host of that lower-case name, or None when there is none."""
        found = HOST_NAME.fullmatch(name)
        if found is None:
            return None
        number, subdomain, domain = found.groups()
        host = int(number) if number else int(domain) * 50 + SUBDOMAINS.index(subdomain) * 10 + 3
        return host if host < self.hosts and self.name(host) == name else None

    def url(self, host: int, path: str) -> str:
        return f"{self.origin(host)}{path}"

    def origin(self, host: int) -> str:
        return self._origins(host)

    def is_secure(self, host: int) -> bool:
        return self.tls > 0 and mix(self.seed, host, 3) < self.tls * 2**32

    def site(self, host: int) -> Site:
        return self._sites(host)

    def robots_kind(self, host: int) -> RobotsKind:
        if host == 0 and self.robots.get(RobotsKind.DISALLOW):
            return RobotsKind.DISALLOW
        kind = self._robots_at(self._rank(host, -1))
        return RobotsKind.ABSENT if self._is_hub(host) and kind in HUB_TROUBLE else kind

    def rules(self, host: int) -> Rules | None:
        """The robots.txt in force on the host, wherever it came from; None when it cannot be had."""
        kind = self.robots_kind(host)
        if kind is RobotsKind.ELSEWHERE:
            kind = self.robots_kind(self.hub(host))
        return RULES.get(kind)

    def hub(self, host: int) -> int:
        """The host that introduces this one."""
        return max(host - 1, 0) // self.fanout

    def allows(self, host: int, path: str, product: str = NAMED_PRODUCT) -> bool:
        rules = self.site(host).traits.rules
        if rules is None:
            return False
        named = product.lower() == NAMED_PRODUCT
        for ruled in rules.ruled_paths:
            if ruled.path == path:
                return ruled.named if named else ruled.others
        return True

    def delay(self, name: str) -> float:
        """The Crawl-delay in force on the host of that name; 0 when it asks for none."""
        host = self.index(name)
        rules = None if host is None else self.rules(host)
        return self.crawl_delay if rules and rules.delays else 0.0

    def expected(
        self,
        max_redirects: int = 5,
        product: str = NAMED_PRODUCT,
        admits: Callable[[str], bool] | None = None,
    ) -> dict[str, Expected]:
        """What a correct crawl from the seeds requests, by URL; `admits` narrows its scope by URL."""
        return self.survey(max_redirects, product, admits)[0]

    def expected_robots(self, max_redirects: int = 5, product: str = NAMED_PRODUCT) -> set[str]:
        """The names of the hosts whose robots.txt a correct crawl requests."""
        return self.survey(max_redirects, product, None)[1]

    def survey(
        self, max_redirects: int, product: str, admits: Callable[[str], bool] | None
    ) -> tuple[dict[str, Expected], set[str]]:
        """`expected` and `expected_robots` in one walk."""
        expected: dict[str, Expected] = {}
        hosts: set[str] = set()
        seen = {(0, "/")}
        queue = deque([(0, "/", 0, 0)])
        while queue:
            host, path, depth, hops = queue.popleft()
            if self.name(host) not in hosts:
                hosts.add(self.name(host))
                if self.robots_names_sitemap(host) and (host, SITEMAP) not in seen:
                    seen.add((host, SITEMAP))
                    queue.append((host, SITEMAP, 0, 0))
            if not self.allows(host, path, product):
                continue
            page = self.site(host).page(path)
            assert page is not None, f"the plan links to {self.url(host, path)}, which it does not have"
            url = self.url(host, path)
            expected[url] = Expected(url, page.kind, page.status, depth, page.fails)
            hops = hops + 1 if page.target else 0
            if hops > max_redirects:
                continue
            for target in self._leads_to(host, page):
                place = (target.host, target.path)
                if place not in seen and (admits is None or admits(self.url(*place))):
                    seen.add(place)
                    # a sitemap is no step, and what it names is one from its host
                    queue.append((*place, 0 if target.tag == "sitemap" else depth + 1, hops))
        return expected, hosts

    def _leads_to(self, host: int, page: Page) -> list[Link]:
        if page.target is not None:
            return [page.target]
        if page.kind not in FOLLOWED:
            return []
        return [link for link in self.site(host).links(page) if not link.nofollow]

    @cached_property
    def _origins(self) -> Callable[[int], str]:
        def origin(host: int) -> str:
            return f"{'https' if self.is_secure(host) else 'http'}://{self.name(host)}"

        return lru_cache(CACHED_SITES)(origin)

    @cached_property
    def _sites(self) -> Callable[[int], Site]:
        return lru_cache(CACHED_SITES)(lambda host: Site(self._traits(host)))

    def _traits(self, host: int) -> Traits:
        low = self.pages * (1 - self.spread)
        drawn = low + mix(self.seed, host, 1) / 2**32 * 2 * self.pages * self.spread
        return Traits(
            index=host,
            seed=self.seed,
            hosts=self.hosts,
            pages=max(1, round(drawn)),
            features=frozenset(feature for feature in self.features if self._has(feature, host)),
            rules=self.rules(host),
            siblings=self._fan(self.hub(host)),
            fan=self._fan(host),
            flaky_failures=self.flaky_failures,
            listed=math.ceil(drawn * self.listed / (1 - self.listed)) if self.listed else 0,
            robots_names_sitemap=self.robots_names_sitemap(host),
        )

    def robots_names_sitemap(self, host: int) -> bool:
        """Else the home page does: the host has no robots.txt of its own."""
        return self.listed > 0 and self.robots_kind(host) not in _NAMELESS

    def _fan(self, host: int) -> range:
        first = host * self.fanout + 1
        return range(min(first, self.hosts), min(first + self.fanout, self.hosts))

    def _is_hub(self, host: int) -> bool:
        return host == 0 or host <= (self.hosts - 2) // self.fanout

    def _rank(self, host: int, offset: int) -> int:
        """The host's place in a shuffle of them all: the multiplier shares no factor with their number."""
        prime = 7919 if self.hosts % 7919 else 7907
        return (host * prime + offset) % self.hosts

    def _has(self, feature: Feature, host: int) -> bool:
        """Exactly the share of hosts has it, and at least one when the share is not nothing."""
        offset = mix(self.seed, len(feature), *feature.encode())
        return self._rank(host, offset) < _at_least_one(self.features[feature], self.hosts)

    def _robots_at(self, rank: int) -> RobotsKind:
        for kind in RobotsKind:
            if kind is not RobotsKind.ABSENT:
                rank -= _at_least_one(self.robots.get(kind, 0), self.hosts)
            if rank < 0:
                return kind
        return RobotsKind.ABSENT


def _at_least_one(share: float, hosts: int) -> int:
    return max(1, round(share * hosts)) if share else 0
