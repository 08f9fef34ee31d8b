"""RFC 9309, section 2.3: what may be crawled when robots.txt is there, elsewhere, missing, broken or unreachable.

Each case goes through a real server, the real fetcher and the real frontier; only time is a test's own.
"""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import brotlicffi
import pytest

from skitter.model import FailureKind
from skitter.robots.rules import MAX_BYTES
from tests.raw_server import page
from tests.robots_kit import Answers, Visit, visiting

A = "http://a.test"
OPEN, PRIVATE = "/open", "/private/1"
RULES = b"User-agent: *\nDisallow: /private/\n"
EVERYTHING, ALL_BUT_PRIVATE, NOTHING = {OPEN, PRIVATE}, {OPEN}, set[str]()


def text(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return page(body, *headers, status=status).replace(b"text/html", b"text/plain", 1)


def moved(to: str, status: bytes = b"301 Moved") -> bytes:
    return page(b"", b"Location: " + to.encode(), status=status)


def one_robots(answer: bytes | None) -> Answers:
    return lambda host, path: answer if path == "/robots.txt" else page(path.encode())


def each_robots(said: Iterator[bytes]) -> Answers:
    return lambda host, path: next(said) if path == "/robots.txt" else page(path.encode())


def crawled(
    folder: Path, answers: Answers, *, base: str = A, elsewhere: Sequence[str] = ()
) -> tuple[set[str], list[FailureKind]]:
    """Which of the two pages are fetched within less than a minute, and what went wrong."""

    async def visit(one: Visit) -> tuple[set[str], list[FailureKind]]:
        await one.go(base + OPEN, base + PRIVATE)
        return one.pages(base.partition("://")[2]), one.failures

    return visiting(folder, answers, visit, elsewhere=elsewhere)


# -- 2.3.1.1 successful access


@pytest.mark.parametrize("status", [b"200 OK", b"203 From Elsewhere", b"299 Odd"])
def test_2xx_rules_are_obeyed(tmp_path: Path, status: bytes) -> None:
    assert crawled(tmp_path, one_robots(text(RULES, status=status)))[0] == ALL_BUT_PRIVATE


def test_2xx_without_a_body_forbids_nothing(tmp_path: Path) -> None:
    assert crawled(tmp_path, one_robots(b"HTTP/1.1 204 No Content\r\n\r\n"))[0] == EVERYTHING


@pytest.mark.parametrize("kind", [b"text/html", b"image/png", b"application/octet-stream", b""])
def test_rules_of_any_content_type_are_obeyed(tmp_path: Path, kind: bytes) -> None:
    answer = page(RULES).replace(b"text/html", kind, 1)
    assert crawled(tmp_path, one_robots(answer))[0] == ALL_BUT_PRIVATE


@pytest.mark.parametrize(
    ("coding", "coded"),
    [
        (b"gzip", gzip.compress(RULES, mtime=0)),
        (b"deflate", zlib.compress(RULES)),
        (b"br", brotlicffi.compress(RULES)),
        (b"gzip", RULES),  # a label that lies
    ],
)
def test_rules_are_obeyed_in_any_content_coding(tmp_path: Path, coding: bytes, coded: bytes) -> None:
    assert crawled(tmp_path, one_robots(text(coded, b"Content-Encoding: " + coding)))[0] == ALL_BUT_PRIVATE


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + RULES,
        RULES.replace(b"\n", b"\r\n"),
        RULES.replace(b"\n", b"\r"),
        b"User-agent: *\r\rDisallow: /private/",
        b"\n\n# a note\r\n" + RULES + b"\x00\xff\xfe",
    ],
    ids=["byte order mark", "CRLF", "CR", "no line end", "junk"],
)
def test_rules_are_obeyed_however_their_lines_end(tmp_path: Path, body: bytes) -> None:
    assert crawled(tmp_path, one_robots(text(body)))[0] == ALL_BUT_PRIVATE


# -- 2.3.1.2 redirects


def chain(hops: int, *, final: bytes, hosts: Sequence[str] = ("a.test",)) -> Answers:
    """`/robots.txt` leads to `/1.txt`, and so on, each on the next of the hosts; the last one answers."""

    def answers(host: str, path: str) -> bytes:
        if not path.endswith(".txt") or host not in hosts:
            return page(path.encode())
        place = 0 if path == "/robots.txt" else int(path[1:-4])
        if place == hops:
            return final
        return moved(f"http://{hosts[(place + 1) % len(hosts)]}/{place + 1}.txt")

    return answers


@pytest.mark.parametrize("hops", [1, 2, 5])
@pytest.mark.parametrize("hosts", [("a.test",), ("a.test", "b.test", "c.test")])
def test_up_to_five_redirects_are_followed_also_across_hosts(
    tmp_path: Path, hops: int, hosts: tuple[str, ...]
) -> None:
    assert crawled(tmp_path, chain(hops, final=text(RULES), hosts=hosts))[0] == ALL_BUT_PRIVATE


@pytest.mark.parametrize("status", [b"301 M", b"302 F", b"303 S", b"307 T", b"308 P"])
def test_every_kind_of_redirect_is_followed(tmp_path: Path, status: bytes) -> None:
    def answers(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return moved("/real.txt", status)
        return text(RULES) if path == "/real.txt" else page(path.encode())

    assert crawled(tmp_path, answers)[0] == ALL_BUT_PRIVATE


def test_beyond_five_redirects_the_file_counts_as_unavailable(tmp_path: Path) -> None:
    async def visit(one: Visit) -> list[str]:
        await one.go(A + OPEN, A + PRIVATE)
        return one.asked()

    asked = visiting(tmp_path, chain(6, final=text(b"User-agent: *\nDisallow: /")), visit)
    assert asked[:6] == ["/robots.txt", "/1.txt", "/2.txt", "/3.txt", "/4.txt", "/5.txt"]
    assert set(asked[6:]) == EVERYTHING


@pytest.mark.parametrize(
    ("final", "pages"),
    [
        (text(b"", status=b"404 No"), EVERYTHING),
        (text(b"", status=b"500 Oops"), NOTHING),
        (b"", NOTHING),
        (moved("mailto:x"), NOTHING),
    ],
)
def test_what_a_redirect_ends_with_counts(tmp_path: Path, final: bytes, pages: set[str]) -> None:
    assert crawled(tmp_path, chain(2, final=final, hosts=("a.test", "b.test")))[0] == pages


def test_the_rules_found_on_another_host_do_not_bind_that_host(tmp_path: Path) -> None:
    answers = chain(1, final=text(RULES), hosts=("a.test", "b.test"))

    def ours(host: str, path: str) -> bytes | None:
        return (
            text(b"", status=b"404 No") if (host, path) == ("b.test", "/robots.txt") else answers(host, path)
        )

    async def visit(one: Visit) -> tuple[set[str], set[str]]:
        await one.go(A + OPEN, A + PRIVATE, "http://b.test" + OPEN, "http://b.test" + PRIVATE)
        return one.pages("a.test"), one.pages("b.test")

    assert visiting(tmp_path, ours, visit) == (ALL_BUT_PRIVATE, EVERYTHING)


# -- 2.3.1.3 unavailable, 2.3.1.4 unreachable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_4xx_allows_everything(tmp_path: Path, status: int) -> None:
    answer = text(b"User-agent: *\nDisallow: /", status=b"%d X" % status)
    assert crawled(tmp_path, one_robots(answer))[0] == EVERYTHING


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_5xx_and_being_throttled_allow_nothing(tmp_path: Path, status: int) -> None:
    assert crawled(tmp_path, one_robots(text(b"", status=b"%d X" % status)))[0] == NOTHING


@pytest.mark.parametrize("answer", [b"HTTP/1.1 304 Not Modified\r\n\r\n", page(b"", status=b"300 Choose")])
def test_an_answer_that_is_none_allows_nothing(tmp_path: Path, answer: bytes) -> None:
    assert crawled(tmp_path, one_robots(answer))[0] == NOTHING


def cut(head: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, FailureKind.FIRST_BYTE_TIMEOUT),
        (b"", FailureKind.CONNECTION_LOST),
        (cut(b"Content-Length: 1000", b"User-agent: *\nAllow: /\n"), FailureKind.CONNECTION_LOST),
        (cut(b"Transfer-Encoding: chunked", b"5\r\nUser-"), FailureKind.CONNECTION_LOST),
        (text(gzip.compress(RULES * 99, mtime=0)[:-40], b"Content-Encoding: gzip"), FailureKind.BAD_CODING),
        (text(b"\x00\x01", b"Content-Encoding: gzip"), FailureKind.BAD_CODING),
        (b"SSH-2.0-OpenSSH_9.2\r\n", FailureKind.PROTOCOL),
    ],
    ids=["silence", "hangs up", "cut", "cut chunk", "cut gzip", "no gzip", "not HTTP"],
)
def test_what_cannot_be_read_allows_nothing(tmp_path: Path, answer: bytes | None, kind: FailureKind) -> None:
    pages, failures = crawled(tmp_path, one_robots(answer))
    assert (pages, set(failures)) == (NOTHING, {kind})


def test_a_host_that_refuses_connections_allows_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    nobody = (f"a.test:80:127.0.0.1:{port}",)
    assert crawled(tmp_path, one_robots(text(b"")), elsewhere=nobody) == (
        NOTHING,
        [FailureKind.CONNECT_REFUSED],
    )


def test_a_name_that_cannot_be_resolved_allows_nothing(tmp_path: Path) -> None:
    found = crawled(tmp_path, one_robots(text(b"")), base="http://a..test:81")
    assert found == (NOTHING, [FailureKind.DNS_NOT_FOUND])


def test_an_unreachable_file_is_asked_for_again_and_obeyed_once_it_is_there(tmp_path: Path) -> None:
    said = iter([text(b"", status=b"500 Oops"), b"", text(RULES)])

    async def visit(one: Visit) -> list[set[str]]:
        found = []
        for wait in (0.0, 60.0, 3600.0):
            one.clock.advance(wait)
            await one.go(A + OPEN, A + PRIVATE)
            found.append(one.pages())
        return found

    assert visiting(tmp_path, each_robots(said), visit) == [NOTHING, NOTHING, ALL_BUT_PRIVATE]


# -- 2.3.2 caching, 2.5 limits, and what a file is about


def test_a_file_is_used_for_a_day_and_no_longer(tmp_path: Path) -> None:
    said = iter([text(RULES), text(b"User-agent: *\nDisallow: /open\n")])

    async def visit(one: Visit) -> tuple[list[str], list[str]]:
        began = one.clock.now()
        await one.go(A + OPEN)
        one.clock.advance(began + 86_400 - 30 - one.clock.now())
        await one.go(A + "/open/2", turns=5)
        before = one.asked()
        one.clock.advance(began + 86_400 - one.clock.now())
        await one.go(A + "/open/3", A + PRIVATE)
        return before, one.asked()[len(before) :]

    before, after = visiting(tmp_path, each_robots(said), visit)
    assert before == ["/robots.txt", OPEN, "/open/2"]
    assert after == ["/robots.txt", PRIVATE]


def filled(size: int, last: bytes) -> bytes:
    """A file whose last line begins `size` bytes from its start."""
    filler = b"# " + b"x" * 97 + b"\n"
    body = b"User-agent: *\n" + filler * (size // len(filler))
    body = body[: size - 1].rpartition(b"\n")[0] + b"\n"
    return body + b"#" * (size - len(body) - 1) + b"\n" + last


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(
    ("begins", "rule", "pages"),
    [
        (MAX_BYTES - 30, b"Disallow: /private/\n", ALL_BUT_PRIVATE),
        (MAX_BYTES - 20, b"Disallow: /private/\n", ALL_BUT_PRIVATE),
        (MAX_BYTES - 11, b"Disallow: /private/\n", EVERYTHING),
        (MAX_BYTES - 14, b"Disallow: /private/\n", EVERYTHING),
        (MAX_BYTES + 1, b"Disallow: /private/\n", EVERYTHING),
    ],
    ids=["before", "just before", "cut at /", "cut at /pri", "after"],
)
def test_500_kib_are_read_and_a_rule_that_is_cut_there_is_none(
    tmp_path: Path, begins: int, rule: bytes, pages: set[str], coded: bool
) -> None:
    body = filled(begins, rule + b"# more\n" * 100_000)
    answer = text(gzip.compress(body, mtime=0), b"Content-Encoding: gzip") if coded else text(body)
    assert crawled(tmp_path, one_robots(answer))[0] == pages


def test_every_scheme_host_and_port_has_a_file_of_its_own(tmp_path: Path) -> None:
    rules = {
        "a.test": b"User-agent: *\nDisallow: /private/\n",
        "a.test:8080": b"User-agent: *\nDisallow: /open\n",
        "www.a.test": b"",
    }

    async def visit(one: Visit) -> dict[str, set[str]]:
        bases = ["http://" + host for host in rules] + ["https://a.test"]
        await one.go(*(base + path for base in bases for path in (OPEN, PRIVATE)))
        return {host: one.pages(host) for host in rules}

    def answers(host: str, path: str) -> bytes:
        return text(rules[host]) if path == "/robots.txt" else page(path.encode())

    found = visiting(tmp_path, answers, visit, elsewhere=("a.test:443:127.0.0.1:1",))
    assert found == {"a.test": {OPEN}, "a.test:8080": {PRIVATE}, "www.a.test": {OPEN, PRIVATE}}


def test_sitemaps_and_content_signals_are_kept_with_the_rules(tmp_path: Path) -> None:
    body = (
        b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\nSitemap: http://a.test/map.xml\n"
    )

    async def visit(one: Visit) -> tuple[tuple[str, ...], str]:
        await one.go(A + OPEN)
        rules = one.rules()
        return rules.sitemaps, rules.content_signal

    found = visiting(tmp_path, one_robots(text(body)), visit)
    assert found == (("http://a.test/map.xml",), "search=yes, ai-train=no")
