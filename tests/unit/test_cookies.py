"""Cookies go where they belong and nowhere else, whatever a server or a file says."""

from __future__ import annotations

import pytest

from skitter.identities.cookie_files import NotCookies, read_cookies
from skitter.identities.cookies import CookieJar, parse_cookie
from skitter.identities.redaction import redacted_cookie
from skitter.identities.sealing import Seal, SessionState

NOW = 1_800_000_000.0


def jar(host: str = "www.example.co.uk", *, is_secure: bool = True) -> CookieJar:
    return CookieJar(host, is_secure=is_secure)


@pytest.mark.parametrize(
    ("field", "is_kept"),
    [
        ("a=1", True),
        ("a=1; Domain=example.co.uk", True),
        ("a=1; Domain=.example.co.uk", True),
        ("a=1; Domain=co.uk", False),
        ("a=1; Domain=other.example.co.uk", False),
        ("a=1; Domain=ample.co.uk", False),
        ("__Host-a=1; Secure; Path=/", True),
        ("__Host-a=1; Secure; Path=/; Domain=www.example.co.uk", False),
        ("__Secure-a=1", False),
        ("no equals sign", False),
        ("a=" + "x" * 5000, False),
    ],
)
def test_a_cookie_is_kept_only_for_a_domain_that_its_host_may_speak_for(field: str, is_kept: bool) -> None:
    found = parse_cookie(field, "www.example.co.uk", "/", NOW, is_secure=True)
    assert (found is not None) == is_kept


def test_a_secure_cookie_is_neither_set_nor_sent_over_http() -> None:
    plain = jar(is_secure=False)
    assert not plain.take(["a=1; Secure"], "/", NOW)
    assert plain.header("/", NOW) == ""


def test_a_cookie_is_sent_below_its_path_until_it_expires() -> None:
    found = jar()
    assert found.take(["a=1; Path=/forum; Max-Age=60", "b=2"], "/forum/login", NOW)
    assert found.header("/forum/t/1", NOW) == "a=1; b=2"
    assert found.header("/forums", NOW) == ""
    assert found.header("/forum/t/1", NOW + 61) == "b=2"
    assert found.take(["b=; Expires=Wed, 09-Jun-2021 10:18:14 GMT"], "/forum/login", NOW)
    assert found.header("/forum/t/1", NOW) == "a=1"


def test_a_server_cannot_fill_our_memory_with_cookies() -> None:
    found = jar()
    found.take([f"c{number}={'x' * 4000}" for number in range(200)], "/", NOW)
    assert len(found.header("/", NOW)) < 20_000


def test_cookie_files_of_curl_and_of_browsers_give_a_host_its_own_cookies_only() -> None:
    lines = (
        "# Netscape HTTP Cookie File\n"
        "#HttpOnly_.example.co.uk\tTRUE\t/\tTRUE\t0\tsid\tabc\n"
        ".co.uk\tTRUE\t/\tFALSE\t0\tsuper\tcookie\n"
        "other.example\tFALSE\t/\tFALSE\t0\tx\ty\n"
    )
    exported = '[{"name": "sid", "value": "abc", "domain": ".example.co.uk", "secure": true, "extra": 1}]'
    for text in (lines, exported):
        found = CookieJar("www.example.co.uk", is_secure=True, cookies=read_cookies(text))
        assert found.header("/", NOW) == "sid=abc"
    with pytest.raises(NotCookies, match="line 1"):
        read_cookies("secret that is no cookie")


def test_a_session_is_opened_by_the_secrets_that_it_was_sealed_with_and_no_others() -> None:
    found = jar()
    found.take(["sid=the-session"], "/", NOW)
    seal = Seal("https://a.test", ("password",))
    sealed = seal.write(SessionState(found.cookies(), True))
    assert b"the-session" not in sealed
    kept = seal.read(sealed)
    assert kept is not None
    assert kept.cookies[0].value == "the-session"
    assert Seal("https://a.test", ("another",)).read(sealed) is None
    assert Seal("https://b.test", ("password",)).read(sealed) is None
    assert seal.read(b"") is None


def test_a_redacted_cookie_keeps_its_name_and_attributes() -> None:
    assert redacted_cookie(" sid=abc; Path=/") == " sid=redacted; Path=/"
    assert "abc" not in redacted_cookie("abc")
