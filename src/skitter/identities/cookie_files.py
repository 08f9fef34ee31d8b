"""Cookie files: the text of curl and Netscape, and the JSON that browsers' extensions export. Pure.

Read once, when a worker starts; which of the cookies a host gets is the jar's decision. A line that cannot be
read is an error: a file with half of its cookies would look like a login that does not work.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from skitter.identities.cookies import Cookie

_HTTP_ONLY = "#HttpOnly_"
_FIELDS = 7


class NotCookies(ValueError):
    """Says which line or entry, and never what is in it."""


class _Exported(msgspec.Struct):
    """A cookie of a JSON export; other keys are of no interest."""

    name: str
    value: str
    domain: str
    path: str = "/"
    secure: bool = False
    hostOnly: bool | None = None
    expirationDate: float | None = None
    expires: float | None = None


def read_cookies(text: str) -> list[Cookie]:
    if text.lstrip()[:1] in ("[", "{"):
        return list(_from_json(text))
    return list(_from_lines(text))


def _from_lines(text: str) -> Iterator[Cookie]:
    for number, line in enumerate(text.splitlines(), 1):
        line = line.removeprefix(_HTTP_ONLY)
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != _FIELDS or not fields[4].strip().lstrip("-").isdigit():
            raise NotCookies(f"line {number} is not a cookie: seven fields with tabs between them")
        domain, with_subdomains, path, secure, expires, name, value = fields
        yield Cookie(
            name,
            value,
            domain.lower().lstrip("."),
            path or "/",
            with_subdomains.upper() != "TRUE",
            secure.upper() == "TRUE",
            float(expires) if int(expires) > 0 else None,
        )


def _from_json(text: str) -> Iterator[Cookie]:
    try:
        found = msgspec.json.decode(text)
        listed = found.get("cookies", []) if isinstance(found, dict) else found
        exported = msgspec.convert(listed, list[_Exported])
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise NotCookies("it is JSON, but not a list of cookies with name, value and domain") from None
    for one in exported:
        host_only = one.hostOnly if one.hostOnly is not None else not one.domain.startswith(".")
        expires = one.expirationDate if one.expirationDate is not None else one.expires
        domain = one.domain.lower().lstrip(".")
        ends = expires if expires is not None and expires > 0 else None
        yield Cookie(one.name, one.value, domain, one.path or "/", host_only, one.secure, ends)
