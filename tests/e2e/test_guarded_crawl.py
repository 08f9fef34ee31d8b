"""The address guard at work in a real crawl: redirects and robots.txt that lead where nobody may go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Certificates
from tests.e2e.command import complaint, read_json, said, serving_site, skitter
from tests.nameserver import serving_names
from tests.raw_server import RawServer, page, sends, serving

ZONE = {"metadata.test": ("169.254.169.254",), "both.test": ("10.0.0.7", "fd00::7")}
HOME = b" ".join(
    b"<a href=/%b>x</a>" % name for name in (b"loopback", b"mapped", b"metadata", b"both", b"odd")
)
NO_LINGER = {"SKITTER_CRAWL_LINGER": "0"}


def moved(to: str) -> bytes:
    return page(b"", b"Location: " + to.encode(), status=b"302 Found")


class Crawled:
    def __init__(self, folder: Path, server: RawServer, summary: str) -> None:
        self.folder, self.server, self.summary = folder, server, summary

    def explained(self, url: str) -> str:
        return said(skitter("explain", url, "--in", self.folder))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("guarded")
    pages = {"/": HOME, "/secret": b"never to be seen"}
    config = folder / "guarded.toml"
    with serving_names(ZONE) as dns, serving_site(pages) as server:
        elsewhere = f"http://127.0.0.1:{server.port}"
        pages |= {
            "/loopback": moved(elsewhere + "/secret"),
            "/mapped": moved("http://[::ffff:10.0.0.1]/"),
            "/metadata": moved("http://metadata.test/latest/"),
            "/both": moved("https://both.test/"),
            "/odd": moved(f"http://0x7f.1:{server.port}/secret?odd"),
        }
        config.write_text(
            '[crawl]\nscope = "any"\nlinger = 3\n[politeness]\ndelay = 0.0\nslow_factor = 0.0\n'
            f'[fetch]\nnameservers = ["{dns}"]\n'
            f'resolve = ["site.test:80:127.0.0.1:{server.port}"]\n[identity]\ncontact = "me@example.org"\n'
        )
        done = skitter("crawl", "http://site.test/", "--into", folder / "crawl", "--config", config)
        said(done)
        yield Crawled(folder / "crawl", server, done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:{port}/secret", "loopback address 127.0.0.1"),
        ("http://127.0.0.1:{port}/secret?odd", "loopback address 127.0.0.1"),
        ("http://[::ffff:10.0.0.1]/", "private address ::ffff:"),
        ("http://metadata.test/latest/", "cloud metadata address 169.254.169.254"),
        ("https://both.test/", "private address 10.0.0.7; private address fd00::7"),
    ],
)
def test_a_redirect_to_a_forbidden_address_is_refused_and_explained(
    crawled: Crawled, url: str, reason: str
) -> None:
    text = crawled.explained(url.format(port=crawled.server.port))
    assert "state       refused" in text
    assert f"address_refused: {reason}" in text
    assert "a redirect led to it (hop 1)" in text


def test_nobody_was_asked_but_the_host_that_is_allowed_by_name(crawled: Crawled) -> None:
    hosts = {one.raw.split(b"\r\n")[1] for one in crawled.server.requests}
    assert hosts == {b"Host: site.test"}
    stats = read_json("stats", crawled.folder)
    assert (stats["pages"], stats["refusals"]) == (1, {"address_refused": 5})
    assert (stats["urls"]["completed"], stats["urls"]["queued"], stats["urls"]["failed"]) == (6, 0, 0)
    assert "Complete: nothing is left to fetch." in crawled.summary


def test_a_robots_txt_at_a_forbidden_address_counts_as_unreachable_and_is_not_waited_for(
    tmp_path: Path,
) -> None:
    with serving_site({}) as inner, serving_site({"/robots.txt": moved(inner.url + "/robots.txt")}) as server:
        pin = f"site.test:80:127.0.0.1:{server.port}"
        arguments = ("--into", tmp_path / "c", "--resolve", pin, "--contact", "me@example.org")
        done = skitter("crawl", "http://site.test/", *arguments, environ=NO_LINGER)
        assert "Ended early: all that is left has to wait." in done.stdout + done.stderr
        text = said(skitter("explain", "http://site.test/", "--in", tmp_path / "c"))
        assert "state       queued" in text
        assert "backing off after 1 failures in a row" in text
        assert f"its robots.txt is at {inner.url}: address_refused: loopback address 127.0.0.1" in text
        assert inner.requests == []
        assert len(server.requests) == 1


def test_a_broken_certificate_keeps_a_host_out_until_its_policy_says_otherwise(tmp_path: Path) -> None:
    answer = sends(page(b"hello"), keep=True)
    with serving(answer, tls=Certificates(tmp_path).of_a_stranger("tls.test")) as server:
        pin = f"tls.test:443:127.0.0.1:{server.port}"
        arguments = ("--into", tmp_path / "c", "--resolve", pin, "--delay", "0")
        skitter("crawl", "https://tls.test/", *arguments, environ=NO_LINGER)
        assert "tls_untrusted" in said(skitter("explain", "https://tls.test/", "--in", tmp_path / "c"))
        assert server.requests == []
        words = said(skitter("policy", tmp_path / "c", "https://tls.test", "--no-verify-tls"))
        assert "certificate not checked" in words
        done = skitter("crawl", "--into", tmp_path / "c", "--resolve", pin)
        assert "Complete: nothing is left to fetch." in done.stdout + done.stderr, done
        assert read_json("stats", tmp_path / "c")["pages"] == 1


# -- who is asking

PUBLIC = (
    "http://8.8.8.8/",
    "http://0x08080808/",
    "https://[2001:4860:4860::8888]/",
    "http://intranet/",
    "http://com./",
)


@pytest.mark.parametrize("url", PUBLIC)
def test_public_hosts_are_not_asked_by_somebody_without_a_contact(tmp_path: Path, url: str) -> None:
    said_no = complaint(skitter("crawl", url, "--into", tmp_path / "c"), 2)
    assert "is a public host and there is no contact address" in said_no


def test_a_link_to_a_public_host_is_refused_without_a_contact(tmp_path: Path) -> None:
    with serving_site({"/": b"<a href=http://8.8.8.8/>out</a>"}) as server:
        arguments = ("--into", tmp_path / "c", "--allow-private", "--scope", "any", "--delay", "0")
        said(skitter("crawl", server.url + "/", *arguments))
    text = said(skitter("explain", "http://8.8.8.8/", "--in", tmp_path / "c"))
    assert "address_refused: public address 8.8.8.8 and no contact given" in text


def test_the_product_token_is_the_operators_in_the_user_agent_and_in_robots_txt(tmp_path: Path) -> None:
    pages = {
        "/robots.txt": page(b"User-agent: ourbot\nDisallow: /no\n\nUser-agent: skitter\nDisallow: /\n"),
        "/": b"<a href=/no>1</a> <a href=/yes>2</a>",
        "/yes": b"yes",
    }
    config = tmp_path / "c.toml"
    config.write_text('[identity]\nproduct = "OurBot"\ncontact = "https://example.org/bot"\n')
    with serving_site(pages) as server:
        arguments = ("--into", tmp_path / "c", "--allow-private", "--delay", "0", "--config", config)
        said(skitter("crawl", server.url + "/", *arguments))
        asked = [one.raw.split()[1] for one in server.requests]
        assert sorted(asked) == [b"/", b"/robots.txt", b"/yes"]
        assert all(b"\r\nUser-Agent: OurBot/" in one.raw for one in server.requests)
        assert all(b" (+https://example.org/bot)\r\n" in one.raw for one in server.requests)
