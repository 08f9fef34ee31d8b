"""What a cluster says is left: sums of all partitions, and the time of the one that takes longest."""

from __future__ import annotations

from skitter.frontier.cluster.merging import merge_estimates
from skitter.plan.estimate import Estimate, SoFar, estimate
from skitter.plan.growth import Band
from skitter.plan.workload import HostWork, Workload


def of_one_host(host: str, queued: int, interval: float) -> Estimate:
    work = Workload()
    work.add(
        HostWork(
            host=host,
            queued=queued,
            interval=interval,
            gap=0.0,
            opens_in=0.0,
            answers=0,
            brought=0,
            recent=0.0,
            bytes=0,
            most=float("inf"),
            why="the crawl's delay",
        )
    )
    return estimate(work.result(), SoFar())


def test_urls_add_up_and_the_slowest_partition_says_how_long() -> None:
    quick, slow = of_one_host("http://a.test", 500, 0.1), of_one_host("http://b.test", 100, 10.0)
    merged = merge_estimates([quick, slow])
    assert merged.urls.likely == quick.urls.likely + slow.urls.likely == 600
    assert merged.seconds.likely == slow.seconds.likely > quick.seconds.likely
    assert merged.limits == slow.limits
    assert [host.host for host in merged.hosts] == ["http://b.test", "http://a.test"]
    assert isinstance(merged.seconds, Band)
