"""Signed requests, verified by an implementation that is not ours."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
    algorithms,
)

from skitter.clock import SystemClock
from skitter.errors import SettingsError
from skitter.fetch.signing import RequestSigner, key_directory, open_signer, thumbprint
from tests.e2e.command import complaint, said, serving_site, skitter

AGENT = "https://bot.example.org"


class Directory(HTTPSignatureKeyResolver):
    """The keys as a webmaster has them: from the directory alone."""

    def __init__(self, directory: dict[str, Any]) -> None:
        from base64 import urlsafe_b64decode

        self._keys = {
            key["kid"]: Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(key["x"] + "=="))
            for key in directory["keys"]
        }

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        return self._keys[key_id]

    def resolve_private_key(self, key_id: str) -> Any:
        raise NotImplementedError


def verified(url: str, headers: dict[str, str], directory: dict[str, Any]) -> Any:
    message = SimpleNamespace(method="GET", url=url, headers=headers)
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Directory(directory))
    (result,) = verifier.verify(message, max_age=timedelta(minutes=5))
    return result


def fields(lines: list[bytes]) -> dict[str, str]:
    return dict(line.decode().split(": ", 1) for line in lines)


@pytest.mark.parametrize("authority", ["example.org", "example.org:8443", "xn--bcher-kva.example"])
def test_a_signature_is_verified_by_another_implementation(authority: str) -> None:
    key = Ed25519PrivateKey.generate()
    signer = RequestSigner(key, AGENT, SystemClock())
    result = verified(
        f"https://{authority}/path?q=1", fields(signer.lines(authority)), key_directory(key, "x")
    )
    assert result.parameters["tag"] == "web-bot-auth"
    assert result.parameters["keyid"] == thumbprint(key)
    assert result.parameters["expires"] - result.parameters["created"] == 300
    assert set(result.covered_components) >= {'"@authority"', '"signature-agent";key="sig1"'}
    nonces = {fields(signer.lines(authority))["Signature-Input"].split("nonce=")[1] for _ in range(5)}
    assert len(nonces) == 5


@pytest.mark.parametrize("name", ["Signature-Agent", "authority", "Signature"])
def test_what_was_changed_on_the_way_is_noticed(name: str) -> None:
    key = Ed25519PrivateKey.generate()
    told = fields(RequestSigner(key, AGENT, SystemClock()).lines("example.org"))
    url = "https://other.example/" if name == "authority" else "https://example.org/"
    if name == "Signature-Agent":
        told[name] = 'sig1="https://evil.example"'
    if name == "Signature":
        told[name] = fields(RequestSigner(key, AGENT, SystemClock()).lines("a.example"))[name]
    with pytest.raises(InvalidSignature):
        verified(url, told, key_directory(key, "x"))


def test_the_thumbprint_is_that_of_the_standards_example() -> None:
    """RFC 8037, appendix A."""
    from base64 import urlsafe_b64decode

    secret = urlsafe_b64decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
    assert (
        thumbprint(Ed25519PrivateKey.from_private_bytes(secret))
        == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    )


def test_half_an_identity_is_refused(tmp_path: Path) -> None:
    assert open_signer("", "", SystemClock()) is None
    with pytest.raises(SettingsError, match="signature_agent"):
        open_signer(str(tmp_path / "key.pem"), "", SystemClock())
    (tmp_path / "key.pem").write_text("no key")
    (tmp_path / "key.pem").chmod(0o600)
    with pytest.raises(SettingsError, match="no private key in PEM"):
        open_signer(str(tmp_path / "key.pem"), AGENT, SystemClock())


SITE = {"/": b"<a href=/a>a</a>", "/a": b"<p>a"}
CONFIG = "[fetch]\nallow_private = true\n[politeness]\ndelay = 0.0\n[identity]\ncontact = 'me@example.org'\n"


def test_a_crawl_signs_every_request_and_others_are_as_they_were(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    said(skitter("identity", key, "--new", "--agent", AGENT, "--directory", tmp_path / "directory.json"))
    assert key.stat().st_mode & 0o777 == 0o600
    assert "exists" in complaint(skitter("identity", key, "--new"), 2)
    plain, signed = tmp_path / "plain.toml", tmp_path / "signed.toml"
    plain.write_text(CONFIG)
    signed.write_text(
        f'{CONFIG}signing_key = "{key}"\nsignature_agent = "{AGENT}"\nfrom_address = "bot@example.org"\n'
    )
    with serving_site(SITE) as server:
        said(skitter("crawl", f"{server.url}/", "--into", tmp_path / "p", "--config", plain))
        before = len(server.requests)
        said(skitter("crawl", f"{server.url}/", "--into", tmp_path / "s", "--config", signed))
        raws = [request.raw for request in server.requests]
    assert not any(b"Signature" in raw or b"From:" in raw for raw in raws[:before])
    directory = json.loads((tmp_path / "directory.json").read_text())
    assert len(raws) - before >= 3
    for raw in raws[before:]:
        line, *rest = raw.decode().split("\r\n\r\n")[0].split("\r\n")
        headers = dict(one.split(": ", 1) for one in rest)
        assert headers["From"] == "bot@example.org"
        verified(server.url + line.split()[1], headers, directory)


def test_the_page_for_webmasters_tells_who_asks(tmp_path: Path) -> None:
    config = tmp_path / "my.toml"
    config.write_text(CONFIG)
    with serving_site(SITE) as server:
        said(skitter("crawl", f"{server.url}/", "--into", tmp_path / "c", "--config", config))
    web = tmp_path / "web"
    arguments = ("--range", "192.0.2.0/28", "--range", "2001:db8::/64", "--why", "a <study> of words")
    said(skitter("bot-page", "--in", tmp_path / "c", "--into", web, *arguments))
    page = (web / "index.html").read_text()
    assert "a &lt;study&gt; of words" in page
    assert "User-agent: skitter\nDisallow: /" in page
    assert "me@example.org" in page
    assert ", 0 shorter than promised" in page
    ranges = json.loads((web / "ip-ranges.json").read_text())
    assert ranges["prefixes"] == [{"ipv4Prefix": "192.0.2.0/28"}, {"ipv6Prefix": "2001:db8::/64"}]
    done = skitter("bot-page", "--in", tmp_path / "c", "--into", web, "--range", "192.0.2.1/28")
    assert "is no range of addresses" in complaint(done, 2)
