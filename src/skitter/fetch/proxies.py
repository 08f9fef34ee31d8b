"""Proxies: how libcurl is told of one, and which of its errors are the proxy's.

Under `fetch/transfer.py`, for hosts whose identity names a proxy. All requests go through a tunnel (CONNECT or
SOCKS5) to the address that the guard has seen; only with socks5h does the proxy look up the name.
"""

from __future__ import annotations

import pycurl

from skitter.fetch.base import Route

_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_, which pycurl does not name
_CURLE_PROXY = 97
_OF_PROXY = frozenset({pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_CONNECT, _CURLE_PROXY})


def use_proxy(curl: pycurl.Curl, route: Route, ca_file: str) -> None:
    curl.setopt(pycurl.PROXY, route.proxy)
    curl.setopt(pycurl.NOPROXY, "")
    # Also for http://: what is asked of the proxy is an address, and the page's head is the host's own.
    curl.setopt(pycurl.HTTPPROXYTUNNEL, 1)
    curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
    curl.setopt(pycurl.PROXY_CAINFO, ca_file)
    if route.proxy_user:
        curl.setopt(pycurl.PROXYAUTH, pycurl.HTTPAUTH_BASIC)
        curl.setopt(pycurl.PROXYUSERNAME, route.proxy_user)
        curl.setopt(pycurl.PROXYPASSWORD, route.proxy_password)


def is_of_proxy(error: pycurl.error) -> bool:
    """Whether an error of a request through a proxy is the proxy's: it is all that is dialled here."""
    code, words = error.args[0], str(error.args[-1])
    return code in _OF_PROXY or (code == pycurl.E_RECV_ERROR and "CONNECT" in words)
