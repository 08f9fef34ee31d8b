"""What a crawl is to one host: its headers, cookies, login, certificate and proxies, as `[hosts."x"]` tells them.

A part of `Settings`, in a file of its own. It names where secrets are and never holds one: settings are written
to `crawl.toml`, shown by commands and the API, and sent to workers. docs/identities.md explains it to users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

Doc = Meta
HOW = 'write { env = "NAME" } or { file = "PATH" }, so that it is kept nowhere'


class SecretSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where a secret is read when a worker starts: an environment variable, or a file."""

    env: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.env) == bool(self.file):
            raise ValueError('a secret is { env = "NAME" } or { file = "PATH" }')


class LoginRecipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How to log in: fetch the form, fill it in, send it, look whether it worked."""

    url: Annotated[str, Doc(description="The page with the form; a path, or a URL of the same host.")]
    fields: Annotated[
        dict[str, str | SecretSource],
        Doc(description="What is filled in, by the names of the form's fields; the rest stays as it comes."),
    ]
    form: Annotated[
        str, Doc(description="CSS selector of the form; without it the first one with a password field.")
    ] = ""
    check: Annotated[
        str, Doc(description="CSS selector of what only a visitor who is logged in sees after logging in.")
    ] = ""
    check_text: Annotated[str, Doc(description="Or words that only such a visitor reads there.")] = ""
    check_url: Annotated[
        str, Doc(description="The page to look at; without it the one that the form leads to.")
    ] = ""
    logged_out: Annotated[
        str,
        Doc(
            description="CSS selector of what a page has that was served to somebody not logged in; without it "
            "a password field named in `fields`."
        ),
    ] = ""
    logged_out_text: Annotated[str, Doc(description="Or words on such a page.")] = ""


class HostIdentity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is sent to one host and to no other."""

    user_agent: Annotated[
        str,
        Doc(description="User-Agent for this host. robots.txt is still obeyed by `identity.product`."),
    ] = ""
    headers: Annotated[
        dict[str, str | SecretSource],
        Doc(description='Headers by name: a text, or a secret as { env = "NAME" } or { file = "PATH" }.'),
    ] = {}
    cookies: Annotated[dict[str, SecretSource], Doc(description="Cookies by name, each a secret.")] = {}
    cookie_file: Annotated[
        str,
        Doc(
            description="Cookies as curl or a browser's export wrote them (Netscape or JSON). Those of other "
            "hosts are left out; others than you must not be able to read the file."
        ),
    ] = ""
    keep_cookies: Annotated[
        bool | None,
        Doc(description="Keep cookies that the host sets; without it where there is a login or a cookie."),
    ] = None
    user: Annotated[str | SecretSource, Doc(description="Name for basic authentication.")] = ""
    password: Annotated[SecretSource | None, Doc(description="Password for basic authentication.")] = None
    bearer: Annotated[SecretSource | None, Doc(description="Token for `Authorization: Bearer`.")] = None
    login: Annotated[LoginRecipe | None, Doc(description="How to log in by a form; the keys are below.")] = (
        None
    )
    certificate: Annotated[str, Doc(description="PEM file of a client certificate, for https.")] = ""
    certificate_key: Annotated[
        str, Doc(description="PEM file of its key; without it the key is in `certificate`.")
    ] = ""
    certificate_password: Annotated[
        SecretSource | None, Doc(description="Password of the key, if it has one.")
    ] = None
    proxies: Annotated[
        tuple[str, ...],
        Doc(
            description="http://, https://, socks5:// or socks5h:// and HOST:PORT; of several a lease uses one. "
            "With socks5h the proxy looks up names and no address can be guarded."
        ),
    ] = ()
    proxy_user: Annotated[str | SecretSource, Doc(description="Name for the proxies.")] = ""
    proxy_password: Annotated[SecretSource | None, Doc(description="Password for the proxies.")] = None
    robots_with_identity: Annotated[
        bool, Doc(description="Ask for robots.txt with these headers and cookies too.")
    ] = False

    @property
    def is_private(self) -> bool:
        """Whether the host may answer otherwise than it would to anybody."""
        secret_headers = any(isinstance(value, SecretSource) for value in self.headers.values())
        given = (self.cookies, self.cookie_file, self.password, self.bearer, self.login, self.certificate)
        return secret_headers or any(given)


IDENTITY_FIELDS: dict[str, FieldInfo] = {field.name: field for field in msgspec.structs.fields(HostIdentity)}

# What would say who we are if it were known; such a header must be a secret.
_TELLING = re.compile(r"auth|cookie|token|secret|passw|session|api-?key|credential|signature", re.IGNORECASE)
_OURS = frozenset(
    """host user-agent accept-encoding connection content-length content-type transfer-encoding te upgrade expect
    if-none-match if-modified-since proxy-authorization proxy-connection cookie""".split()
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
_PROXY = re.compile(r"(?:https?|socks5h?)://(\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+):\d{1,5}/?")


def converted(key: str, value: object) -> tuple[Any, str]:
    """The value of a key of an identity, or a complaint. It never repeats a value: that may be a secret."""
    field = IDENTITY_FIELDS[key]
    try:
        found = msgspec.convert(value, type=field.type)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at ")
        at = place.strip("`").removeprefix("$").replace("[...]", " values").strip(". ")
        hint = f"; {HOW}" if _is_about_a_secret(key, at, value) else ""
        return None, f"{f'({at}) ' if at else ''}cannot be taken: {said}{hint}"
    return found, _CHECKS.get(key, lambda _: "")(found)


def _is_about_a_secret(key: str, at: str, value: object) -> bool:
    return key in ("password", "bearer", "cookies", "proxy_password", "certificate_password")


def _check_headers(headers: Mapping[str, str | SecretSource]) -> str:
    for name, value in headers.items():
        if _NAME.fullmatch(name) is None:
            return "has a name that no header can have"
        if name.lower() in _OURS:
            return f"names {name}, which skitter sets itself{_INSTEAD.get(name.lower(), '')}"
        if isinstance(value, str):
            if _TELLING.search(name):
                return f"gives {name} as text, where every command shows it; {HOW}"
            if _VALUE.fullmatch(value) is None:
                return f"gives {name} a value that is not printable ASCII"
    return ""


_INSTEAD = {
    "user-agent": "; use user_agent",
    "cookie": "; use cookies or cookie_file",
    "proxy-authorization": "; use proxy_user and proxy_password",
}


def _check_cookies(cookies: Mapping[str, SecretSource]) -> str:
    return next(("has a name that no cookie can have" for name in cookies if not _NAME.fullmatch(name)), "")


def _check_proxies(proxies: tuple[str, ...]) -> str:
    for proxy in proxies:
        # Not shown: it may hold a password, and messages end in logs.
        if "@" in proxy:
            return "has a user or password in a proxy's URL; use proxy_user and proxy_password"
        if _PROXY.fullmatch(proxy) is None:
            return "must be http://HOST:PORT, or the same with https, socks5 or socks5h"
    return ""


def _check_agent(agent: str) -> str:
    return "" if _VALUE.fullmatch(agent) else "must be printable ASCII"


def _check_login(login: LoginRecipe | None) -> str:
    if login is None:
        return ""
    if not (login.check or login.check_text):
        return "has no check: say by `check` or `check_text` what a visitor who is logged in sees"
    if not login.fields:
        return "has no fields: name those of the form that are filled in"
    for name, value in login.fields.items():
        if isinstance(value, str) and re.search(r"pass|pwd|secret|token|pin\b", name, re.IGNORECASE):
            return f"gives the field {name} as text, where every command shows it; {HOW}"
    return ""


_CHECKS: dict[str, Callable[[Any], str]] = {
    "headers": _check_headers,
    "cookies": _check_cookies,
    "proxies": _check_proxies,
    "user_agent": _check_agent,
    "login": _check_login,
}


def as_told(value: object) -> object:
    """A value as TOML and JSON tell it: a secret by its place."""
    return msgspec.to_builtins(value)
