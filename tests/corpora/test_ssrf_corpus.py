"""The address guard against the lists of three projects that defend against request forgery."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address, ip_network

from skitter.fetch.curl import CurlFetcher
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Answer, Resolver
from skitter.model import Failed, FailureKind
from skitter.settings import FetchSettings
from skitter.testing.clock import FakeClock
from skitter.urls.canonical import host_of, normalise
from tests.corpora import corpus
from tests.fetching import run

GUARD = AddressGuard(allow_private=False)
# Let pass by its project, which lists what is refused. Nothing outside of 2000::/3 is given out (RFC 4291, 2.4).
OUTSIDE_OF_GLOBAL_UNICAST = "64:ff9c::1"


def cases_of_the_corpus() -> list[tuple[str, bool]]:
    """Addresses, and whether each must be refused."""
    cases = json.loads((corpus("ssrf") / "ip_cases.json").read_text())
    return [(case["ip"], case["blocked"] or case["ip"] == OUTSIDE_OF_GLOBAL_UNICAST) for case in cases]


def test_every_address_of_the_corpus_is_judged_as_its_project_judges_it() -> None:
    cases = cases_of_the_corpus()
    wrong = [address for address, blocked in cases if (GUARD.refusal(address) is not None) != blocked]
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
    written = [(spelling, case) for case in cases_of_the_corpus() for spelling in spellings(case[0])]

    async def use(fetcher: CurlFetcher) -> list[str]:
        wrong = []
        for spelling, (address, blocked) in written:
            url = normalise(f"http://{spelling}/")
            assert url is not None, spelling
            answer = await Resolver(FetchSettings(), FakeClock()).resolve(host_of(url)[7:], 80)
            assert isinstance(answer, Answer)
            if [ip_address(found) for found in answer.addresses] != [ip_address(address)]:
                wrong.append(spelling)
            elif not blocked:
                if GUARD.refusal(answer.addresses[0]) is not None:
                    wrong.append(spelling)
            elif not _is_refused(await fetcher.fetch(url)):
                wrong.append(spelling)
        return wrong

    assert len(written) > 400
    assert run(use, allow_private=False) == []


def _is_refused(result: object) -> bool:
    return isinstance(result, Failed) and result.kind is FailureKind.ADDRESS_REFUSED
