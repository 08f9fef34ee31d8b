"""Seeds: from the command line, files and standard input to discovered URLs; bad ones are named, not skipped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from skitter.errors import NoContact, UsageError
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Override, parse_override
from skitter.model import Discovered, Host, Via
from skitter.schedule.priority import SEED_PRIORITY
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys

_SHOWN = 3
_STDIN = 0


def read_seeds(words: Sequence[str], files: Sequence[str], keys: Keys) -> list[Discovered]:
    """Every seed once, in order. Words are URLs, `-` for standard input, or names of files of URLs."""
    found: dict[str, Discovered] = {}
    bad: list[str] = []
    for place, text in _lines(words, files):
        url = normalise(text) if "://" in text else None
        if url is None:
            nor_file = "" if place or "://" in text else ", nor the name of a file"
            bad.append(f"{place}{text[:100]!r} is not an http or https URL{nor_file}{_hint(text)}")
            continue
        found.setdefault(url, _seed(url, keys))
    if not found and not bad and (sources := [*words, *files]):
        raise UsageError(f"no URL in {', '.join(sources[:_SHOWN])}: write one a line")
    if bad:
        more = f" (and {len(bad) - _SHOWN} more)" if len(bad) > _SHOWN else ""
        raise UsageError("; ".join(bad[:_SHOWN]) + more)
    return list(found.values())


def _seed(url: str, keys: Keys) -> Discovered:
    return Discovered(
        url=url, key=keys.key_of(url), host=host_of(url), depth=0, via=Via.SEED, priority=SEED_PRIORITY
    )


def _lines(words: Iterable[str], files: Iterable[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if word == "-":
            yield from _of_file("standard input", _STDIN)
        elif "://" not in word and os.path.isfile(word):
            yield from _of_file(word, word)
        else:
            yield "", word
    for name in files:
        yield from _of_file("standard input", _STDIN) if name == "-" else _of_file(name, name)


def _of_file(name: str, file: str | int) -> Iterator[tuple[str, str]]:
    try:
        # standard input too is opened here: `sys.stdin` may be absent, or raise on bytes that are not UTF-8
        with open(file, encoding="utf-8", errors="replace", closefd=file != _STDIN) as lines:
            yield from _of_stream(name, lines)
    except OSError as error:
        raise UsageError(f"cannot read seeds from {name}: {error.strerror}") from error


def _of_stream(name: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        text = line.strip().lstrip("\ufeff")
        if text and not text.startswith("#"):
            yield f"{name} line {number}: ", text


def _hint(text: str) -> str:
    if "://" not in text and "." in text and normalise(f"https://{text}"):
        return f"; did you mean https://{text}?"
    return ""


def hosts_named(text: str) -> list[Host]:
    """The hosts an operator means: `https://example.org`, or a bare name for both schemes."""
    candidates = [text] if "://" in text else [f"http://{text}", f"https://{text}"]
    urls = [normalise(candidate) for candidate in candidates]
    if any(url is None for url in urls):
        raise UsageError(f"{text!r} is not a host: write it as example.org or https://example.org:8443")
    return [host_of(url) for url in urls if url is not None]


def require_contact(settings: Settings, seeds: Iterable[Discovered]) -> None:
    """A crawl of public hosts says who is asking, or does not start."""
    if settings.identity.contact:
        return
    overrides = [parse_override(text) for text in settings.fetch.resolve]
    for seed in seeds:
        if _is_public(seed.host, overrides):
            raise NoContact(
                f"{seed.host} is a public host and there is no contact address: "
                "add --contact with your e-mail address or a page about your crawl"
            )


def _is_public(host: Host, overrides: list[Override]) -> bool:
    scheme, _, authority = host.partition("://")
    name, port = _name_and_port(authority, 443 if scheme == "https" else 80)
    if name == "localhost" or name.endswith(".localhost"):
        return False
    if any(override.applies(name, port) for override in overrides):
        return False
    is_literal = name.startswith("[") or name.replace(".", "").isdigit()
    return AddressGuard(allow_private=False).is_public(name.strip("[]")) if is_literal else True


def _name_and_port(authority: str, default: int) -> tuple[str, int]:
    name, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return authority, default
    return name, int(port)
