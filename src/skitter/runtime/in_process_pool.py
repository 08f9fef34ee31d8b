"""A pool of one worker, in the crawl's own process."""

from __future__ import annotations

from collections.abc import Mapping

from skitter.service.steering.settings import Take
from skitter.settings import Settings
from skitter.telemetry import Ended, Metric, Telemetry
from skitter.wiring import Crawl


class InProcessPool:
    """A `WorkerPool`. Its loop leases from the committer directly, and does the committer's periodic chores."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl

    @property
    def waiting_until(self) -> float | None:
        return self._crawl.loop.waiting_until

    @property
    def draining(self) -> bool:
        return self._crawl.loop.draining

    @property
    def in_flight(self) -> int:
        return self._crawl.stack.fetcher.in_flight

    async def run(self) -> Ended:
        return await self._crawl.loop.run()

    def drain(self) -> None:
        self._crawl.loop.drain()

    def takers(self) -> Mapping[str, Take]:
        return {"fetch.concurrency": self.change_settings, "crawl.linger": self.change_settings}

    def change_settings(self, settings: Settings) -> None:
        self._crawl.loop.change_settings(settings)
        self._crawl.telemetry.concurrency = settings.fetch.concurrency

    def measure(self, telemetry: Telemetry) -> None:
        crawl = self._crawl
        telemetry.gauge(Metric.IN_FLIGHT, self.in_flight)
        telemetry.gauge(Metric.LEASES, crawl.loop.held)
        pulse = round(crawl.loop.longest_pulse * 1000)
        telemetry.gauge(Metric.LONGEST_PULSE, max(pulse, telemetry.value(Metric.LONGEST_PULSE)))
        resolver = crawl.stack.resolver
        telemetry.gauge(Metric.DNS_HITS, resolver.hits)
        telemetry.gauge(Metric.DNS_LOOKUPS, resolver.misses)
        telemetry.gauge(Metric.DNS_FAILURES, resolver.failures)
        telemetry.gauge(Metric.DNS_MS, round(resolver.seconds * 1000))
