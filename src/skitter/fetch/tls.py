"""TLS: why a handshake failed, and what one agreed on.

Beside `fetch/curl.py`. Decides nothing: whether certificates are checked is up to the settings and the operator.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import NamedTuple

import pycurl

from skitter.errors import UsageError
from skitter.model import FailureKind

_K = FailureKind
_AGREED = re.compile(rb"SSL connection using (\S+) / (\S+)")
_HANDSHAKE = frozenset(
    {
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_CERTPROBLEM,  # the server insists on a certificate of ours
        pycurl.E_SSL_SHUTDOWN_FAILED,
        pycurl.E_SSL_ENGINE_INITFAILED,
    }
)
_REFUSED = frozenset(
    {pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_ISSUER_ERROR, pycurl.E_SSL_INVALIDCERTSTATUS}
)
# OpenSSL's X509_V_ERR_* numbers.
_DATES = (9, 10)
_NAMES = (0, 1, 62)


def tls_failure(code: int, verify_result: int) -> FailureKind | None:
    """The kind for one of libcurl's error codes; None when TLS is not to blame.

    libcurl has one code (60) for every certificate that it refuses. OpenSSL's own verdict says which fault it was
    (CURLINFO_SSL_VERIFYRESULT). It stays at libcurl's initial 1 when the name was wrong, because libcurl compares
    names itself, and first: an expired certificate for another name is a wrong name.
    """
    if code in _HANDSHAKE:
        return _K.TLS_HANDSHAKE
    if code == pycurl.E_SSL_CACERT_BADFILE:
        raise UsageError(
            "the list of trusted issuers cannot be read: check fetch.ca_file, or reinstall certifi"
        )
    if code not in _REFUSED:
        return None
    if code == pycurl.E_PEER_FAILED_VERIFICATION and verify_result in _NAMES:
        return _K.TLS_NAME
    return _K.TLS_EXPIRED if verify_result in _DATES else _K.TLS_UNTRUSTED


class Tls(NamedTuple):
    """What a handshake agreed on, as OpenSSL names it: `TLSv1.3`, `TLS_AES_256_GCM_SHA384`."""

    version: str = ""
    cipher: str = ""


def agreed_in(text: bytes) -> Tls | None:
    """What a line of libcurl's debug output says about TLS; None for all other lines."""
    found = _AGREED.match(text)
    return Tls(found[1].decode("latin-1"), found[2].decode("latin-1")) if found else None


class Handshakes:
    """What was agreed on the last connection to each origin, for the `most` most recent origins.

    libcurl reports it once, in its debug output while it connects. Reading that output costs CPU on every
    request, so it is read only for an origin of which no connection is known. The result counts as long as
    the number of the connection (CURLINFO_CONN_ID) is the same.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: OrderedDict[str, tuple[int, Tls]] = OrderedDict()

    def knows(self, origin: str) -> bool:
        return origin in self._last

    def lookup(self, origin: str, connection: int, heard: Tls | None) -> Tls:
        """For the connection just used; `heard` is what its debug output said. Empty for a new connection
        whose output was not read: then the origin is forgotten, and the output of its next connection is
        read."""
        if heard is not None:
            self._last[origin] = (connection, heard)
            if len(self._last) > self._most:
                self._last.popitem(last=False)
            return heard
        known = self._last.get(origin)
        if known is not None and known[0] == connection:
            self._last.move_to_end(origin)
            return known[1]
        self._last.pop(origin, None)
        return Tls()
