"""A host belongs to one partition, by its registrable domain, everywhere and for ever."""

from __future__ import annotations

from collections import Counter

import pytest

from skitter.frontier.cluster.shares import share_out
from skitter.model import Host
from skitter.urls.partitions import Partition, part_of

PARTS = range(64)


def part(host: str, parts: int = 256) -> int:
    return part_of(Host(host), parts)


def test_the_partition_of_a_host_never_changes() -> None:
    """These numbers are in the logs of every cluster."""
    found = [
        part(f"http://{name}")
        for name in ("example.org", "example.co.uk", "192.0.2.7", "[2001:db8::1]", "test")
    ]
    assert found == FOR_EVER


FOR_EVER = [181, 248, 39, 56, 211]


@pytest.mark.parametrize(
    "host",
    [
        "https://example.org",
        "http://www.example.org",
        "http://a.b.example.org:8080",
        "http://EXAMPLE.org",
        "http://example.org.",
    ],
)
def test_all_hosts_of_a_domain_are_in_one_partition(host: str) -> None:
    assert part(host) == part("http://example.org")


def test_an_address_is_in_one_partition_with_every_port() -> None:
    assert part("http://192.0.2.7:8080") == part("https://192.0.2.7")
    assert part("http://[2001:db8::1]:8080") == part("http://[2001:db8::1]")


def test_names_below_a_public_suffix_are_spread() -> None:
    assert len({part(f"http://user{n}.github.io") for n in range(50)}) > 20


def test_domains_are_spread_evenly() -> None:
    counts = Counter(part(f"http://domain{n}.org", 16) for n in range(8_000))
    assert len(counts) == 16
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_a_crawl_of_one_partition_has_all_hosts() -> None:
    assert Partition(0, 1).has(Host("http://example.org"))


# -- which node should have which


def owners(nodes: list[str]) -> dict[int, str]:
    return share_out(PARTS, nodes, {})


def test_every_node_has_its_share() -> None:
    counts = Counter(owners(["a", "b", "c"]).values())
    assert sorted(counts.values()) == [21, 21, 22]


def test_a_node_that_joins_takes_its_share_and_nothing_else_moves() -> None:
    before = owners(["a", "b", "c"])
    after = share_out(PARTS, ["a", "b", "c", "d"], before)
    moved = [number for number in PARTS if after[number] != before[number]]
    assert len(moved) == 16
    assert {after[number] for number in moved} == {"d"}


def test_when_a_node_dies_only_its_own_move() -> None:
    before = owners(["a", "b", "c"])
    after = share_out(PARTS, ["a", "c"], before)
    assert all(after[number] == before[number] for number in PARTS if before[number] != "b")
    assert sorted(Counter(after.values()).values()) == [32, 32]


def test_what_is_in_order_stays() -> None:
    before = owners(["a", "b", "c"])
    assert share_out(PARTS, ["c", "b", "a"], before) == before


def test_without_nodes_nobody_has_anything() -> None:
    assert share_out(PARTS, [], {}) == {}


def test_more_nodes_than_partitions_leave_some_without() -> None:
    assert sorted(Counter(share_out([0, 1], ["a", "b", "c"], {}).values()).values()) == [1, 1]
