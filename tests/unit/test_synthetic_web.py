"""The plan of the synthetic web, its pages and its audit, without a server."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin

import ada_url
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skitter.errors import UsageError
from skitter.testing.audit import Request, Violation, ViolationKind, compare, main, read_log, violations
from skitter.testing.features import RULES, Feature, Kind, RobotsKind
from skitter.testing.http_request import BadRequest, read_head
from skitter.testing.plan import WebPlan
from skitter.testing.render import Renderer, relative
from skitter.testing.request_log import RequestLog
from tests.naive_crawler import Robots


@pytest.mark.parametrize("kind", [RobotsKind.UNAVAILABLE, RobotsKind.ELSEWHERE, RobotsKind.MOVED])
def test_the_way_to_every_host_stays_open_whatever_their_robots_txt(kind: RobotsKind) -> None:
    plan = WebPlan(hosts=50, pages=2, fanout=4, robots={kind: 1.0}, features={})
    assert len(plan.expected_robots()) == 50


def test_the_same_seed_is_the_same_web_and_another_seed_is_another() -> None:
    assert WebPlan.demo().expected() == WebPlan.demo().expected()
    assert WebPlan.demo(seed=1).expected() != WebPlan.demo(seed=2).expected()


def test_a_plan_survives_its_way_to_another_process() -> None:
    plan = WebPlan(hosts=30, crawl_delay=0.7, features={Feature.FLAKY: 0.5})
    assert msgspec.json.decode(msgspec.json.encode(plan), type=WebPlan) == plan


def test_every_expected_url_is_in_its_whatwg_form_and_has_no_fragment() -> None:
    for url in WebPlan(hosts=60).expected():
        assert ada_url.URL(url).href == url
        assert "#" not in url


@pytest.mark.parametrize("plan", [WebPlan(hosts=300, pages=100), WebPlan(hosts=1500, pages=3, fanout=15)])
def test_no_page_is_deeper_than_twelve(plan: WebPlan) -> None:
    assert max(row.depth for row in plan.expected().values()) <= 12


def test_every_host_is_reached_and_most_of_them_at_once() -> None:
    plan = WebPlan(hosts=1000, pages=2)
    assert len(plan.expected_robots()) == 1000
    homes = [row for url, row in plan.expected().items() if url.count("/") == 3 and url.endswith("/")]
    assert sum(row.depth <= 2 for row in homes) == len(homes) > 950


def test_the_plain_preset_is_pages_and_nothing_else() -> None:
    rows = WebPlan.plain(hosts=50, pages=12).expected().values()
    assert len(rows) == 600
    assert {row.kind for row in rows} == {Kind.PAGE}


def test_the_demo_has_every_kind_of_page_and_of_robots_txt() -> None:
    plan = WebPlan.demo()
    listed = msgspec.structs.replace(plan, listed=0.2)
    assert {row.kind for row in plan.expected().values()} == set(Kind) - {Kind.SITEMAP}
    assert {row.kind for row in listed.expected().values()} == set(Kind)
    assert {plan.robots_kind(host) for host in range(plan.hosts)} == set(RobotsKind)
    assert 250 <= len(plan.expected()) <= 350


def test_host_names_lead_back_to_their_hosts_and_no_other_name_does() -> None:
    plan = WebPlan(hosts=500)
    assert [plan.index(plan.name(host)) for host in range(500)] == list(range(500))
    assert plan.name(13) == "a.d000.test"
    for stranger in (
        "h00500.web.test",
        "h00013.web.test",
        "h000001.web.test",
        "web.test",
        "",
        "h٠٠٠٠٠.web.test",
    ):
        assert plan.index(stranger) is None


def test_shared_domains_have_several_hosts() -> None:
    plan = WebPlan(hosts=500)
    names = [plan.name(host) for host in range(500)]
    assert sorted(name for name in names if name.endswith(".d003.test")) == [
        f"{subdomain}.d003.test" for subdomain in ("a", "b", "c", "d", "www")
    ]


def test_a_narrower_scope_expects_less_and_never_leaves_it() -> None:
    plan = WebPlan(hosts=100)
    narrow = plan.expected(admits=lambda url: ".web.test/" in url)
    lost = {url for url in plan.expected() if ".web.test/" in url} - set(narrow)
    assert set(narrow) < set(plan.expected())
    assert all("/guest/" in url for url in lost), "only a guest page is introduced by a host out of scope"
    entry = plan.expected(admits=lambda url: url.startswith("http://h00000.web.test/"))
    assert {url.split("/")[2] for url in entry} == {"h00000.web.test"}


def test_a_long_chain_is_expected_up_to_its_fifth_hop() -> None:
    rows = WebPlan(hosts=20, features={Feature.LONG_CHAIN: 0.01}).expected()
    assert sorted(url[-1] for url in rows if "/long-chain/" in url) == list("012345")
    rows = WebPlan(hosts=20, features={Feature.LONG_CHAIN: 0.01}).expected(max_redirects=8)
    assert sum("/long-chain/" in url for url in rows) == 9


def test_nothing_behind_nofollow_is_expected() -> None:
    urls = WebPlan(hosts=200).expected()
    assert any("/nofollow/meta" in url for url in urls)
    assert not any(
        "/hidden/" in url or url.endswith(("meta.child.html", "header.child.html")) for url in urls
    )


def test_nothing_of_a_host_without_its_robots_txt_is_expected() -> None:
    plan = WebPlan(hosts=200)
    closed = [plan.name(host) for host in range(200) if plan.robots_kind(host) is RobotsKind.UNAVAILABLE]
    assert closed
    assert set(closed) <= plan.expected_robots()
    assert not {url.split("/")[2] for url in plan.expected()} & set(closed)


def test_a_failing_page_is_requested_until_it_answers_or_the_attempts_are_used_up() -> None:
    rows = {row.kind: row for row in WebPlan(hosts=40, flaky_failures=1).expected().values()}
    assert rows[Kind.FLAKY].requests(5) == 2
    assert rows[Kind.FLAKY].requests(1) == 1
    assert rows[Kind.BROKEN].requests(5) == 5
    assert rows[Kind.MISSING].requests(5) == 1


@pytest.mark.parametrize("kind", RULES)
def test_the_ruled_paths_of_a_robots_txt_agree_with_a_reading_of_its_text(kind: RobotsKind) -> None:
    rules = RULES[kind]
    text = rules.body.decode()
    for ruled in rules.ruled_paths:
        assert Robots(text, "skitter").allows(ruled.path) is ruled.named
        assert Robots(text, "another").allows(ruled.path) is ruled.others


def test_sizes_are_those_of_the_wild() -> None:
    plan = WebPlan.plain(hosts=100, pages=10)
    renderer = Renderer(plan)
    sizes = sorted(
        len(renderer.page(host, page, gzipped=False).body)
        for host in range(1, 100)
        for page in plan.site(host).pages.values()
    )
    assert sizes[0] >= 2_000
    assert sizes[-1] <= 65_000
    assert 9_000 < sizes[len(sizes) // 2] < 15_000


def test_a_duplicate_is_its_original_byte_for_byte_and_no_two_other_pages_are_alike() -> None:
    plan = WebPlan(hosts=40, features={Feature.DUPLICATE: 1.0})
    renderer = Renderer(plan)
    bodies: dict[bytes, list[str]] = {}
    for host in range(40):
        for page in plan.site(host).pages.values():
            body = renderer.page(host, page, gzipped=False).body
            bodies.setdefault(body, []).append(plan.url(host, page.path))
    twins = [urls for urls in bodies.values() if len(urls) > 1]
    assert len(twins) == 40
    assert all(len(urls) == 2 and "copy-of-" in urls[1] for urls in twins)


segment = st.text("abc.%-", min_size=1, max_size=3).filter(lambda text: text.strip(".") and ":" not in text)
path = st.builds(
    lambda parts, end: "/" + "".join(f"{part}/" for part in parts) + end, st.lists(segment), segment
)


@given(base=path, target=path)
def test_a_relative_link_leads_back_to_its_target(base: str, target: str) -> None:
    assert urljoin(f"http://h.test{base}", relative(base, target)) == f"http://h.test{target}"


@given(
    st.binary(max_size=300) | st.binary(max_size=60).map(lambda noise: b"GET / HTTP/1.1\r\nHost: " + noise)
)
def test_any_bytes_are_a_request_or_a_bad_one(head: bytes) -> None:
    try:
        read = read_head(head)
    except BadRequest:
        return
    assert read.target.startswith("/")
    assert read.host


def row(
    id: int, start: float, end: float | None, path: str = "/a", host: str = "h", *, aborted: bool = False
) -> Request:
    return Request(
        id=id, start=start, end=end, host=host, path=path, status=200, connection=id, aborted=aborted
    )


def kinds(found: list[Violation]) -> list[ViolationKind]:
    return [violation.kind for violation in found]


ROBOTS = row(1, 0.0, 0.1, "/robots.txt")


def test_a_polite_crawl_has_no_violation() -> None:
    rows = [ROBOTS, row(2, 1.0, 1.2), row(3, 2.0, 2.2), row(4, 2.0, 2.1, "/robots.txt", host="other")]
    assert violations(rows, lambda host: 1.0) == []


def test_two_in_flight_are_an_overlap() -> None:
    rows = [ROBOTS, row(2, 1.0, 2.5), row(3, 2.0, 2.2)]
    assert kinds(violations(rows, lambda host: 1.0)) == [ViolationKind.OVERLAP]
    assert violations(rows, lambda host: 1.0, parallel_of=lambda host: 2) == []


def test_more_in_flight_than_a_host_allows_are_an_overlap() -> None:
    rows = [ROBOTS, row(2, 1.0, 3.0), row(3, 1.1, 3.0), row(4, 1.2, 3.0)]
    found = violations(rows, lambda host: 0.0, parallel_of=lambda host: 2)
    assert [(violation.kind, violation.request.id) for violation in found] == [(ViolationKind.OVERLAP, 4)]


def test_a_request_beside_one_that_never_ended_is_an_overlap() -> None:
    rows = [ROBOTS, row(2, 1.0, None), row(3, 9.0, 9.1)]
    assert kinds(violations(rows, lambda host: 1.0)) == [ViolationKind.OVERLAP]


def test_what_the_server_saw_overlap_is_an_overlap_whatever_the_times_say() -> None:
    later = row(3, 2.0, 2.1)
    later.overlapped = True
    rows = [ROBOTS, row(2, 1.0, 2.0, aborted=True), later]
    assert kinds(violations(rows, lambda host: 1.0)) == [ViolationKind.OVERLAP]


def test_a_request_after_an_aborted_one_is_no_overlap() -> None:
    rows = [ROBOTS, row(2, 1.0, 2.7, aborted=True), row(3, 2.0, 2.1)]
    assert violations(rows, lambda host: 1.0) == []


def test_starts_closer_than_the_delay_are_too_soon_to_the_half_millisecond() -> None:
    assert violations([ROBOTS, row(2, 0.9996, 1.1)], lambda host: 1.0) == []
    found = violations([ROBOTS, row(2, 0.9994, 1.1)], lambda host: 1.0)
    assert kinds(found) == [ViolationKind.TOO_SOON]
    assert "0.999400 s after /robots.txt, delay 1 s" in str(found[0])


def test_each_host_has_its_own_delay() -> None:
    rows = [row(n, n / 10, n / 10, "/robots.txt", host) for n, host in enumerate(["a", "b", "a", "b"])]
    found = violations(rows, lambda host: 0.2 if host == "a" else 0.3)
    assert [violation.host for violation in found] == ["b"]


def test_a_page_before_robots_txt_was_answered_is_a_violation() -> None:
    for rows in (
        [row(2, 1.0, 1.1)],
        [row(2, 1.0, 1.1), row(3, 3.0, 3.1, "/robots.txt")],
        [row(1, 0.0, 0.5, "/robots.txt", aborted=True), row(2, 1.0, 1.1)],
    ):
        assert kinds(violations(rows, lambda host: 0.0)) == [ViolationKind.BEFORE_ROBOTS]


def test_what_robots_txt_refuses_is_a_violation() -> None:
    found = violations([ROBOTS, row(2, 1.0, 1.1)], lambda host: 0.0, denied=lambda host, path: path == "/a")
    assert kinds(found) == [ViolationKind.DENIED]


def rows_of(plan: WebPlan, attempts: int) -> list[Request]:
    """The log of a perfect crawl."""
    rows: list[Request] = []
    for name in sorted(plan.expected_robots()):
        rows.append(row(len(rows), len(rows), len(rows) + 0.5, "/robots.txt", name))
    for url, expected in plan.expected().items():
        host, slash, rest = url.removeprefix("http://").partition("/")
        for _ in range(expected.requests(attempts)):
            rows.append(row(len(rows), len(rows), len(rows) + 0.5, slash + rest, host))
    return rows


def test_a_perfect_crawl_shows_no_difference() -> None:
    assert not compare(rows_of(WebPlan.demo(), 3), WebPlan.demo(), 3)


def test_every_difference_is_found_and_named() -> None:
    plan = WebPlan.demo()
    rows = rows_of(plan, 3)
    robots = rows.pop(0)
    lost = next(row for row in rows if row.path == "/gone/a.html")
    broken = next(row for row in rows if row.path == "/broken/a.html")
    rows.remove(lost)
    rows.remove(broken)
    rows += [row(9001, 9001.0, 9001.5, "/", "h00000.web.test"), row(9002, 9002.0, 9002.5, "/trap/x.html")]
    found = compare(rows, plan, 3)
    assert found.robots_missing == (robots.host,)
    assert found.missing == (f"http://{lost.host}/gone/a.html",)
    assert found.extra == ("http://h/trap/x.html",)
    assert found.too_often == {"http://h00000.web.test/": (2, 1)}
    assert found.too_seldom == {f"http://{broken.host}/broken/a.html": (2, 3)}
    assert compare(rows, plan, 3, spare=1).too_often == {}


def write_log(path: Path, plan: WebPlan, rows: list[Request]) -> Path:
    log = RequestLog(path, plan)
    for one in rows:
        log.add(one)
    log.close()
    return path


def test_the_verdict_on_a_good_crawl_is_exit_code_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log", WebPlan.demo(), rows_of(WebPlan.demo(), 5))
    assert main([str(log), "--delay", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "to 25 hosts" in said
    assert "verdict: polite and complete" in said


def test_the_verdict_on_a_bad_crawl_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(
        tmp_path / "log", WebPlan.demo(), [*rows_of(WebPlan.demo(), 5), row(9999, 0.2, 0.3, "/x")]
    )
    assert main([str(log), "--delay", "0.5"]) == 1
    said = capsys.readouterr().out
    assert "before robots.txt: 1\n    before robots.txt: http://h/x" in said
    assert "verdict: FAILED" in said


def test_an_unfinished_crawl_can_be_judged_by_its_manners(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", WebPlan.demo(), rows_of(WebPlan.demo(), 5)[:30])
    assert main([str(log), "--delay", "0.5"]) == 1
    assert main([str(log), "--delay", "0.5", "--partial"]) == 0


def test_a_log_is_read_while_it_grows_and_the_later_row_of_a_request_counts(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", WebPlan.demo(), [row(1, 5.0, None), row(2, 4.0, 4.5), row(1, 5.0, 6.0)])
    with log.open("ab") as file:
        file.write(b'{"id":3,"sta')
    assert [(request.id, request.end) for request in read_log(log)] == [(2, 4.5), (1, 6.0)]


def test_what_is_no_log_is_a_clear_error(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("hello\nworld\n")
    with pytest.raises(UsageError, match="other:2 is no row"):
        read_log(other)
    assert main([str(other)]) == 2
    assert main([str(tmp_path / "absent")]) == 2
