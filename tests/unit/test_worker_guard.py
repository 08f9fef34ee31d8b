"""A server can tighten what a worker's machine does, and loosen it only where the worker was told so."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from skitter.errors import UsageError
from skitter.runtime.worker_guard import Allowed, guarded, warning_of, words_of
from skitter.settings import FetchSettings, Settings
from skitter.settings.host_identity import HostIdentity

LOOSE: dict[Allowed, dict[str, Any]] = {
    Allowed.PRIVATE: {"allow_private": True},
    Allowed.RESOLVE: {"resolve": ("*:80:169.254.169.254",), "nameservers": ("192.0.2.1",)},
    Allowed.TLS: {"verify_tls": False, "ca_file": "/tmp/anybody.pem"},
}
ALL_LOOSE = replace(
    FetchSettings(), **{name: value for of_it in LOOSE.values() for name, value in of_it.items()}
)


def test_nothing_that_a_server_loosens_is_taken_over_by_itself() -> None:
    settings, kept = guarded(Settings(fetch=ALL_LOOSE), ())
    assert settings.fetch == FetchSettings()
    assert sorted(kept) == sorted(f"fetch.{name}" for of_it in LOOSE.values() for name in of_it)


@pytest.mark.parametrize("what", LOOSE)
def test_what_is_allowed_is_taken_over_and_nothing_else(what: Allowed) -> None:
    settings, _ = guarded(Settings(fetch=ALL_LOOSE), (what,))
    assert settings.fetch == replace(FetchSettings(), **LOOSE[what])


def test_what_a_server_tightens_is_taken_over() -> None:
    tight = Settings(fetch=FetchSettings(max_body=1_000, concurrency=2, total_timeout=1.0))
    assert guarded(tight, ()) == (tight, [])
    assert guarded(tight, (*Allowed,)) == (tight, [])


def test_secrets_of_this_machine_are_not_used_unless_that_is_allowed() -> None:
    settings = Settings(identities={"https://a.test": HostIdentity()})
    with pytest.raises(UsageError, match=r"https://a.test with secrets of this machine.*--allow secrets"):
        guarded(settings, (Allowed.PRIVATE,))
    assert guarded(settings, (Allowed.SECRETS,))[0] == settings


def test_the_words_say_which_flags_to_give() -> None:
    words = words_of(["fetch.allow_private", "fetch.resolve"])
    assert words.endswith("start the worker with --allow private --allow resolve")


@pytest.mark.parametrize(
    "server", ["http://192.0.2.7:8600", "http://crawl.example.org", "http://[2001:db8::1]:80"]
)
def test_a_server_that_is_reached_in_the_clear_is_warned_of(server: str) -> None:
    assert "not encrypted" in warning_of(server)


@pytest.mark.parametrize(
    "server",
    ["https://crawl.example.org", "http://127.0.0.1:8600", "http://[::1]:1", "http://localhost", "unix:/s"],
)
def test_loopback_tls_and_unix_sockets_are_not(server: str) -> None:
    assert warning_of(server) == ""
