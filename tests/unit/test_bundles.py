"""Links in bundles: what crosses the wire is what was found, and what was told before is not told twice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.desk.brain import Delivery
from skitter.desk.bundles import Bundle, Told, Untied, bundled
from skitter.model import Discovered, Fetched, Host, Outcome, TaskKind, Token, UrlKey, Via
from skitter.worker.offered import Offered

PAGE = UrlKey(b"own-host" + b"the-page")
HOSTS = st.sampled_from([(Host("http://a.test"), b"own-host"), (Host("http://b.test"), b"another-")])


@st.composite
def links(draw: st.DrawFn) -> Discovered:
    host, prefix = draw(HOSTS)
    rest = draw(st.binary(min_size=8, max_size=8))
    return Discovered(
        url=f"{host}/{rest.hex()}",
        key=UrlKey(prefix + rest),
        host=host,
        depth=draw(st.integers(0, 3)),
        via=draw(st.sampled_from([Via.LINK, Via.LINK, Via.CANONICAL])),
        parent=draw(st.sampled_from([None, PAGE])),
        hops=draw(st.integers(0, 1)),
        priority=draw(st.sampled_from([None, 7])),
        requisite=draw(st.integers(0, 1)),
    )


def crossed(bundles: list[Bundle]) -> list[Bundle]:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(bundles), type=list[Bundle])


def link(name: str, host: str = "own-host", via: Via = Via.LINK) -> Discovered:
    key = UrlKey(host.encode() + name.encode().rjust(8))
    return Discovered(url=f"http://{host}/{name}", key=key, host=Host(f"http://{host}"), depth=1, via=via)


@given(st.lists(links(), max_size=40))
def test_what_was_bundled_is_untied_as_it_was_in_its_order(found: list[Discovered]) -> None:
    untied = Untied(PAGE, crossed(bundled(found)), Told())
    assert untied.links == found
    assert untied.known == 0


@given(st.lists(links(), max_size=40), st.data())
def test_only_own_links_that_were_told_are_left_out_and_counted(
    found: list[Discovered], data: st.DataObject
) -> None:
    told = Told()
    keys = {one.key for one in found if data.draw(st.booleans())}
    told.add(keys)
    untied = Untied(PAGE, crossed(bundled(found)), told)
    own = [one.via is Via.LINK and one.key.startswith(b"own-host") for one in found]
    left = [one for one, is_own in zip(found, own, strict=True) if not (is_own and one.key in keys)]
    assert untied.links == left
    assert untied.known == len(found) - len(left)
    assert set(untied.own) == {
        one.key for one, is_own in zip(found, own, strict=True) if is_own and one.key not in keys
    }


def test_thirty_links_of_one_page_are_one_bundle() -> None:
    assert len(bundled([link(str(number)) for number in range(30)])) == 1


@pytest.mark.parametrize(
    ("keys", "urls"),
    [
        (b"", "http://a.test/"),
        (b"k" * 17, "http://a.test/"),
        (b"k" * 32, "http://a.test/"),
        (b"k" * 16, "a\nb"),
    ],
)
def test_a_bundle_whose_strings_do_not_match_is_refused(keys: bytes, urls: str) -> None:
    with pytest.raises(ValueError, match="keys"):
        Untied(PAGE, [Bundle(keys, urls, Host("http://a.test"), 1)], Told())


def test_what_was_told_is_forgotten_in_halves() -> None:
    told = Told(most=2)
    keys = [bytes([number]) * 16 for number in range(6)]
    for key in keys[:3]:
        told.add([key])
    assert told.among(keys[:3]) == set(keys[:3])
    for key in keys[3:]:
        told.add([key])
    assert told.among(keys) == set(keys[3:])
    told.forget()
    assert told.among(keys) == set()


def test_a_worker_that_leaves_a_link_out_says_so() -> None:
    result = Fetched(status=200, links=(link("1"), link("1", "another-")))
    outcome = Outcome(
        host=Host("http://own-host"),
        token=Token(1),
        kind=TaskKind.PAGE,
        key=PAGE,
        sent_at=0.0,
        ended_at=0.0,
        result=result,
    )
    offered = Offered()
    assert offered.sifted(Delivery(outcome)).outcome == outcome
    offered.accepted([outcome])
    sifted = offered.sifted(Delivery(outcome)).outcome.result
    assert isinstance(sifted, Fetched)
    assert (sifted.links, sifted.told_before, offered.saved) == ((link("1", "another-"),), 1, 1)
