"""What pages and sites reserve: read from wherever they say it, for us and not for others."""

from __future__ import annotations

import json

import pytest

from skitter.model import Host, HostLease, Task, TaskKind, Token, UrlKey
from skitter.parse.declarations import read_tdmrep, tdm_rules
from skitter.parse.directives import read_directives
from skitter.parse.page import read_page
from skitter.settings import OptOutSettings
from skitter.worker.opt_outs import OptOuts
from skitter.worker.results import Reading


def page(html: str, **said: str) -> Reading:
    tdm, policy, signal = said.get("tdm", ""), said.get("tdm_policy", ""), said.get("signal", "")
    found = read_page(
        html.encode(),
        url="http://a.test/",
        content_type="text/html",
        tdm=tdm,
        tdm_policy=policy,
        content_signal=signal,
    )
    return Reading(found)


def lease(**said: str) -> HostLease:
    return HostLease(
        host=Host("http://a.test"),
        token=Token(1),
        delay=1,
        parallel=1,
        not_before=0,
        deadline=9,
        tasks=(),
        **said,  # type: ignore[arg-type]
    )


def task(path: str) -> Task:
    return Task(kind=TaskKind.PAGE, key=UrlKey(b"k" * 16), url="http://a.test" + path)


@pytest.mark.parametrize(
    ("html", "header", "reserved"),
    [
        ("<p>nothing", "", ""),
        ('<meta name="tdm-reservation" content="1">', "", "1"),
        ('<meta name="tdm-reservation" content="0">', "", "0"),
        ("<p>nothing", "1", "1"),
        ('<meta name="tdm-reservation" content="0">', "1", "1"),
        ('<meta name="tdm-reservation" content="1">', "0", "1"),
        ('<meta name="tdm-reservation" content="yes">', "", ""),
        ("<p>a text about tdm-reservation", "", ""),
    ],
)
def test_the_reservation_of_mining_is_read_from_header_and_page(
    html: str, header: str, reserved: str
) -> None:
    found = page(html, tdm=header).page
    assert found is not None
    assert found.directives.tdm == reserved
    assert ("tdm-reservation" in found.directives.text) == bool(reserved)


def test_the_terms_count_only_where_mining_is_reserved() -> None:
    assert read_directives(tdm="1", tdm_policy=" https://a.test/terms ").tdm_policy == "https://a.test/terms"
    assert read_directives(tdm="0", tdm_policy="https://a.test/terms").tdm_policy == ""


def test_nosnippet_has_two_spellings_and_other_agents_are_not_us() -> None:
    assert read_directives(["nosnippet"]).nosnippet
    assert read_directives(["max-snippet: 0"]).nosnippet
    assert not read_directives(["max-snippet: 50"]).nosnippet
    assert not read_directives(["otherbot: nosnippet, noarchive"]).nosnippet
    assert read_directives(["otherbot: noindex, skitter: noarchive"]).noarchive


RULES = [
    {"location": "/", "tdm-reservation": 0},
    {"location": "/photos/", "tdm-reservation": 1, "tdm-policy": "https://a.test/terms.json"},
    {"location": "/*.pdf$", "tdm-reservation": "1"},
    {"location": "", "tdm-reservation": 1},
    {"location": "/odd", "tdm-reservation": 7},
    "nonsense",
]


@pytest.mark.parametrize(
    ("path", "reserved"),
    [("/", "0"), ("/photos/1", "1"), ("/a/b.pdf", "1"), ("/a/b.pdf?x", "0"), ("/odd", "0")],
)
def test_the_longest_pattern_of_a_tdmrep_decides(path: str, reserved: str) -> None:
    text = read_tdmrep(json.dumps(RULES).encode())
    assert len(tdm_rules(text)) == 3
    found = OptOuts(OptOutSettings()).said(lease(tdm=text), task(path), page("<p>x")).page
    assert found is not None
    assert found.directives.tdm == reserved
    assert found.directives.tdm_policy == ("https://a.test/terms.json" if path == "/photos/1" else "")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b"null", b"[" * 100_000, b"\xff\xfe", b"[[1]]"])
def test_no_tdmrep_can_do_harm(body: bytes) -> None:
    assert read_tdmrep(body) == ""


def test_a_long_tdmrep_is_cut_at_a_rule() -> None:
    many = [{"location": f"/{n}/" + "x" * 200, "tdm-reservation": 1} for n in range(5000)]
    text = read_tdmrep(json.dumps(many).encode())
    assert 0 < len(tdm_rules(text)) < 100
    assert len(text) <= 1_500


def test_a_page_goes_before_its_host() -> None:
    host = lease(tdm=read_tdmrep(b'[{"location": "/", "tdm-reservation": 1}]'), signal="ai-train=no")
    said = OptOuts(OptOutSettings()).said(host, task("/"), page("<p>x", tdm="0", signal="ai-train=yes")).page
    assert said is not None
    assert (said.directives.tdm, said.directives.signal) == ("0", "ai-train=yes")


def test_only_what_the_settings_say_is_obeyed() -> None:
    said = read_directives(["noindex, noarchive, nosnippet"], tdm="1", signal="search=yes, ai-train=no")
    assert OptOuts(OptOutSettings()).why_no_text(said) == ""
    assert OptOuts(OptOutSettings()).why_no_body(said, 0.0) == ""
    assert OptOuts(OptOutSettings(noindex="obey")).why_no_text(said) == "noindex"
    assert OptOuts(OptOutSettings(nosnippet="obey")).why_no_text(said) == "nosnippet"
    assert OptOuts(OptOutSettings(tdm_reservation="obey")).why_no_text(said) == "tdm-reservation"
    assert OptOuts(OptOutSettings(content_signal="obey")).why_no_text(said) == ""
    training = OptOuts(OptOutSettings(content_signal="obey", purpose="ai-train"))
    assert training.why_no_text(said) == "content-signal ai-train=no"
    assert OptOuts(OptOutSettings(noarchive="obey")).why_no_body(said, 0.0) == "noarchive"


@pytest.mark.parametrize(
    "date",
    ["Fri, 25 Jun 2010 15:00:00 GMT", "25 Jun 2010 15:00:00 GMT", "2010-06-25", "2010-06-25T15:00:00+00:00"],
)
def test_a_date_counts_once_it_has_passed(date: str) -> None:
    said, obeys = (
        read_directives([f"unavailable_after: {date}"]),
        OptOuts(OptOutSettings(unavailable_after="obey")),
    )
    assert obeys.why_no_body(said, 1_277_500_000.0) == "unavailable_after"
    assert obeys.why_no_body(said, 1_277_400_000.0) == ""
    assert obeys.why_no_body(read_directives(["unavailable_after: soon"]), 1e10) == ""
