"""Renderings: no host is asked by one, what its page asks for is, and its outcome counts once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from skitter.frontier.base import Settled, Settlement
from skitter.frontier.link_batches import pack
from skitter.model import (
    Discovered,
    Fetched,
    HostPolicy,
    Outcome,
    RecordAt,
    Rendered,
    RenderTask,
    SegmentMark,
    Standby,
    TaskKind,
    Via,
)
from skitter.settings import ArchiveSettings, CrawlSettings, Settings
from skitter.settings.rendering import RenderSettings
from skitter.urls.canonical import host_of
from tests.contract.conftest import Start
from tests.frontier_kit import OK, Driver, discovered, failed, robots
from tests.keys import key_of

A = "http://a.test"
AT = RecordAt("s-00000.warc.gz", 10, 20)
ALWAYS = Settings(crawl=CrawlSettings(render="always"))
AUTO = Settings(crawl=CrawlSettings(render="auto"))
SHELL = replace(OK, looks="shell: an empty mount node", record=AT, digest=b"d" * 32)
SCRIPTED = replace(SHELL, looks="scripted")
DONE = Rendered(ending="done", size=900, text=500, digest=b"r" * 32, record=AT)


def lease_renders(driver: Driver, capacity: int = 10, worker: str = "w1") -> list[RenderTask]:
    return driver.run(driver.frontier.lease_renders(worker, capacity, 60.0))


def outcome(driver: Driver, task: RenderTask, result: Rendered) -> Outcome:
    now = driver.clock.now()
    return Outcome(
        host=host_of(task.url),
        token=task.token,
        kind=TaskKind.RENDER,
        key=task.key,
        sent_at=now,
        ended_at=now,
        result=result,
    )


def rendered(driver: Driver, task: RenderTask, result: Rendered = DONE) -> Settlement:
    return driver.settle(outcome(driver, task, result))[0]


def asking(*urls: str, keeps_tab: bool = False) -> Rendered:
    found = [
        Discovered(
            url=url, key=key_of(url), host=host_of(url), depth=0, via=Via.RENDER, kind=TaskKind.REQUISITE
        )
        for url in urls
    ]
    return Rendered(ending="waiting", awaited=pack(found), keeps_tab=keeps_tab)


def linking(*urls: str) -> Rendered:
    return replace(DONE, link_batches=pack([discovered(url, priority=None) for url in urls]))


def shown(driver: Driver, *paths: str, page: Fetched = SHELL) -> list[RenderTask]:
    """Pages that were fetched and leased to be rendered."""
    driver.open_host(*(A + path for path in paths or ("/",)))
    driver.answer(driver.lease_one(), page)
    return lease_renders(driver)


def test_a_page_is_rendered_once_it_is_fetched_and_its_links_are_admitted_with_the_outcome(
    start: Start,
) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    assert (task.url, task.round) == (A + "/", 0)
    settled = rendered(driver, task, linking(A + "/1", A + "/2", "http://far.test/"))
    assert (settled.settled, settled.added, settled.refused) == (Settled.ACCEPTED, 2, 1)
    figures = driver.stats().renderings
    assert figures is not None
    assert (figures.done, figures.changed, figures.gained) == (1, 1, 2)
    assert driver.explain(A + "/1").state == "queued"
    assert "2 new URLs" in driver.explain(A + "/").rendering[0]


def test_a_rendering_is_no_request_no_page_and_no_visit(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    before, host = driver.stats(), driver.host(A)
    rendered(driver, task)
    after = driver.stats()
    assert (after.pages, after.fetches, after.bytes) == (before.pages, before.fetches, before.bytes)
    assert driver.host(A) == host
    assert len(driver.explain(A + "/").fetches) == 1


def test_never_renders_nothing_and_a_hosts_policy_decides_for_it(start: Start) -> None:
    driver = start(Settings())
    driver.set_policy("http://b.test", HostPolicy(render="always"))
    driver.open_host(A + "/", "http://b.test/")
    leases = driver.lease()
    assert {lease.host: lease.weighs_rendering for lease in leases} == {A: False, "http://b.test": True}
    for lease in leases:
        driver.answer(lease, SHELL)
    assert [task.url for task in lease_renders(driver)] == ["http://b.test/"]


def test_what_a_page_asks_for_is_fetched_before_other_pages_and_then_its_rendering_goes_on(
    start: Start,
) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    driver.admit(*(discovered(f"{A}/{number}") for number in range(5)))
    rendered(driver, task, asking(A + "/app.js", A + "/data.json"))
    assert lease_renders(driver) == []
    assert driver.explain(A + "/app.js").found == f"asked for by {A}/ while it was rendered"
    driver.clock.advance(5)
    lease = driver.lease_one()
    assert [each.url for each in lease.tasks[:2]] == [A + "/app.js", A + "/data.json"]
    driver.settle(driver.outcome(lease, SHELL, lease.tasks[0]))
    assert lease_renders(driver) == []
    driver.settle(driver.outcome(lease, failed(), lease.tasks[1]))
    (again,) = lease_renders(driver)
    assert (again.round, again.token > task.token) == (1, True)


def test_answers_say_what_is_held_waiting_refused_and_unknown(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver, page=replace(SHELL, record=AT, status=200))
    rendered(driver, task, asking(A + "/wait.js"))
    urls = [A + "/", A + "/wait.js", A + "/new.js"]
    found = driver.ask(driver.frontier.answers(urls))
    assert [each.standby for each in found] == [Standby.HELD, Standby.WAITING, Standby.UNKNOWN]
    assert (found[0].record, found[0].digest) == (AT, b"d" * 32)


def test_what_robots_txt_denies_is_not_asked_for_and_nobody_waits_for_it(start: Start) -> None:
    driver = start(ALWAYS)
    driver.open_host(A + "/", body=robots("Disallow: /private/"))
    driver.fetch(SHELL)
    (task,) = lease_renders(driver)
    rendered(driver, task, asking(A + "/private/x.js"))
    driver.clock.advance(5)
    assert driver.lease() == []
    (again,) = lease_renders(driver)
    assert driver.ask(driver.frontier.answers([A + "/private/x.js"]))[0].standby is Standby.REFUSED
    assert again.round == 1


def test_a_rendering_that_waits_too_long_goes_on_without_the_answer(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    rendered(driver, task, asking(A + "/slow.js"))
    driver.clock.advance(599)
    assert lease_renders(driver) == []
    driver.clock.advance(2)
    driver.reap()
    (again,) = lease_renders(driver)
    rendered(driver, again, asking(A + "/other.js"))
    driver.clock.advance(2)
    lease = driver.lease_one()
    # the answer that came too late for its own round is none of the next one
    late = next(each for each in lease.tasks if each.url == A + "/slow.js")
    driver.settle(driver.outcome(lease, SHELL, late))
    assert lease_renders(driver) == []


def test_after_so_many_rounds_a_rendering_ends_with_what_it_has(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(render="always"), render=RenderSettings(max_rounds=1)))
    (task,) = shown(driver)
    rendered(driver, task, asking(A + "/private.js"))
    driver.clock.advance(700)
    driver.reap()
    (again,) = lease_renders(driver)
    rendered(driver, again, replace(asking(A + "/more.js"), ending="done"))
    figures = driver.stats().renderings
    assert figures is not None
    assert (figures.done, figures.rounds) == (1, 1)
    assert driver.explain(A + "/more.js").known is False


def test_a_rendering_is_first_for_who_has_its_tab(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    driver.clock.advance(5)
    rendered(driver, task, asking(A + "/app.js", keeps_tab=True))
    driver.fetch(SHELL)
    assert lease_renders(driver, worker="w2") == []
    driver.clock.advance(6)
    assert len(lease_renders(driver, worker="w2")) == 1


def test_only_the_live_lease_settles_a_rendering_and_only_once(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    driver.clock.advance(61)
    driver.reap()
    (later,) = lease_renders(driver)
    assert rendered(driver, task).settled is Settled.STALE
    twice = driver.settle(outcome(driver, later, DONE), outcome(driver, later, DONE))
    assert [each.settled for each in twice] == [Settled.ACCEPTED, Settled.STALE]
    assert rendered(driver, later).settled is Settled.STALE


@pytest.mark.parametrize("state", ["queued", "leased", "awaiting"])
def test_a_rendering_survives_the_death_of_the_process(start: Start, state: str) -> None:
    driver = start(ALWAYS)
    driver.open_host(A + "/")
    driver.fetch(SHELL)
    if state != "queued":
        (task,) = lease_renders(driver)
        if state == "awaiting":
            rendered(driver, task, asking(A + "/app.js"))
    driver.reopen()
    if state == "awaiting":
        driver.clock.advance(5)
        driver.fetch(SHELL)
    (again,) = lease_renders(driver)
    assert rendered(driver, again).settled is Settled.ACCEPTED


def test_a_crawl_is_not_over_while_something_is_to_be_rendered(start: Start) -> None:
    driver = start(ALWAYS)
    driver.open_host(A + "/")
    driver.fetch(SHELL)
    assert driver.ask(driver.frontier.horizon()).next_at is not None
    (task,) = lease_renders(driver)
    assert driver.ask(driver.frontier.horizon()).leased_hosts == 1
    rendered(driver, task)
    assert driver.ask(driver.frontier.horizon()).next_at is None


def test_what_a_rendered_page_needs_is_fetched_under_a_page_limit_too(start: Start) -> None:
    driver = start(Settings(crawl=CrawlSettings(render="always", max_pages=1)))
    (task,) = shown(driver)
    driver.admit(*(discovered(f"{A}/{number}") for number in range(3)))
    assert driver.ask(driver.frontier.horizon()).limit_reached is False
    rendered(driver, task, asking(A + "/app.js"))
    driver.clock.advance(5)
    lease = driver.lease_one()
    assert [each.url for each in lease.tasks] == [A + "/app.js"]
    driver.answer(lease, SHELL)
    (again,) = lease_renders(driver)
    rendered(driver, again)
    driver.clock.advance(5)
    assert driver.lease() == []
    assert driver.ask(driver.frontier.horizon()).limit_reached


def test_shells_of_one_app_are_no_trap_before_their_scripts_have_run(start: Start) -> None:
    driver = start(ALWAYS)
    paths = tuple(f"/p/{number}" for number in range(30))
    driver.open_host(*(A + path for path in paths))
    alike = replace(SHELL, simhash=7, title="Shop")
    for _ in paths:
        for lease in driver.lease():
            driver.answer(lease, alike)
        driver.clock.advance(2)
    assert driver.stats().verdicts == 0
    assert driver.host(A).queued == 0


# -- auto


def test_of_a_kind_three_shells_are_rendered_first_and_the_rest_as_they_turned_out(start: Start) -> None:
    driver = start(AUTO)
    paths = tuple(f"/item/{number}" for number in range(6))
    driver.open_host(*(A + path for path in paths))
    for _ in paths:
        for lease in driver.lease():
            driver.answer(lease, SHELL)
        driver.clock.advance(2)
    first = lease_renders(driver)
    assert len(first) == 3
    assert lease_renders(driver) == []
    for task in first[:2]:
        rendered(driver, task, linking(f"{task.url}/more"))
    assert len(lease_renders(driver)) == 3
    words = " ".join(driver.explain(first[0].url).rendering)
    assert "it is rendered: 2 of 2 gained" in words


def test_a_kind_that_gains_nothing_is_left_alone_and_explain_says_so(start: Start) -> None:
    driver = start(AUTO)
    paths = tuple(f"/item/{number}" for number in range(5))
    driver.open_host(*(A + path for path in paths))
    for _ in paths:
        for lease in driver.lease():
            driver.answer(lease, SHELL)
        driver.clock.advance(2)
    for task in lease_renders(driver):
        rendered(driver, task, replace(DONE, text=10))
    assert lease_renders(driver) == []
    figures = driver.stats().renderings
    assert figures is not None
    assert (figures.done, figures.skipped) == (3, 2)
    assert driver.ask(driver.frontier.horizon()).next_at is None
    said = [driver.explain(A + path).rendering for path in paths]
    assert sum(words[0] == "it was not rendered" for words in said) == 2
    assert all("0 of 3 gained" in words[-1] for words in said)


def test_what_looks_whole_is_not_rendered_unless_its_kind_gains(start: Start) -> None:
    driver = start(replace(AUTO, render=RenderSettings(share=0.0)))
    driver.open_host(*(f"{A}/item/{number}" for number in range(2)), A + "/item/9", A + "/about")
    pages = {A + "/about": SCRIPTED, A + "/item/9": SCRIPTED}
    for _ in range(4):
        for lease in driver.lease():
            driver.settle(*(driver.outcome(lease, pages.get(task.url, SHELL), task) for task in lease.tasks))
        driver.clock.advance(2)
    tasks = lease_renders(driver)
    assert sorted(task.url for task in tasks) == [A + "/item/0", A + "/item/1"]


def test_a_kind_is_decided_also_when_its_first_renderings_die_with_the_process(start: Start) -> None:
    driver = start(AUTO)
    paths = tuple(f"/item/{number}" for number in range(4))
    driver.open_host(*(A + path for path in paths))
    for _ in paths:
        for lease in driver.lease():
            driver.answer(lease, SHELL)
        driver.clock.advance(2)
    for _ in range(4):
        assert len(lease_renders(driver)) == 3
        driver.reopen()
    for task in lease_renders(driver):
        rendered(driver, task, linking(f"{task.url}/more"))
    assert len(lease_renders(driver)) == 1


def test_a_page_whose_browser_died_is_rendered_again_but_not_for_ever(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    for _ in range(2):
        rendered(driver, task, Rendered(ending="died"))
        (task,) = lease_renders(driver)
    rendered(driver, task, Rendered(ending="died"))
    assert lease_renders(driver) == []
    figures = driver.stats().renderings
    assert figures is not None
    assert (figures.done, figures.failed) == (1, 1)


def test_a_rendering_whose_record_was_lost_with_its_segment_is_made_again(start: Start) -> None:
    driver = start(replace(ALWAYS, archive=ArchiveSettings(url="s3://bucket/archive")))
    mark = SegmentMark("s-00000.warc.gz", 100, 10)
    later = SegmentMark("s-00001.warc.gz", 100, 10)
    driver.open_host(A + "/")
    lease = driver.lease_one()
    driver.settle(driver.outcome(lease, SHELL), marks=[mark])
    driver.stored(mark.segment)
    (task,) = lease_renders(driver)
    made = replace(DONE, record=RecordAt(later.segment, 10, 20))
    driver.settle(outcome(driver, task, made), marks=[later])
    driver.lost(later.segment)
    (again,) = lease_renders(driver)
    assert (again.url, again.digest) == (A + "/", b"")


def test_when_a_host_runs_dry_a_page_of_each_kind_that_looks_whole_is_sounded_once(start: Start) -> None:
    driver = start(AUTO)
    driver.open_host(*(f"{A}/item/{number}" for number in range(4)), A + "/about")
    scripted = replace(SCRIPTED, content_type="text/html")
    lease = driver.lease_one()
    for number, task in enumerate(lease.tasks):
        assert lease_renders(driver) == []
        page = replace(scripted, digest=bytes((number,)) * 32, simhash=0xF0F0F0F << 8 * number)
        driver.settle(driver.outcome(lease, page, task))
        driver.clock.advance(5)
    tasks = {task.url: task for task in lease_renders(driver)}
    about = tasks.pop(A + "/about")
    (item,) = tasks.values()
    rendered(driver, about, replace(DONE, text=10))
    rendered(driver, item, linking(A + "/hidden"))
    # what was taken for whole is caught up with
    assert len(lease_renders(driver)) == 3
    assert "a sounding" in " ".join(driver.explain(item.url).rendering)
    for lease in driver.lease():
        driver.answer(lease, scripted)
    assert lease_renders(driver) == []


def test_soundings_take_no_more_than_their_share_of_the_time(start: Start) -> None:
    driver = start(replace(AUTO, render=RenderSettings(share=0.0)))
    driver.open_host(A + "/", "http://b.test/")
    for lease in driver.lease():
        driver.answer(lease, SCRIPTED)
        driver.clock.advance(1)
    for task in lease_renders(driver):
        rendered(driver, task, replace(DONE, text=10, seconds=1.0))
    driver.admit(discovered("http://c.test/", via=Via.SEED, depth=0))
    driver.serve(3, SCRIPTED)
    assert lease_renders(driver) == []


def test_a_page_is_rendered_again_when_it_has_changed_and_not_before(start: Start) -> None:
    driver = start(ALWAYS)
    (task,) = shown(driver)
    rendered(driver, task)
    fetch_again(driver, SHELL)
    assert lease_renders(driver) == []
    fetch_again(driver, replace(SHELL, digest=b"e" * 32))
    (again,) = lease_renders(driver)
    assert again.digest == b"r" * 32
    rendered(driver, again, replace(DONE, record=None))
    figures = driver.stats().renderings
    assert figures is not None
    assert figures.done == 1


def fetch_again(driver: Driver, page: Fetched) -> None:
    driver.refresh(url=A + "/")
    driver.clock.advance(5)
    driver.fetch(page)
