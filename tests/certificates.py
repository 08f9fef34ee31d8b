"""Certificates of an authority of our own, good ones and bad ones of each kind."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

_DAY = timedelta(days=1)


class Certificates:
    """`ca_file` is what a fetcher has to trust; each method gives the context of a server."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca_file)

    def good(self, *names: str) -> ssl.SSLContext:
        return _context(self._authority.issue_cert(*names))

    def expired(self, *names: str) -> ssl.SSLContext:
        now = datetime.now(UTC)
        return _context(self._authority.issue_cert(*names, not_before=now - 9 * _DAY, not_after=now - _DAY))

    def not_yet_valid(self, *names: str) -> ssl.SSLContext:
        now = datetime.now(UTC)
        return _context(self._authority.issue_cert(*names, not_before=now + _DAY, not_after=now + 9 * _DAY))

    def of_a_stranger(self, *names: str) -> ssl.SSLContext:
        return _context(trustme.CA().issue_cert(*names))

    def without_common_cipher(self, *names: str) -> ssl.SSLContext:
        """Its one cipher needs an RSA key, and it has none."""
        context = self.good(*names)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AES128-SHA256")
        return context

    def files(self, folder: Path, *names: str) -> tuple[Path, Path]:
        """A chain and its key, for a server that is not ours."""
        leaf = self._authority.issue_cert(*names)
        chain, key = folder / "chain.pem", folder / "key.pem"
        chain.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        leaf.private_key_pem.write_to_path(key)
        return chain, key


def _context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context
