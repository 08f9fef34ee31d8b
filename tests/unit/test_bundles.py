"""Links in bundles: what crosses the wire is what was found, and what was told before is not told twice."""

from __future__ import annotations

from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from skitter.desk.brain import Delivery
from skitter.frontier import bundles_plain
from skitter.frontier.bundles import bundled, check, sifted, untied
from skitter.frontier.rocks import growth
from skitter.frontier.rocks.rows import UrlRow
from skitter.model import Bundle, Discovered, Fetched, Host, Outcome, TaskKind, Token, UrlKey, UrlState, Via
from skitter.schedule.traps import MARK
from skitter.urls.skeleton import section
from skitter.worker.offered import Offered

kernel: ModuleType | None
try:
    from skitter.native import bundles as kernel
except ImportError:
    kernel = None

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


def fetched(*links: Discovered, host: str = "own-host") -> Outcome:
    """What came of a page of this host with these links."""
    return Outcome(
        host=Host(f"http://{host}"),
        token=Token(1),
        kind=TaskKind.PAGE,
        key=UrlKey(host.encode() + b"the-page"),
        sent_at=0.0,
        ended_at=0.0,
        result=Fetched(status=200, bundles=bundled(links)),
    )


def crossed(bundles: tuple[Bundle, ...]) -> tuple[Bundle, ...]:
    bundles = msgspec.msgpack.decode(msgspec.msgpack.encode(bundles), type=tuple[Bundle, ...])
    check(bundles)
    return bundles


def link(name: str, host: str = "own-host", via: Via = Via.LINK) -> Discovered:
    key = UrlKey(host.encode() + name.encode().rjust(8))
    return Discovered(url=f"http://{host}/{name}", key=key, host=Host(f"http://{host}"), depth=2, via=via)


@given(st.lists(links(), max_size=40))
def test_what_was_bundled_is_untied_as_it_was_in_its_order(found: list[Discovered]) -> None:
    assert untied(crossed(bundled(found))) == found


NUMBERS = st.lists(st.integers(0, 12))
LINES = st.lists(st.text("ab/é:h", max_size=12), min_size=1, max_size=12)


@pytest.mark.skipif(kernel is None, reason="the kernel was not built")
@given(LINES, NUMBERS)
def test_links_are_picked_as_they_would_be_without_the_kernel(lines: list[str], numbers: list[int]) -> None:
    assert kernel is not None
    keys, urls = bytes(range(16 * len(lines))), "\n".join(f"http://h{line}/" for line in lines)
    alike = (3, Via.LINK, PAGE, 0, None, 0)
    inside = [number for number in numbers if number < len(lines)]
    expected = bundles_plain.picked(keys, urls, inside, Discovered, *alike)
    assert kernel.picked(keys, urls, inside, Discovered, *alike) == expected
    if inside != numbers:
        for way in (kernel, bundles_plain):
            with pytest.raises(IndexError):
                way.picked(keys, urls, numbers, Discovered, *alike)


@pytest.mark.skipif(kernel is None, reason="the kernel was not built")
@given(
    st.lists(st.text("ab/", max_size=6), min_size=1, max_size=12),
    NUMBERS,
    st.text("ab/", max_size=3),
    st.text("ab/", max_size=6),
)
def test_links_are_left_out_as_they_would_be_without_the_kernel(
    lines: list[str], numbers: list[int], section: str, page: str
) -> None:
    assert kernel is not None
    keys, inside = bytes(range(16 * len(lines))), [number for number in numbers if number < len(lines)]
    given_links = (keys, "\n".join(lines), inside, section, page)
    assert kernel.parted(*given_links) == bundles_plain.parted(*given_links)


@pytest.mark.parametrize("way", [kernel, bundles_plain], ids=["kernel", "plain"])
def test_what_is_no_link_of_a_bundle_is_a_fault_and_not_a_crash(way: ModuleType | None) -> None:
    if way is None:
        pytest.skip("the kernel was not built")
    alike = (3, Via.LINK, PAGE, 0, None, 0)
    with pytest.raises(ValueError):
        way.picked(bytes(16), "no-url", [0], Discovered, *alike)
    for numbers in ([1], [7, 0]):
        with pytest.raises(IndexError):
            way.picked(bytes(16), "http://h/", numbers, Discovered, *alike)
        with pytest.raises(IndexError):
            way.parted(bytes(16), "http://h/", numbers, "", "")
    for keys, urls in ((bytes(32), "a"), (bytes(16), "a\nb"), (b"", "")):
        with pytest.raises(ValueError, match="as many"):
            way.parted(keys, urls, [], "", "")


def test_a_url_that_is_not_ascii_is_left_out_by_the_twin() -> None:
    bundle = Bundle(bytes(range(32)), "http://h/a/é\nhttp://h/b", 1)
    fewer, marks = sifted(bundle, [1], "http://h/a/x")
    assert (fewer.keys, fewer.urls, marks) == (bytes(range(16, 32)), "http://h/b", bytes(range(12, 16)))


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
        check([Bundle(keys, urls, 1)])


def test_what_is_told_is_forgotten_when_the_server_is_another() -> None:
    page = fetched(link("1"), link("2"))
    offered = Offered()
    offered.accepted([page])
    assert offered.sifted(Delivery(page)) != page.result
    offered.forget()
    assert offered.sifted(Delivery(page)) == page.result


def test_what_a_seed_or_a_probe_told_is_told_again() -> None:
    """The links of a probe are not taken: what it alone told would never be known."""
    page = fetched(replace(link("1"), depth=1))
    offered = Offered()
    offered.accepted([page])
    assert offered.sifted(Delivery(page)) == page.result


def test_a_worker_that_leaves_a_link_out_says_so() -> None:
    links = [link("1"), link("1", "another-")]
    outcome = fetched(*links)
    offered = Offered()
    first = offered.sifted(Delivery(outcome))
    assert isinstance(first, Fetched)
    assert (untied(first.bundles), first.told_before) == (links, 0)
    offered.accepted([replace(outcome, result=first)])
    again = offered.sifted(Delivery(outcome))
    assert isinstance(again, Fetched)
    assert (untied(again.bundles), again.told_before, offered.saved) == ([link("1", "another-")], 1, 1)


@pytest.mark.parametrize("via", [Via.CANONICAL, Via.REQUISITE])
def test_what_is_more_than_a_link_crosses_also_when_it_was_told_as_one(via: Via) -> None:
    """A refused link may be let in as the canonical of a page, or as part of one."""
    told, more = link("1"), link("1", via=via)
    offered = Offered()
    offered.accepted([fetched(told)])
    result = offered.sifted(Delivery(fetched(more, told)))
    assert isinstance(result, Fetched)
    assert (untied(result.bundles), result.told_before) == ([more], 1)


def test_a_link_between_hosts_is_a_vote_and_crosses_also_when_its_own_host_told_of_it() -> None:
    there = fetched(link("1", "another-"), host="another-")
    offered = Offered()
    offered.accepted([replace(there, result=offered.sifted(Delivery(there)))])
    here = offered.sifted(Delivery(replace(there, host=Host("http://own-host"), key=PAGE)))
    again = offered.sifted(Delivery(there))
    assert isinstance(here, Fetched)
    assert isinstance(again, Fetched)
    assert (here.told_before, again.told_before) == (0, 1)


def test_what_is_left_out_tells_a_section_the_same_as_what_is_sent() -> None:
    """Whether a section has an end is learnt from links to what is known, whoever read them."""
    page = "http://own-host/shop/shelf/1"
    inside, parent, folder, outside = (
        replace(link(str(number)), url=f"http://own-host/{path}")
        for number, path in enumerate(("shop/shelf/2", "shop/shelf/0", "shop/shelf/", "about"))
    )
    links = bundled([inside, parent, folder, outside])
    row = UrlRow(url=page, state=UrlState.QUEUED, priority=1, depth=1, via=Via.LINK, parent=parent.key)
    name = section(page)
    sent = growth._known(links, (), name, row, b"")
    assert sent == [inside.key[-MARK:]]
    assert growth._known((), (), name, row, sifted(links[0], (), page)[1]) == sent
