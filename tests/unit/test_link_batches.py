"""Links in bundles: what crosses the wire is what was found, and what was told before is not told twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from skitter.committer.work_source import Delivery
from skitter.frontier import link_batches_plain
from skitter.frontier.engine.traps import endless_sections
from skitter.frontier.link_batches import check, pack, split, unpack
from skitter.frontier.rows import Found, UrlRow
from skitter.model import (
    Discovered,
    Fetched,
    Host,
    LinkBatch,
    LinkColumns,
    Outcome,
    TaskKind,
    Token,
    UrlKey,
    UrlState,
    Via,
)
from skitter.schedule.traps import TAG
from skitter.urls.skeleton import section
from skitter.worker.remote.sent_links import SentLinks

kernel: SimpleNamespace | None
try:
    from skitter.native import _kernels

    kernel = SimpleNamespace(select_links=_kernels.select_links, split_batch=_kernels.split_batch)
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
        kind=draw(st.sampled_from([TaskKind.PAGE, TaskKind.REQUISITE])),
        nesting=draw(st.integers(0, 1)),
        lastmod=draw(st.sampled_from([None, None, 1.5e9])),
        rel=draw(st.sampled_from(["", "", "next"])),
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
        result=Fetched(status=200, link_batches=pack(links)),
    )


def crossed(link_batches: tuple[LinkBatch, ...]) -> tuple[LinkBatch, ...]:
    link_batches = msgspec.msgpack.decode(msgspec.msgpack.encode(link_batches), type=tuple[LinkBatch, ...])
    check(link_batches)
    return link_batches


def link(name: str, host: str = "own-host", via: Via = Via.LINK) -> Discovered:
    key = UrlKey(host.encode() + name.encode().rjust(8))
    return Discovered(url=f"http://{host}/{name}", key=key, host=Host(f"http://{host}"), depth=2, via=via)


@given(st.lists(links(), max_size=40))
def test_what_was_bundled_is_untied_as_it_was_in_its_order(found: list[Discovered]) -> None:
    assert unpack(crossed(pack(found))) == found


NUMBERS = st.lists(st.integers(0, 12))
LINES = st.lists(st.text("ab/é:h", max_size=12), min_size=1, max_size=12)


@pytest.mark.skipif(kernel is None, reason="the kernel was not built")
@given(LINES, NUMBERS)
def test_links_are_picked_as_they_would_be_without_the_kernel(lines: list[str], numbers: list[int]) -> None:
    assert kernel is not None
    keys, urls = bytes(range(16 * len(lines))), "\n".join(f"http://h{line}/" for line in lines)
    alike = (3, Via.LINK, PAGE, 0, None, TaskKind.PAGE, 0)
    inside = [number for number in numbers if number < len(lines)]
    expected = link_batches_plain.select_links(keys, urls, inside, Discovered, *alike)
    assert kernel.select_links(keys, urls, inside, Discovered, *alike) == expected
    if inside != numbers:
        for way in (kernel, link_batches_plain):
            with pytest.raises(IndexError):
                way.select_links(keys, urls, numbers, Discovered, *alike)


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
    assert kernel.split_batch(*given_links) == link_batches_plain.split_batch(*given_links)


@pytest.mark.parametrize("way", [kernel, link_batches_plain], ids=["kernel", "plain"])
def test_what_is_no_link_of_a_bundle_is_a_fault_and_not_a_crash(way: Any) -> None:
    if way is None:
        pytest.skip("the kernel was not built")
    alike = (3, Via.LINK, PAGE, 0, None, TaskKind.PAGE, 0)
    with pytest.raises(ValueError):
        way.select_links(bytes(16), "no-url", [0], Discovered, *alike)
    for numbers in ([1], [7, 0]):
        with pytest.raises(IndexError):
            way.select_links(bytes(16), "http://h/", numbers, Discovered, *alike)
        with pytest.raises(IndexError):
            way.split_batch(bytes(16), "http://h/", numbers, "", "")
    for keys, urls in ((bytes(32), "a"), (bytes(16), "a\nb"), (b"", "")):
        with pytest.raises(ValueError, match="as many"):
            way.split_batch(keys, urls, [], "", "")


def test_a_url_that_is_not_ascii_is_left_out_by_the_twin() -> None:
    link_batch = LinkBatch(bytes(range(32)), "http://h/a/é\nhttp://h/b", 1)
    fewer, marks = split(link_batch, [1], "http://h/a/x")
    assert (fewer.keys, fewer.urls, marks) == (bytes(range(16, 32)), "http://h/b", bytes(range(12, 16)))


def test_thirty_links_of_one_page_are_one_bundle() -> None:
    assert len(pack([link(str(number)) for number in range(30)])) == 1


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
        check([LinkBatch(keys, urls, 1)])


def test_what_is_told_is_forgotten_when_the_server_is_another() -> None:
    page = fetched(link("1"), link("2"))
    sent_links = SentLinks()
    sent_links.remember([page])
    assert sent_links.leave_out_sent(Delivery(page)) != page.result
    sent_links.forget()
    assert sent_links.leave_out_sent(Delivery(page)) == page.result


def test_what_a_seed_or_a_probe_told_is_told_again() -> None:
    """The links of a probe are not taken: what it alone told would never be known."""
    page = fetched(replace(link("1"), depth=1))
    sent_links = SentLinks()
    sent_links.remember([page])
    assert sent_links.leave_out_sent(Delivery(page)) == page.result


def test_what_was_too_deep_is_told_again() -> None:
    page = fetched(replace(link("1"), depth=4))
    sent_links = SentLinks()
    sent_links.deepest = 3
    sent_links.remember([page])
    nearer = fetched(replace(link("1"), depth=3))
    assert sent_links.leave_out_sent(Delivery(nearer)) == nearer.result


def test_a_worker_that_leaves_a_link_out_says_so() -> None:
    links = [link("1"), link("1", "another-")]
    outcome = fetched(*links)
    sent_links = SentLinks()
    first = sent_links.leave_out_sent(Delivery(outcome))
    assert isinstance(first, Fetched)
    assert (unpack(first.link_batches), first.already_sent) == (links, 0)
    sent_links.remember([replace(outcome, result=first)])
    again = sent_links.leave_out_sent(Delivery(outcome))
    assert isinstance(again, Fetched)
    assert (unpack(again.link_batches), again.already_sent, sent_links.saved) == (
        [link("1", "another-")],
        1,
        1,
    )


@pytest.mark.parametrize("via", [Via.CANONICAL, Via.REQUISITE])
def test_what_is_more_than_a_link_crosses_also_when_it_was_told_as_one(via: Via) -> None:
    """A refused link may be let in as the canonical of a page, or as part of one."""
    told, more = link("1"), link("1", via=via)
    sent_links = SentLinks()
    sent_links.remember([fetched(told)])
    result = sent_links.leave_out_sent(Delivery(fetched(more, told)))
    assert isinstance(result, Fetched)
    assert (unpack(result.link_batches), result.already_sent) == ([more], 1)


def test_a_link_between_hosts_is_a_vote_and_crosses_also_when_its_own_host_told_of_it() -> None:
    there = fetched(link("1", "another-"), host="another-")
    sent_links = SentLinks()
    sent_links.remember([replace(there, result=sent_links.leave_out_sent(Delivery(there)))])
    here = sent_links.leave_out_sent(Delivery(replace(there, host=Host("http://own-host"), key=PAGE)))
    again = sent_links.leave_out_sent(Delivery(there))
    assert isinstance(here, Fetched)
    assert isinstance(again, Fetched)
    assert (here.already_sent, again.already_sent) == (0, 1)


def test_what_is_left_out_tells_a_section_the_same_as_what_is_sent() -> None:
    """Whether a section has an end is learnt from links to what is known, whoever read them."""
    page = "http://own-host/shop/shelf/1"
    inside, parent, folder, outside = (
        replace(link(str(number)), url=f"http://own-host/{path}")
        for number, path in enumerate(("shop/shelf/2", "shop/shelf/0", "shop/shelf/", "about"))
    )
    links = pack([inside, parent, folder, outside])
    row = UrlRow(url=page, state=UrlState.QUEUED, priority=1, found=Found(1, Via.LINK, parent.key))
    name = section(page)
    sent = endless_sections._known(links, (), name, row, b"")
    assert sent == [inside.key[-TAG:]]
    assert endless_sections._known((), (), name, row, split(links[0], (), page)[1]) == sent


def with_columns() -> LinkBatch:
    (batch,) = pack([link(str(number)) for number in range(3)])
    columns = LinkColumns(lastmod=(1.0, None, 3.0), priority=(10, 20, 30), rel=("next", "", "prev"))
    return replace(batch, columns=columns)


def test_columns_of_a_batch_are_facts_of_its_links() -> None:
    found = [(one.lastmod, one.priority, one.rel) for one in unpack([with_columns()])]
    assert found == [(1.0, 10, "next"), (None, 20, ""), (3.0, 30, "prev")]


def test_columns_stay_with_the_links_that_are_kept_and_cross_the_wire() -> None:
    fewer, _ = split(with_columns(), [2, 0], "")
    crossed = msgspec.msgpack.decode(msgspec.msgpack.encode(fewer), type=LinkBatch)
    assert [(one.lastmod, one.priority, one.rel) for one in unpack([crossed])] == [
        (1.0, 10, "next"),
        (3.0, 30, "prev"),
    ]


def test_a_column_that_is_too_short_is_refused() -> None:
    batch = replace(with_columns(), columns=LinkColumns(rel=("next",)))
    with pytest.raises(ValueError, match="a column of 1 with 3 keys"):
        check([batch])
