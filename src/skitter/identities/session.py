"""The requests to a host with an identity: its cookies during one lease, and its login.

Between the step and the fetcher. All requests of a login keep the host's delay, and none of them is archived.
A page that shows the login form is never handed on as the page. Nothing here leaves the host: a redirect to
another one is a task of that host's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from skitter.clock import Clock
from skitter.fetch.base import Fetcher, Judge, Sending, always, want_all
from skitter.fetch.coding import Undecodable, decode_body
from skitter.identities.cookies import CookieJar
from skitter.identities.forms import FilledForm, PageSigns, fill_form, parse_page
from skitter.identities.identity import Identity, Login, host_name
from skitter.identities.redaction import told_line, without_cookies
from skitter.identities.sealing import Seal, SessionState
from skitter.model import Exchange, Failed, FailureKind, Host, HostLease
from skitter.urls.canonical import normalise

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_LARGEST_PAGE = 2_000_000


class Sessions:
    """The sessions of the hosts that have an identity, each for one lease."""

    def __init__(self, identities: Mapping[Host, Identity], fetcher: Fetcher, clock: Clock) -> None:
        self._identities = identities
        self._fetcher = fetcher
        self._clock = clock
        self._open: dict[Host, Session] = {}

    def of(self, lease: HostLease) -> Session | None:
        identity = self._identities.get(lease.host)
        if identity is None:
            return None
        session = self._open.get(lease.host)
        if session is None or session.token != lease.token:
            session = self._open[lease.host] = Session(identity, lease, self._fetcher, self._clock)
        return session


class Session:
    """`_failure` is set once a login failed: nothing more is tried under this lease."""

    def __init__(self, identity: Identity, lease: HostLease, fetcher: Fetcher, clock: Clock) -> None:
        self.token = lease.token
        self._identity = identity
        self._verify = lease.verify_tls
        self._delay = lease.delay
        self._fetcher = fetcher
        self._clock = clock
        self._route = identity.routes[lease.token % len(identity.routes)]
        self._seal = Seal(identity.host, identity.secrets)
        kept = self._seal.read(lease.session)
        is_secure = identity.host.startswith("https:")
        self._jar = CookieJar(host_name(identity.host), is_secure=is_secure, cookies=identity.cookies)
        for cookie in kept.cookies if kept is not None else ():
            self._jar.add(cookie)
        self._is_logged_in = kept is not None and kept.is_logged_in
        self._is_changed = False
        self._failure: Failed | None = None
        self._logins = 0
        self._lock = asyncio.Lock()
        self._last = 0.0

    def name_for(self, *, is_robots: bool) -> str:
        """What tables call the identity of an answer; empty for what anybody could have fetched."""
        identity = self._identity
        return identity.name if identity.is_private and self._is_sent(is_robots) else ""

    def changes(self) -> bytes | None:
        """The session as the frontier shall keep it; None when it is as it was told last."""
        if not self._is_changed:
            return None
        self._is_changed = False
        return self._seal.write(SessionState(self._jar.cookies(), self._is_logged_in))

    async def fetch(
        self,
        url: str,
        *,
        is_robots: bool = False,
        etag: str = "",
        last_modified: str = "",
        verify_tls: bool | None = None,
        unwanted: Judge = want_all,
        may_start: Callable[[], bool] = always,
        max_body: int = 0,
        form: bytes | None = None,
    ) -> Exchange | Failed:
        """As `Fetcher.fetch`; with a `form` it is posted."""

        async def ask(sending: Sending) -> Exchange | Failed:
            return await self._fetcher.fetch(
                url,
                etag=etag,
                last_modified=last_modified,
                verify_tls=verify_tls,
                unwanted=unwanted,
                may_start=may_start,
                max_body=max_body,
                sending=sending,
            )

        if not self._is_sent(is_robots):
            return await ask(Sending(user_agent=self._identity.user_agent, route=self._route, form=form))
        login, logins = self._identity.login, self._logins
        if login is not None and (failed := await self._log_in(login, may_start, logins, at_first=True)):
            return failed
        came = await self._taken(ask, url, form)
        if login is None or not _is_wall(came, login):
            return _shown(came)
        self._release(came)
        if failed := await self._log_in(login, may_start, logins, at_first=False):
            return failed
        await self._pause()
        came = await self._taken(ask, url, form)
        if not _is_wall(came, login):
            return _shown(came)
        self._release(came)
        return self._fail("the page shows that nobody is logged in, right after logging in")

    def _is_sent(self, is_robots: bool) -> bool:
        return not is_robots or self._identity.robots_with_identity

    async def _taken(
        self, ask: Callable[[Sending], object], url: str, form: bytes | None = None
    ) -> Exchange | Failed:
        """The answer, with its cookies taken."""
        path = url[len(self._identity.host) :]
        came = await ask(self._sending(path, form))  # type: ignore[misc]
        self._last = self._clock.now()
        if isinstance(came, Exchange) and self._identity.keeps_cookies:
            fields = [value for name, value in came.headers if name == "set-cookie"]
            self._is_changed |= self._jar.take(fields, path.partition("?")[0], self._clock.now())
        assert isinstance(came, Exchange | Failed)
        return came

    def _sending(self, path: str, form: bytes | None) -> Sending:
        identity = self._identity
        headers, told = identity.headers, identity.told
        if cookies := self._jar.header(path.partition("?")[0], self._clock.now()):
            headers = (*headers, f"Cookie: {cookies}".encode("latin-1", "replace"))
            told = (*told, told_line("Cookie"))
        return Sending(
            headers=headers,
            told=told,
            user_agent=identity.user_agent,
            form=form,
            route=self._route,
            is_once=form is not None,
        )

    # -- logging in

    async def _log_in(
        self, login: Login, may_start: Callable[[], bool], logins: int, *, at_first: bool
    ) -> Failed | None:
        """`logins` is how often it was done when the caller began: who waited for another's login needs none."""
        async with self._lock:
            if self._failure is not None:
                return self._failure
            if (at_first and self._is_logged_in) or self._logins != logins:
                return None
            if not at_first:
                await self._pause()
            self._is_logged_in, self._is_changed = False, True
            failed = await self._go_through(login, may_start)
            if failed is None:
                self._is_logged_in = True
                self._logins += 1
                await self._pause()
            elif failed.kind is FailureKind.LOGIN_FAILED:
                self._failure = failed
                self._jar.clear()
            return failed

    async def _go_through(self, login: Login, may_start: Callable[[], bool]) -> Failed | None:
        came = await self._ask(login.url, may_start)
        if isinstance(came, Failed):
            return came
        form = _filled(came, login)
        if form.problem:
            return self._fail(f"{form.problem} ({login.url}, status {came.status})")
        if not form.action.startswith(f"{self._identity.host}/"):
            return self._fail("the form leads to another host")
        came = await self._ask(form.action, may_start, form.body)
        for _ in range(_MOST_REDIRECTS):
            if isinstance(came, Failed) or came.status not in _REDIRECTS:
                break
            target = normalise(came.header("location"), came.url)
            if target is None or not target.startswith(f"{self._identity.host}/"):
                return self._fail("the login leads to another host")
            came = await self._ask(target, may_start)
        if login.check_url and isinstance(came, Exchange):
            came = await self._ask(login.check_url, may_start)
        if isinstance(came, Failed):
            return came
        if not _has(came, login.check):
            return self._fail(f"nothing like {login.check} after logging in (status {came.status})")
        return None

    async def _ask(
        self, url: str, may_start: Callable[[], bool], form: bytes | None = None
    ) -> Exchange | Failed:
        """A request of the login; its body is given back at once, and is still there to be read."""
        await self._pause()

        async def ask(sending: Sending) -> Exchange | Failed:
            return await self._fetcher.fetch(
                url, verify_tls=self._verify, may_start=may_start, sending=sending
            )

        came = await self._taken(ask, url, form)
        self._release(came)
        return came

    async def _pause(self) -> None:
        """Until the host's delay has passed since our last request."""
        if self._last and (wait := self._last + self._delay - self._clock.now()) > 0:
            await asyncio.sleep(wait)

    def _release(self, came: Exchange | Failed) -> None:
        if isinstance(came, Exchange):
            self._fetcher.release(came)

    def _fail(self, detail: str) -> Failed:
        self._is_logged_in, self._is_changed = False, True
        self._failure = Failed(kind=FailureKind.LOGIN_FAILED, detail=detail[:300])
        return self._failure


def _shown(came: Exchange | Failed) -> Exchange | Failed:
    return without_cookies(came) if isinstance(came, Exchange) else came


def _is_wall(came: Exchange | Failed, login: Login) -> bool:
    """Whether the host takes us for a stranger."""
    if isinstance(came, Failed):
        return False
    if came.status in _REDIRECTS:
        target = normalise(came.header("location"), came.url)
        return target is not None and target.partition("?")[0] == login.url.partition("?")[0]
    return came.status == 401 or (came.status == 200 and _has(came, login.logged_out))


def _has(came: Exchange, signs: PageSigns) -> bool:
    body = _body_of(came)
    return bool(body) and signs.are_on(parse_page(body, came.url, came.header("content-type")))


def _filled(came: Exchange, login: Login) -> FilledForm:
    tree = parse_page(_body_of(came), came.url, came.header("content-type"))
    return fill_form(tree, came.url, login.form, login.values)


def _body_of(came: Exchange) -> bytes:
    if "html" not in came.header("content-type").lower():
        return b""
    decoded = decode_body(came.body, came.header("content-encoding"), limit=_LARGEST_PAGE)
    return b"" if isinstance(decoded, Undecodable) else decoded.body
