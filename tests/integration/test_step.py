"""One URL from request to outcome, through the real fetcher and archive."""

from __future__ import annotations

import asyncio
import gzip
import socket
from pathlib import Path

import msgspec
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from skitter.committer.record_filing import RecordFiling
from skitter.committer.work_source import Delivery
from skitter.folder import CrawlFolder
from skitter.frontier.link_batches import unpack
from skitter.model import (
    Discovered,
    Failed,
    FailureKind,
    Fetched,
    HostLease,
    NotModified,
    Outcome,
    Redirected,
    RobotsRead,
    Task,
    TaskKind,
    Token,
    Via,
)
from skitter.settings import FetchSettings, PolitenessSettings, Settings
from skitter.urls.canonical import host_of
from skitter.wiring import open_crawl
from skitter.worker.reading.pdf import PdfReader
from skitter.worker.status_rules import retry_after
from skitter.worker.step import Step
from tests.exchanges import block_of, finished_records
from tests.keys import key_of
from tests.pdfs import pdf
from tests.raw_server import page, sends, serving

PAGE, ROBOTS = TaskKind.PAGE, TaskKind.ROBOTS
SETTINGS = Settings(fetch=FetchSettings(allow_private=True, max_body=100_000))


def run(
    folder: Path,
    *responses: bytes,
    kind: TaskKind = PAGE,
    hops: int = 0,
    etag: str = "",
    requisite: int = 0,
    settings: Settings = SETTINGS,
    depth: int = 3,
    nesting: int = 0,
) -> list[tuple[Outcome, Delivery]]:
    """What becomes of one URL of a host for each response, with a place in the archive."""

    async def main() -> list[tuple[Outcome, Delivery]]:
        crawl_folder = CrawlFolder(folder / "crawl")
        crawl_folder.lock()
        found = []
        async with open_crawl(crawl_folder, settings) as crawl:
            pdfs = PdfReader(settings.fetch)
            step = Step(crawl.stack.fetcher, crawl.clock, settings, pdfs)
            filing = RecordFiling(crawl.archive)
            for number, response in enumerate(responses):
                with serving(sends(response)) as server:
                    url = f"{server.url}/{number}"
                    delivery = await step.run(lease(url), task(url))
                    found.append((filing.file(delivery, None), delivery))
            await pdfs.close()
        crawl_folder.unlock()
        return found

    def task(url: str) -> Task:
        asked = TaskKind.REQUISITE if requisite else kind
        level = requisite or nesting
        return Task(kind=asked, key=key_of(url), url=url, depth=depth, hops=hops, etag=etag, nesting=level)

    def lease(url: str) -> HostLease:
        return HostLease(
            host=host_of(url), token=Token(7), delay=0, parallel=1, not_before=0, deadline=1e12, tasks=()
        )

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def result(folder: Path, response: bytes, kind: TaskKind = PAGE) -> object:
    ((outcome, _),) = run(folder, response, kind=kind)
    return outcome.result


def redirect(location: bytes) -> bytes:
    return page(b"", b"Location: " + location, status=b"301 Moved")


def test_a_page_is_archived_and_its_links_are_found(tmp_path: Path) -> None:
    body = b"<title>T</title><a href=/a>a</a><a href=b rel=NOFOLLOW>b</a><a href=''>self</a>"
    ((outcome, delivery),) = run(tmp_path, page(body, b'ETag: "e"', b"Last-Modified: then"))
    found = outcome.result
    assert isinstance(found, Fetched)
    assert delivery.parcel is not None
    assert (found.title, found.etag, found.last_modified, found.size) == ("T", '"e"', "then", len(body))
    assert [link.url for link in unpack(found.link_batches)] == [f"{outcome.host}/a"]
    assert found.record is not None
    assert found.copy is not None
    assert (outcome.token, outcome.sent_at, outcome.address) == (7, delivery.parcel.sent_at, "127.0.0.1")


@pytest.mark.parametrize(
    "base", [b"mailto:x", b"about:blank", b"data:x", b"x:y", b"http://[", b"\xff", b"#/?"]
)
def test_no_base_breaks_a_page(tmp_path: Path, base: bytes) -> None:
    found = result(tmp_path, page(b'<base href="' + base + b'"><a href=http://127.0.0.1/a>a</a><a href=x>'))
    assert isinstance(found, Fetched)
    assert "http://127.0.0.1/a" in [link.url for link in unpack(found.link_batches)]


def test_a_second_copy_of_a_body_points_at_the_first(tmp_path: Path) -> None:
    (first, _), (second, _), (third, _) = run(tmp_path, page(b"same"), page(b"same"), page(b"other"))
    copies = [one.result.copy for one in (first, second, third) if isinstance(one.result, Fetched)]
    assert [copy is not None for copy in copies] == [True, False, True]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (b"/new", "/new"),
        (b"new?x#frag", "/new?x"),
        (b"/caf\xc3\xa9", "/caf%C3%A9"),
        (b"/caf\xe9", "/caf%E9"),
        (b"/a%20b c", "/a%20b%20c"),
        (b"  /padded  ", "/padded"),
    ],
)
def test_a_redirect_leads_to_the_bytes_that_the_server_named(
    tmp_path: Path, location: bytes, path: str
) -> None:
    ((outcome, _),) = run(tmp_path, redirect(location), hops=1)
    found = outcome.result
    assert isinstance(found, Redirected)
    assert found.location == found.target.url == outcome.host + path
    assert (found.target.hops, found.target.depth, found.target.via) == (2, 3, Via.REDIRECT)
    assert found.record is not None


def test_a_redirect_to_a_name_beyond_ascii_is_understood(tmp_path: Path) -> None:
    found = result(tmp_path, redirect(b"http://b\xc3\xbccher.example/"))
    assert isinstance(found, Redirected)
    assert found.location == "http://xn--bcher-kva.example/"


@pytest.mark.parametrize("location", [b"mailto:x", b"http://", b"file:///etc/passwd", b"http://[::1", b"//"])
def test_a_redirect_that_leads_nowhere_is_a_failure_that_is_archived(tmp_path: Path, location: bytes) -> None:
    found = result(tmp_path, redirect(location))
    assert isinstance(found, Failed)
    assert (found.kind, found.status) == (FailureKind.BAD_REDIRECT, 301)
    assert found.record is not None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (b"429 Slow", FailureKind.THROTTLED),
        (b"503 Busy", FailureKind.THROTTLED),
        (b"500 Oops", FailureKind.SERVER_ERROR),
        (b"599 Odd", FailureKind.SERVER_ERROR),
        (b"999 Denied", FailureKind.SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("task", [PAGE, ROBOTS])
def test_server_errors_are_failures_that_are_archived(
    tmp_path: Path, status: bytes, kind: FailureKind, task: TaskKind
) -> None:
    found = result(tmp_path, page(b"sorry", b"Retry-After: 7", status=status), task)
    assert isinstance(found, Failed)
    assert found.kind is kind
    assert found.retry_after == (7.0 if kind is FailureKind.THROTTLED else None)
    assert found.record is not None


def test_not_modified_is_its_own_outcome(tmp_path: Path) -> None:
    ((outcome, _),) = run(tmp_path, b"HTTP/1.1 304 Not Modified\r\n\r\n", etag='"e"')
    assert isinstance(outcome.result, NotModified)


def test_not_modified_in_answer_to_no_condition_is_a_failure(tmp_path: Path) -> None:
    found = result(tmp_path, b"HTTP/1.1 304 Not Modified\r\n\r\n")
    assert isinstance(found, Failed)
    assert (found.kind, found.status) == (FailureKind.PROTOCOL, 304)


@pytest.mark.parametrize("location", [b"X: y", b"Location:", b"Location:  "])
def test_a_redirect_without_a_target_is_a_failure(tmp_path: Path, location: bytes) -> None:
    found = result(tmp_path, page(b"", location, status=b"301 Moved"))
    assert isinstance(found, Failed)
    assert (found.kind, found.detail) == (FailureKind.BAD_REDIRECT, "no Location")


def test_not_modified_is_archived_as_a_revisit_of_the_copy_that_still_holds(tmp_path: Path) -> None:
    answers = iter((page(b"", status=b"404 No"), page(b"a page"), b"HTTP/1.1 304 Not Modified\r\n\r\n"))
    settings = msgspec.structs.replace(SETTINGS, politeness=PolitenessSettings(delay=0, slow_factor=0))

    def answer(connection: socket.socket, raw: bytes) -> bool:
        connection.sendall(next(answers))
        return True

    async def main(url: str) -> None:
        folder = CrawlFolder(tmp_path / "crawl")
        folder.lock()
        async with open_crawl(folder, settings) as crawl:
            step = Step(crawl.stack.fetcher, crawl.clock, settings, PdfReader(settings.fetch))
            seed = Discovered(url=url, key=key_of(url), host=host_of(url), depth=0, via=Via.SEED)
            await crawl.frontier.admit([seed])

            async def settled(lease: HostLease, task: Task) -> Outcome:
                delivery = await step.run(lease, task)
                await crawl.committer.settle([delivery])
                return delivery.outcome

            (robots,) = await crawl.frontier.lease("w", 1, 60)
            await settled(robots, robots.tasks[0])
            (lease,) = await crawl.frontier.lease("w", 1, 60)
            await settled(lease, lease.tasks[0])
            await crawl.frontier.refresh(url=url)
            (again,) = await crawl.frontier.lease("w", 1, 60)
            await settled(again, again.tasks[0])
        folder.unlock()

    with serving(answer) as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(f"{server.url}/p"))
    found = [read for read in finished_records(tmp_path / "crawl" / "archive") if read.kind != "request"]
    (revisit,) = [read for read in found if read.kind == "revisit"]
    first = next(r for r in found if r.fields.get("WARC-Record-ID") == revisit.fields["WARC-Refers-To"])
    assert first.payload == b"a page"
    assert revisit.status == "304"
    assert revisit.fields["WARC-Profile"].endswith("/server-not-modified")


def test_an_unwanted_type_is_a_failure_without_a_record(tmp_path: Path) -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\nxyz"
    found = result(tmp_path, response)
    assert found == Failed(kind=FailureKind.TYPE_UNWANTED, detail="image/png", status=200)


def typed(content_type: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: " + content_type, *headers]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])


@pytest.mark.parametrize(
    ("declared", "body", "found"),
    [
        (b"text/html", b"\x89PNG\r\n\x1a\n" + bytes(99), "image/png"),
        (b"text/html", b"PK\x03\x04" + bytes(99), "application/zip"),
        (b"text/html; charset=utf-8", b"\x00\x00\x00\x18ftypmp42" + bytes(99), "video/mp4"),
        (b"text/plain", bytes(99), "application/octet-stream"),
        (b"", b"GIF89a" + bytes(99), "image/gif"),
    ],
)
@pytest.mark.parametrize("coded", [False, True])
def test_a_type_that_lies_is_caught_on_the_first_bytes(
    tmp_path: Path, declared: bytes, body: bytes, found: str, coded: bool
) -> None:
    response = (
        typed(declared, gzip.compress(body), b"Content-Encoding: gzip") if coded else typed(declared, body)
    )
    detail = f"{declared.decode() or 'no type'}, but its bytes are {found}"
    assert result(tmp_path, response) == Failed(kind=FailureKind.TYPE_UNWANTED, detail=detail, status=200)


def test_html_that_is_labelled_as_plain_text_is_kept_as_text(tmp_path: Path) -> None:
    found = result(tmp_path, typed(b"text/plain", b"<!doctype html><a href=/a>a</a>"))
    assert isinstance(found, Fetched)
    assert found.link_batches == ()


def test_html_without_a_type_is_read(tmp_path: Path) -> None:
    found = result(tmp_path, typed(b"", b"<!doctype html><a href=/a>a</a>"))
    assert isinstance(found, Fetched)
    assert len(unpack(found.link_batches)) == 1


@pytest.mark.parametrize("header", [b"X-Robots-Tag: nofollow", b"X-Robots-Tag: skitter: none"])
def test_the_links_of_a_nofollow_page_are_not_followed(tmp_path: Path, header: bytes) -> None:
    found = result(tmp_path, page(b"<a href=/a>a</a>", header, b"Content-Signal: ai-train=no"))
    assert isinstance(found, Fetched)
    assert found.link_batches == ()
    assert found.directives.endswith(", content-signal: ai-train=no")


def test_a_nofollow_meant_for_another_robot_does_not_concern_us(tmp_path: Path) -> None:
    body = b"<meta name=otherbot content=nofollow><a href=/a>a</a>"
    found = result(tmp_path, page(body, b"X-Robots-Tag: otherbot: nofollow"))
    assert isinstance(found, Fetched)
    assert len(unpack(found.link_batches)) == 1


@pytest.mark.parametrize("name", [b"robots", b"SKITTER"])
def test_a_page_may_say_nofollow_itself(tmp_path: Path, name: bytes) -> None:
    found = result(tmp_path, page(b"<meta name=" + name + b" content='NoFollow'><a href=/a>a</a>"))
    assert isinstance(found, Fetched)
    assert found.link_batches == ()


# -- PDF


@pytest.mark.parametrize("declared", [b"application/pdf", b"text/html", b""])
def test_a_pdf_is_archived_with_its_title_and_its_links(tmp_path: Path, declared: bytes) -> None:
    body = pdf("Hello", title="A report", links=("http://127.0.0.1/from-pdf", "mailto:x@example.org"))
    found = result(tmp_path, typed(declared, body))
    assert isinstance(found, Fetched)
    assert (found.title, found.note) == ("A report", "")
    assert [link.url for link in unpack(found.link_batches)] == ["http://127.0.0.1/from-pdf"]
    assert found.record is not None


def test_a_compressed_pdf_is_read(tmp_path: Path) -> None:
    body = gzip.compress(pdf("Hello", title="T"))
    found = result(tmp_path, typed(b"application/pdf", body, b"Content-Encoding: gzip"))
    assert isinstance(found, Fetched)
    assert found.title == "T"


def test_a_pdf_that_cannot_be_read_is_archived_with_the_reason(tmp_path: Path) -> None:
    found = result(tmp_path, typed(b"application/pdf", b"%PDF-1.7\n" + bytes(1000)))
    assert isinstance(found, Fetched)
    assert found.record is not None
    assert "Data format error" in found.note


def test_an_error_page_of_any_type_is_kept(tmp_path: Path) -> None:
    response = b"HTTP/1.1 404 No\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\nxyz"
    found = result(tmp_path, response)
    assert isinstance(found, Fetched)
    assert (found.status, found.size, found.link_batches) == (404, 3, ())


def test_a_body_that_cannot_be_decoded_is_kept_without_links(tmp_path: Path) -> None:
    found = result(tmp_path, page(b"\x00\x01\x02", b"Content-Encoding: gzip"))
    assert isinstance(found, Fetched)
    assert found.link_batches == ()
    assert "gzip" in found.note


def test_a_cut_body_is_marked_and_read_as_far_as_it_goes(tmp_path: Path) -> None:
    found = result(tmp_path, page(b"<a href=/a>a</a>" + b"x" * 200_000))
    assert isinstance(found, Fetched)
    assert (found.truncated, found.size, len(unpack(found.link_batches))) == (True, 100_000, 1)


def test_robots_rules_are_read_decoded_whatever_their_type(tmp_path: Path) -> None:
    rules = b"User-agent: *\nDisallow: /"
    response = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(rules)
    found = result(tmp_path, response + rules, ROBOTS)
    assert isinstance(found, RobotsRead)
    assert (found.status, found.body) == (200, rules)


def test_missing_robots_rules_are_none(tmp_path: Path) -> None:
    found = result(tmp_path, page(b"User-agent: *\nDisallow: /", status=b"404 No"), ROBOTS)
    assert isinstance(found, RobotsRead)
    assert (found.status, found.body) == (404, b"")


def test_robots_rules_that_cannot_be_decoded_are_no_permission(tmp_path: Path) -> None:
    found = result(tmp_path, page(b"\x00\x01\x02", b"Content-Encoding: gzip"), ROBOTS)
    assert isinstance(found, Failed)
    assert found.kind is FailureKind.BAD_CODING


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("999999999999", 604_800.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2000 22:14:20 GMT", 0.0),
        ("Tue, 14 Nov 2099 22:14:20 GMT", 604_800.0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("\u0661", None),
        ("Tue, 99 Nov 2023 99:99:99 GMT", None),
    ],
)
def test_retry_after_is_understood_in_both_forms(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text() | st.text("0123456789 ,:+-GMTueNov", max_size=40))
def test_no_retry_after_raises_or_is_out_of_bounds(value: str) -> None:
    wait = retry_after(value, NOW)
    assert wait is None or 0 <= wait <= 604_800


def test_a_long_page_is_archived_whole_and_read_as_far_as_its_beginning(tmp_path: Path) -> None:
    body = b"<title>T</title><a href=/near>x</a>".ljust(5_000) + b"<a href=/far>x</a>"
    settings = Settings(fetch=FetchSettings(allow_private=True, max_parsed=5_000))
    ((outcome, delivery),) = run(tmp_path, page(body), settings=settings)
    found = outcome.result
    assert isinstance(found, Fetched)
    assert [link.url for link in unpack(found.link_batches)] == [f"{outcome.host}/near"]
    assert (found.truncated, found.note) == (True, "read to 5,000 bytes: longer than fetch.max_parsed")
    assert delivery.parcel is not None
    assert found.size == len(body)
    assert block_of(gzip.decompress(delivery.parcel.answer)).endswith(b"\r\n\r\n" + body)


def test_a_page_as_long_as_is_read_is_not_called_cut(tmp_path: Path) -> None:
    settings = Settings(fetch=FetchSettings(allow_private=True, max_parsed=5_000))
    ((outcome, _),) = run(tmp_path, page(b"<title>T</title>".ljust(5_000)), settings=settings)
    assert isinstance(outcome.result, Fetched)
    assert (outcome.result.truncated, outcome.result.note) == (False, "")


def test_a_pdf_is_read_whole_however_long_a_page_may_be(tmp_path: Path) -> None:
    settings = Settings(fetch=FetchSettings(allow_private=True, max_parsed=100))
    response = page(pdf("words of a PDF")).replace(b"text/html", b"application/pdf")
    ((outcome, _),) = run(tmp_path, response, settings=settings)
    assert isinstance(outcome.result, Fetched)
    assert (outcome.result.truncated, outcome.result.note) == (False, "")


@pytest.mark.parametrize(
    ("body", "header", "named"),
    [
        (b"<link rel=canonical href=/whole>", b"X: y", "/whole"),
        (b"<link rel=canonical href=/whole?utm_source=x>", b"X: y", "/whole?utm_source=x"),
        (b"<p>", b"Link: </whole>; rel=canonical", "/whole"),
        (b"<link rel=canonical href=0#top>", b"X: y", ""),
        (b"<link rel=canonical href=/0?utm_source=x>", b"X: y", ""),
        (b"<link rel=canonical href=mailto:x>", b"X: y", ""),
    ],
)
def test_a_page_tells_which_other_page_it_is_a_form_of(
    tmp_path: Path, body: bytes, header: bytes, named: str
) -> None:
    ((outcome, _),) = run(tmp_path, page(body, header))
    found = outcome.result
    assert isinstance(found, Fetched)
    assert found.canonical == (outcome.host + named if named else "")
    led = [(link.url, link.depth) for link in unpack(found.link_batches) if link.via is Via.CANONICAL]
    assert led == ([(found.canonical, 3)] if named else [])


def test_a_page_that_wants_no_link_followed_still_tells_its_canonical_url(tmp_path: Path) -> None:
    body = b"<meta name=robots content=nofollow><link rel=canonical href=/whole>"
    ((outcome, _),) = run(tmp_path, page(body))
    found = outcome.result
    assert isinstance(found, Fetched)
    assert (found.canonical, found.link_batches) == (f"{outcome.host}/whole", ())


def test_a_page_that_takes_too_long_to_read_is_charged_to_its_host(tmp_path: Path) -> None:
    """With a bound that no page keeps."""
    fetch = FetchSettings(allow_private=True, reading_seconds=1e-9)
    (outcome, _), (again, _) = run(
        tmp_path, page(b"<p>words"), page(b"<p>words"), settings=Settings(fetch=fetch)
    )
    assert outcome.cpu > 0
    assert again.cpu > 0
    ((cheap, _),) = run(tmp_path / "cheap", page(b"<p>words"))
    assert cheap.cpu == 0
