"""Seeds: from the command line, files and standard input to discovered URLs; bad ones are named, not skipped.

A seed may be a bare domain, as people write it: `example.org` is asked for over https, and over http where https
cannot be connected (`frontier/engine/bare_seeds.py`). Never asks anybody anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from skitter.errors import NoContact, UsageError
from skitter.fetch.guard import AddressGuard
from skitter.fetch.resolver import Override, parse_override
from skitter.model import Discovered, Host, TaskKind, Via
from skitter.schedule.priority import SEED_PRIORITY
from skitter.settings import Settings
from skitter.urls.canonical import host_of, normalise
from skitter.urls.keys import Keys
from skitter.urls.scope import is_domain

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_SHOWN = 3
_STDIN = 0
_LONG = 100
# what lists of seeds are called: a name that ends so is no host's
_FILES = ("txt", "csv", "tsv", "list", "lst", "json", "jsonl", "xml", "toml", "gz", "html")


def read_sitemaps(words: Sequence[str], keys: Keys) -> list[Discovered]:
    """Sitemaps and feeds that are given as such."""
    return [replace(seed, kind=TaskKind.SITEMAP) for seed in (read_seeds(words, (), keys) if words else ())]


def read_seeds(words: Sequence[str], files: Sequence[str], keys: Keys) -> list[Discovered]:
    """Every seed once, in order. Words are URLs, `-` for standard input, or names of files of URLs."""
    found: dict[str, Discovered] = {}
    bad: list[str] = []
    for place, text in _lines(words, files):
        seed = seed_of(text, keys)
        if seed is None:
            bad.append(f"{place}{text[:100]!r} is not {_wanted(place, text)}")
            continue
        found.setdefault(seed.url, seed)
    if not found and not bad and (sources := [*words, *files]):
        raise UsageError(f"no URL in {', '.join(sources[:_SHOWN])}: write one a line")
    if bad:
        more = f" (and {len(bad) - _SHOWN} more)" if len(bad) > _SHOWN else ""
        raise UsageError("; ".join(bad[:_SHOWN]) + more)
    return list(found.values())


def seed_of(text: str, keys: Keys, priority: int = SEED_PRIORITY) -> Discovered | None:
    """Of a URL or a bare domain; None for anything else."""
    is_bare = not _SCHEME.match(text)
    url = https_form(text) if is_bare else normalise(text)
    if url is None:
        return None
    return Discovered(
        url=url,
        key=keys.key_of(url),
        host=host_of(url),
        depth=0,
        via=Via.SEED,
        priority=priority,
        over_http=normalise("http" + url.removeprefix("https")) or "" if is_bare else "",
    )


def https_form(text: str) -> str | None:
    """Of a bare domain or address, with a port or a path perhaps; None for anything else, such as the name of a
    file that is not there."""
    url = normalise(f"https://{text}") if "@" not in text.partition("/")[0] else None
    if url is None:
        return None
    name, _ = _name_and_port(host_of(url).partition("://")[2], 443)
    # a number alone is an address to the standard, and to nobody who writes a list
    is_address = _is_literal(name) and ("." in text or text.startswith("["))
    return url if _is_local_name(name) or is_address or is_domain(name) else None


def _wanted(place: str, text: str) -> str:
    if _SCHEME.match(text):
        return "an http or https URL"
    nor_file = "" if place else ", nor the name of a file that is there"
    hint = f"; did you mean https://{text}?" if _is_single_name(text) else _hint_of_own_host(text)
    return f"an http or https URL, nor a domain{nor_file}{hint}"


def _hint_of_own_host(text: str) -> str:
    """`wiki.corp` ends in no suffix under which anybody registers domains: a host of one's own network, or a file
    that is not there."""
    name = text.partition("/")[0].partition(":")[0]
    is_host = "." in name and name.rpartition(".")[2].lower() not in _FILES and "@" not in name
    if not is_host or len(text) >= _LONG or normalise(f"http://{text}") is None:
        return ""
    return f"; if it is a host of your own network, write http://{text}"


def _is_single_name(text: str) -> bool:
    """A machine of one's own network, perhaps: `intranet/start`."""
    name = text.partition("/")[0].partition(":")[0]
    return "." not in name and len(text) < _LONG and name != text and normalise(f"https://{text}") is not None


def _lines(words: Iterable[str], files: Iterable[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if word == "-":
            yield from _of_file("standard input", _STDIN)
        elif not _SCHEME.match(word) and os.path.isfile(word):
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


def require_addresses(settings: Settings, seeds: Iterable[Discovered]) -> None:
    """A seed that spells out an address which must not be dialled is a mistake: nothing could come of it."""
    overrides = [parse_override(text) for text in settings.fetch.resolve]
    guard = AddressGuard(allow_private=settings.fetch.allow_private)
    refused = {seed.url: why for seed in seeds if (why := _refusal(seed.host, overrides, guard))}
    if not refused:
        return
    shown = "; ".join(f"{url} is at a {why}" for url, why in [*refused.items()][:_SHOWN])
    more = f" (and {len(refused) - _SHOWN:,} more)" if len(refused) > _SHOWN else ""
    if settings.fetch.allow_private:
        raise UsageError(f"{shown}{more}, which is never asked unless --resolve names it")
    raise UsageError(f"{shown}{more}: add --allow-private if that is yours to crawl")


def _refusal(host: Host, overrides: list[Override], guard: AddressGuard) -> str | None:
    name, port = _name_and_port(host.partition("://")[2], _default_port(host))
    if any(override.applies(name, port) for override in overrides):
        return None
    if _is_local_name(name):
        return guard.refusal("127.0.0.1")
    return guard.refusal(name.strip("[]")) if _is_literal(name) else None


def _is_public(host: Host, overrides: list[Override]) -> bool:
    name, port = _name_and_port(host.partition("://")[2], _default_port(host))
    if _is_local_name(name):
        return False
    if any(override.applies(name, port) for override in overrides):
        return False
    return AddressGuard(allow_private=False).is_public(name.strip("[]")) if _is_literal(name) else True


def _is_local_name(name: str) -> bool:
    """RFC 6761, 6.3."""
    return name == "localhost" or name.endswith(".localhost")


def _is_literal(name: str) -> bool:
    return name.startswith("[") or name.replace(".", "").isdigit()


def _default_port(host: Host) -> int:
    return 443 if host.startswith("https:") else 80


def _name_and_port(authority: str, default: int) -> tuple[str, int]:
    name, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return authority, default
    return name, int(port)
