"""The identity of a crawl towards one host, with its secrets read: what its requests send, and by which route.

Made once, when a worker starts, of `[hosts."x"]`. Its secrets stay in this process. Says at the start what is
wrong and what an operator should know.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping

import msgspec
import turbohtml

from skitter.errors import SettingsError
from skitter.fetch.base import Route
from skitter.identities.cookie_files import NotCookies, read_cookies
from skitter.identities.cookies import Cookie
from skitter.identities.forms import PageSigns
from skitter.identities.redaction import told_line
from skitter.identities.secret_values import check_private_file, read_private_file, read_secret
from skitter.model import Host
from skitter.settings.host_identity import HostIdentity, LoginRecipe, SecretSource
from skitter.urls.canonical import normalise


class Login(msgspec.Struct, frozen=True):
    """A recipe with its values. `url` is absolute, and so is `check_url` where there is one."""

    url: str
    form: str
    values: Mapping[str, str]
    check: PageSigns
    check_url: str
    logged_out: PageSigns

    def __repr__(self) -> str:
        return f"Login({self.url})"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Towards one origin. `headers` are lines as sent, `told` as archived. `secrets` are all that it knows."""

    name: str
    host: Host
    user_agent: str
    headers: tuple[bytes, ...]
    told: tuple[bytes, ...]
    cookies: tuple[Cookie, ...]
    keeps_cookies: bool
    login: Login | None
    routes: tuple[Route, ...]
    is_private: bool
    robots_with_identity: bool
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Identity({self.name})"


def open_identity(name: str, host: Host, told: HostIdentity) -> Identity:
    reader = _Reader(f'[hosts."{name}"]')
    lines = list(_headers(reader, told))
    cookies = tuple(_cookies(reader, host, told))
    login = _login(reader, host, told.login) if told.login is not None else None
    has_session = bool(login or cookies)
    return Identity(
        name=name,
        host=host,
        user_agent=told.user_agent,
        headers=tuple(line for line, _ in lines),
        told=tuple(shown for _, shown in lines),
        cookies=cookies,
        keeps_cookies=has_session if told.keep_cookies is None else told.keep_cookies,
        login=login,
        routes=tuple(_routes(reader, told)),
        is_private=told.is_private,
        robots_with_identity=told.robots_with_identity,
        secrets=tuple(reader.found),
    )


def host_name(host: Host) -> str:
    """Without scheme and port."""
    name = host.partition("://")[2]
    return (
        name if name.endswith("]") else name.partition(":")[0] if "]" not in name else name.rpartition(":")[0]
    )


def warnings(host: Host, told: HostIdentity) -> Iterator[str]:
    """What an operator should know before the crawl begins."""
    for proxy in told.proxies:
        if proxy.startswith("socks5h:"):
            yield f"{host}: the proxy {proxy} looks up names itself, so no address is guarded there"
    if told.is_private and host.startswith("http:"):
        yield f"{host}: its identity goes over http, where everybody on the way can read it"


class _Reader:
    """Reads secrets, and notes them."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.found: list[str] = []

    def text(self, value: str | SecretSource, key: str) -> str:
        if isinstance(value, str):
            return value
        self.found.append(read_secret(value, f"{self.table} {key}"))
        return self.found[-1]


def _headers(reader: _Reader, told: HostIdentity) -> Iterator[tuple[bytes, bytes]]:
    for name, value in told.headers.items():
        line = f"{name}: {reader.text(value, 'headers')}".encode()
        yield line, told_line(name) if isinstance(value, SecretSource) else line
    if told.password is not None:
        user, password = reader.text(told.user, "user"), reader.text(told.password, "password")
        reader.found.append(b64encode(f"{user}:{password}".encode()).decode())
        yield b"Authorization: Basic " + reader.found[-1].encode(), told_line("Authorization")
    elif told.bearer is not None:
        yield (
            f"Authorization: Bearer {reader.text(told.bearer, 'bearer')}".encode(),
            told_line("Authorization"),
        )


def _cookies(reader: _Reader, host: Host, told: HostIdentity) -> Iterator[Cookie]:
    if told.cookie_file:
        where = f"{reader.table} cookie_file"
        try:
            found = read_cookies(read_private_file(told.cookie_file, where))
        except NotCookies as error:
            raise SettingsError(f"{where}: {told.cookie_file}: {error}") from None
        reader.found += [cookie.value for cookie in found]
        yield from found
    for name, source in told.cookies.items():
        yield Cookie(
            name, reader.text(source, "cookies"), host_name(host), is_secure=host.startswith("https:")
        )


def _login(reader: _Reader, host: Host, recipe: LoginRecipe) -> Login:
    values = {name: reader.text(value, "login") for name, value in recipe.fields.items()}
    names = [name for name, value in recipe.fields.items() if isinstance(value, SecretSource)]
    wall = ", ".join(f'input[type=password][name="{name}"]' for name in names) or "input[type=password]"
    is_told = bool(recipe.logged_out or recipe.logged_out_text)
    for selector in (recipe.form, recipe.check, recipe.logged_out):
        _check_selector(reader, selector)
    return Login(
        _url(reader, host, recipe.url),
        recipe.form,
        values,
        PageSigns(recipe.check, recipe.check_text),
        _url(reader, host, recipe.check_url) if recipe.check_url else "",
        PageSigns(recipe.logged_out, recipe.logged_out_text) if is_told else PageSigns(wall),
    )


def _url(reader: _Reader, host: Host, text: str) -> str:
    url = normalise(text, f"{host}/")
    if url is None or not url.startswith(f"{host}/"):
        raise SettingsError(f"{reader.table} login: {text} is not a page of {host}")
    return url


def _check_selector(reader: _Reader, selector: str) -> None:
    try:
        if selector:
            turbohtml.parse("").select_one(selector)
    except ValueError as error:
        raise SettingsError(f"{reader.table} login: {error}") from None


def _routes(reader: _Reader, told: HostIdentity) -> Iterator[Route]:
    for path in filter(None, (told.certificate_key or told.certificate,)):
        check_private_file(path, f"{reader.table} certificate")
    password = told.certificate_password
    key_password = reader.text(password, "certificate_password") if password is not None else ""
    proxy_user = reader.text(told.proxy_user, "proxy_user")
    secret = told.proxy_password
    proxy_password = reader.text(secret, "proxy_password") if secret is not None else ""
    for proxy in told.proxies or ("",):
        yield Route(
            certificate=told.certificate,
            key=told.certificate_key,
            key_password=key_password,
            proxy=proxy,
            proxy_user=proxy_user if proxy else "",
            proxy_password=proxy_password if proxy else "",
            names_by_proxy=proxy.startswith("socks5h:"),
        )
