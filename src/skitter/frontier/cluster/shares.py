"""Which node should have which partition: a wish that all nodes compute alike. The fence decides who has it.

Pure. Every node keeps what it has, as far as that is its share; what is left over goes to the node that scores
highest for it among those with room. So a node that comes or goes moves its share and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b


def share_out(parts: Sequence[int], nodes: Sequence[str], owners: Mapping[int, str]) -> dict[int, str]:
    """The node of each partition; `owners` are those that have one now. No node gets more than one partition more
    than another."""
    if not nodes:
        return {}
    held: dict[str, list[int]] = {node: [] for node in nodes}
    for part in parts:
        if (owner := owners.get(part, "")) in held:
            held[owner].append(part)
    fewest, more = divmod(len(parts), len(nodes))
    by_size = sorted(nodes, key=lambda node: (-len(held[node]), node))
    room = {node: fewest + (place < more) for place, node in enumerate(by_size)}
    wished: dict[int, str] = {}
    for node, own in held.items():
        for part in sorted(own, key=lambda part: -score(node, part))[: room[node]]:
            wished[part] = node
            room[node] -= 1
    for part in parts:
        if part not in wished:
            node = max((one for one in nodes if room[one]), key=lambda one: score(one, part))
            wished[part] = node
            room[node] -= 1
    return wished


def score(node: str, part: int) -> int:
    """Of a node for a partition (rendezvous hashing)."""
    return int.from_bytes(blake2b(f"{node}|{part}".encode(), digest_size=8).digest(), "big")
