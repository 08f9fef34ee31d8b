"""The address guard against the lists of three projects that defend against request forgery."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address, ip_network

from skitter.fetch.curl import Fetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Answer, Resolver
from skitter.model import Failed, FailureKind
from skitter.settings import FetchSettings
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import host_of, normalise
from tests.corpora import corpus
from tests.fetching import run

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


def spellings(text: str) -> Iterator[str]:
    """Every way to write an address as the host of a URL."""
    address = ip_address(text)
    if not isinstance(address, IPv4Address):
        yield from (f"[{address.compressed}]", f"[{address.exploded}]", f"[{address.exploded.upper()}]")
        if address.ipv4_mapped is not None:
            yield f"[::ffff:{address.ipv4_mapped}]"
        return
    number, parts = int(address), address.packed
    yield from (text, f"{text}.", str(number), hex(number), f"0{number:o}", f"0X{number:X}")
    yield ".".join(f"0{part:o}" for part in parts)
    yield ".".join(hex(part) for part in parts)
    yield f"{parts[0]}.{number & 0xFFFFFF}"
    yield f"{parts[0]}.{hex(parts[1])}.0{number & 0xFFFF:o}"
    yield "".join(f"%{ord(char):02x}" for char in text)
    yield "".join(chr(ord(char) + 0xFEE0) for char in text)  # full-width digits and dots


def test_no_spelling_of_an_address_in_a_url_hides_it() -> None:
    cases = json.loads((corpus("ssrf") / "ip_cases.json").read_text())
    written = [(spelling, case) for case in cases for spelling in spellings(case["ip"])]

    async def use(fetcher: Fetcher) -> list[str]:
        wrong = []
        for spelling, case in written:
            url = normalise(f"http://{spelling}/")
            assert url is not None, spelling
            answer = await Resolver(FetchSettings(), FakeClock()).resolve(host_of(url)[7:], 80)
            assert isinstance(answer, Answer)
            if [ip_address(found) for found in answer.addresses] != [ip_address(case["ip"])]:
                wrong.append(spelling)
            elif not case["blocked"]:
                if GUARD.refusal(answer.addresses[0]) is not None:
                    wrong.append(spelling)
            elif not _is_refused(await fetcher.fetch(url)):
                wrong.append(spelling)
        return wrong

    assert len(written) > 400
    assert run(use, allow_private=False) == []


def _is_refused(result: object) -> bool:
    return isinstance(result, Failed) and result.kind is FailureKind.ADDRESS_REFUSED
