"""The address guard against the lists of three projects that defend against request forgery."""

from __future__ import annotations

import json
import random
from ipaddress import ip_network

from skitter.fetch.guard import AddressGuard
from tests.corpora import corpus

GUARD = AddressGuard(allow_private=False)


def test_every_address_of_the_corpus_is_judged_as_its_project_judges_it() -> None:
    cases = json.loads((corpus("ssrf") / "ip_cases.json").read_text())
    wrong = [case["ip"] for case in cases if (GUARD.refusal(case["ip"]) is not None) != case["blocked"]]
    assert len(cases) == 59
    assert wrong == []


def test_every_blocked_range_is_refused_from_its_first_address_to_its_last() -> None:
    ranges = json.loads((corpus("ssrf") / "blocked_ranges.json").read_text())["ranges"]
    dice = random.Random(9309)
    reached = []
    for text in ranges:
        network = ip_network(text)
        last = network.num_addresses - 1
        for index in (0, last, *(dice.randint(0, last) for _ in range(50))):
            address = str(network[index])
            if GUARD.refusal(address) is None:
                reached.append((text, address))
    assert len(ranges) == 26
    assert reached == []
