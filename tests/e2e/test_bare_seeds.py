"""Seeds as people write them: `example.org` is asked over https, and over http where there is no https."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.certificates import Certificates
from tests.e2e.command import ENVIRON, command, read_json, said, skitter
from tests.raw_server import RawServer, page, sends, serving, silent

CONTACT = ("--contact", "me@example.org", "--delay", "0")
HOME = page(b"<title>Home</title>here")


def pinned(*servers: RawServer) -> list[str]:
    """The one who listens at 443 of bare.org, and the one at 80; nobody listens at port 9 of loopback."""
    return [
        word
        for port, server in zip((443, 80), servers, strict=True)
        for word in ("--resolve", f"bare.org:{port}:127.0.0.1:{server.port}")
    ]


def asked(server: RawServer) -> list[bytes]:
    return [one.raw.split()[1] for one in server.requests]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def test_a_bare_domain_is_asked_over_https(tmp_path: Path, certificates: Certificates) -> None:
    tls = certificates.good("bare.org")
    environ = {"SKITTER_FETCH_CA_FILE": certificates.ca_file}
    with serving(sends(HOME, keep=True), tls=tls) as secure, serving(sends(HOME, keep=True)) as plain:
        into = ("--into", tmp_path / "c", *CONTACT, *pinned(secure, plain))
        done = skitter("crawl", "bare.org", *into, environ=environ)
    said(done)
    assert "asking for https://bare.org/; over http where https cannot be connected" in done.stderr
    assert asked(secure) == [b"/robots.txt", b"/"]
    assert plain.connections == 0


@pytest.mark.parametrize("fault", ["expired", "of_a_stranger", "no TLS", "refused"])
def test_a_bare_domain_without_https_is_asked_over_http(
    tmp_path: Path, certificates: Certificates, fault: str
) -> None:
    has_tls = fault in ("expired", "of_a_stranger")
    tls = getattr(certificates, fault)("bare.org") if has_tls else None
    folder = tmp_path / "c"
    with serving(sends(HOME, keep=True), tls=tls) as secure, serving(sends(HOME, keep=True)) as plain:
        resolve = pinned(secure, plain)
        if fault == "refused":
            secure.close()
        done = skitter("crawl", "bare.org/x?y=1", "--into", folder, *CONTACT, *resolve)
        again = skitter("crawl", "bare.org/x?y=1", "--into", folder)
    said(done)
    assert "Complete: nothing is left to fetch." in done.stderr
    assert asked(plain) == [b"/robots.txt", b"/x?y=1"]
    found = read_json("explain", "https://bare.org/x?y=1", "--in", folder)
    assert (found["state"], found["leads_to"]) == ("refused", "http://bare.org/x?y=1")
    assert found["reason"].startswith("no_https: https://bare.org cannot be connected (")
    # the same command again knows it by now, asks nobody and does not wait
    said(again)
    assert "1 of 1 seeds were known already" in again.stderr


def test_bare_domains_stand_in_files_beside_urls_and_each_falls_back_by_itself(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("bare.org\nwww.bare.org:8080/a\nhttps://strict.org/\n")
    with serving(sends(HOME, keep=True)) as plain:
        rest = ("--resolve", f"*:80:127.0.0.1:{plain.port}", "--resolve", f"*:8080:127.0.0.1:{plain.port}")
        nobody = ("--resolve", "*:443:127.0.0.1:9")
        into = ("--into", tmp_path / "c", *CONTACT, *rest, *nobody)
        done = skitter("crawl", seeds, *into, environ={"SKITTER_CRAWL_LINGER": "0"})
    # a seed that was given as https is not asked over http: it waits for its host
    said(done, 3)
    hosts = {one.raw.split(b"\r\n")[1] for one in plain.requests}
    assert {b"Host: bare.org", b"Host: www.bare.org:8080"} <= hosts
    assert b"Host: strict.org" not in hosts
    assert read_json("stats", tmp_path / "c")["pages"] == 2
    assert read_json("explain", "https://strict.org/", "--in", tmp_path / "c")["state"] == "queued"


def test_a_domain_where_nobody_answers_at_all_is_named_with_both(tmp_path: Path) -> None:
    nobody = ("--resolve", "*:*:127.0.0.1:9")
    into = ("--into", tmp_path / "c", *CONTACT, *nobody)
    done = skitter("crawl", "bare.org", *into, environ={"SKITTER_CRAWL_LINGER": "0"})
    said(done, 3)
    text = " ".join(done.stderr.split())
    assert "No seed could be fetched. https://bare.org/ leads to http://bare.org/, waits: " in text


def test_a_fallback_is_kept_through_a_kill(tmp_path: Path) -> None:
    """The seed is known to be bare by the frontier, not by the process that was given it."""
    folder = tmp_path / "c"
    with serving(silent()) as secure, serving(sends(HOME, keep=True)) as plain:
        words = ("crawl", "bare.org", "--into", folder, *CONTACT, *pinned(secure, plain))
        with subprocess.Popen(command(*words), env=ENVIRON, stderr=subprocess.DEVNULL) as crawl:
            while not secure.connections:
                assert crawl.poll() is None
            os.kill(crawl.pid, signal.SIGKILL)
        secure.close()
        said(skitter("crawl", "--into", folder))
        assert asked(plain) == [b"/robots.txt", b"/"]
