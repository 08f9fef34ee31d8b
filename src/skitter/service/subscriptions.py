"""Subscriptions to topics by WebSub (W3C): what hubs were asked for, what they confirmed, what each may send.

Beside the path: `api/websub.py` answers hubs with it, `steering/subscriptions.py` makes them. One small file in
the crawl's folder, which only its owner may read: it holds the secrets that hubs sign with. Never sends anything.
"""

from __future__ import annotations

import hmac
import os
import secrets
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from skitter.errors import StoreFailed, UsageError

FILE = "subscriptions.json"
CALLBACK = "/v1/websub/"
_MOST = 10_000
_LEASE_ASKED = 10 * 86_400
# Those of the standard, which hubs choose from.
_HASHES = frozenset(("sha1", "sha256", "sha384", "sha512"))


class SubscriptionState(StrEnum):
    ASKED = "asked"
    """A request was made for the hub; it has not asked back yet."""
    CONFIRMED = "confirmed"
    DENIED = "denied"
    ENDING = "ending"
    """Its end was asked for: the hub's question is answered with yes, then it is forgotten."""


class Subscription(msgspec.Struct, kw_only=True):
    """`until` is when the hub's promise ends. `notified` are notifications with a true signature, `refused` the
    others."""

    id: str
    topic: str
    hub: str
    callback: str
    secret: str
    state: SubscriptionState = SubscriptionState.ASKED
    asked_at: float = 0.0
    until: float | None = None
    reason: str = ""
    notified: int = 0
    refused: int = 0
    last_at: float | None = None

    def __repr__(self) -> str:
        return f"Subscription({self.topic}, {self.state})"  # it holds a secret

    @property
    def form(self) -> str:
        """What the hub is sent, by POST."""
        is_ending = self.state is SubscriptionState.ENDING
        fields = {
            "hub.mode": "unsubscribe" if is_ending else "subscribe",
            "hub.topic": self.topic,
            "hub.callback": self.callback,
        }
        if not is_ending:
            fields |= {"hub.secret": self.secret, "hub.lease_seconds": str(_LEASE_ASKED)}
        return urlencode(fields)

    def is_signed(self, signature: str, body: bytes) -> bool:
        """`X-Hub-Signature: method=digest`, of the body as it came."""
        name, _, given = signature.partition("=")
        method = name.strip().lower()
        if method not in _HASHES:
            return False
        own = hmac.new(self.secret.encode(), body, method).hexdigest()
        return hmac.compare_digest(own.encode(), given.strip().lower().encode("utf-8", "replace"))


class Subscriptions:
    """All of a crawl. The file is read again when another process has written it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._read_at: tuple[int, int] | None = None
        self._found: dict[str, Subscription] = {}

    def all(self) -> list[Subscription]:
        return list(self._read().values())

    def get(self, ident: str) -> Subscription | None:
        return self._read().get(ident)

    def ask(self, topic: str, hub: str, callback: str, now: float) -> Subscription:
        """A new one, or the same once more: then the hub renews it."""
        found = self._read()
        for one in found.values():
            if one.topic == topic and one.hub == hub:
                one.callback = callback.rstrip("/") + CALLBACK + one.id
                one.asked_at, one.reason = now, ""
                if one.state is not SubscriptionState.CONFIRMED:
                    one.state = SubscriptionState.ASKED
                self.write()
                return one
        if len(found) >= _MOST:
            raise UsageError(f"there are {_MOST:,} subscriptions already: end some of them first")
        ident = secrets.token_urlsafe(18)
        made = Subscription(
            id=ident,
            topic=topic,
            hub=hub,
            callback=callback.rstrip("/") + CALLBACK + ident,
            secret=secrets.token_urlsafe(32),
            asked_at=now,
        )
        found[ident] = made
        self.write()
        return made

    def end(self, topic: str) -> list[Subscription]:
        """Those to this topic; the hubs have to be told."""
        ending = [one for one in self._read().values() if one.topic == topic]
        for one in ending:
            one.state = SubscriptionState.ENDING
        self.write()
        return ending

    def forget(self, ident: str) -> None:
        if self._read().pop(ident, None) is not None:
            self.write()

    def write(self) -> None:
        """What was changed of them. Whole, under its name, at once."""
        text = msgspec.json.format(msgspec.json.encode(self._found), indent=1)
        other = self._file.with_suffix(".new")
        try:
            with open(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(text)
            os.replace(other, self._file)
            self._read_at = self._stamp()
        except OSError as error:
            self._read_at = None
            raise StoreFailed(f"cannot write {self._file}: {error.strerror}") from error

    def _read(self) -> dict[str, Subscription]:
        stamp = self._stamp()
        if stamp is None:
            self._found = {}
        elif stamp != self._read_at:
            try:
                self._found = msgspec.json.decode(self._file.read_bytes(), type=dict[str, Subscription])
            except (OSError, msgspec.MsgspecError) as error:
                raise StoreFailed(f"cannot read {self._file}: {error}") from error
        self._read_at = stamp
        return self._found

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino
