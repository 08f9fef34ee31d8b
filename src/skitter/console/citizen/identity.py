"""`skitter identity` and `skitter bot-page`: who asks, for those who are asked."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from ipaddress import ip_network
from pathlib import Path

from skitter.clock import SystemClock
from skitter.errors import UsageError
from skitter.extras import need
from skitter.fetch.curl import user_agent
from skitter.folder import CrawlFolder
from skitter.frontier.base import Stats
from skitter.settings import Settings
from skitter.wiring import open_frontier

RANGES = "ip-ranges.json"


async def identity(
    file: Path, *, new: bool, agent: str, directory: Path | None, purpose: str, as_json: bool
) -> str:
    need("cryptography")
    from skitter.fetch.signing import key_directory, make_key, read_key, thumbprint

    key = make_key(file) if new else read_key(file)
    content = json.dumps(key_directory(key, purpose), indent=2)
    if directory is not None:
        _write(directory, content + "\n")
    if as_json:
        return content
    return "\n".join(_advice(file, thumbprint(key), agent, directory))


def _advice(file: Path, key_id: str, agent: str, directory: Path | None) -> Iterator[str]:
    from skitter.fetch.signing import DIRECTORY

    yield f"key {key_id} in {file}"
    agent = agent or "https://bot.example.org"
    where = f" ({directory} is it)" if directory is not None else " (--directory FILE writes it)"
    yield f"1. serve the key directory at {agent}/{DIRECTORY}{where},"
    yield "   as application/http-message-signatures-directory+json"
    yield "2. in the settings of the crawl:"
    yield "   [identity]"
    yield f'   signing_key = "{file.absolute()}"'
    yield f'   signature_agent = "{agent}"'
    yield "3. let the addresses that you crawl from have names (PTR records) under a domain of yours, and those"
    yield f"   names lead back to them: webmasters check both. This machine calls itself {socket.getfqdn()}"
    yield "4. publish a page of who you are at the contact URL: skitter bot-page"


async def bot_page(
    folder: CrawlFolder, settings: Settings, *, into: Path, ranges: Sequence[str], why: str, as_json: bool
) -> str:
    networks = [_network(text) for text in ranges]
    async with open_frontier(folder, settings, read_only=True) as frontier:
        stats = await frontier.stats()
    now = datetime.fromtimestamp(SystemClock().now(), UTC)
    written = [into / "index.html", into / RANGES]
    _write(into / "index.html", "\n".join(_page(settings, stats, why, networks, now)) + "\n")
    _write(into / RANGES, json.dumps(_ranges(networks, now), indent=2) + "\n")
    if settings.identity.signing_key:
        need("cryptography")
        from skitter.fetch.signing import DIRECTORY, key_directory, read_key

        key = read_key(Path(settings.identity.signing_key))
        _write(into / DIRECTORY, json.dumps(key_directory(key, why or "crawling"), indent=2) + "\n")
        written.append(into / DIRECTORY)
    if as_json:
        return json.dumps({"written": [str(path) for path in written]})
    return "\n".join(f"wrote {path}" for path in written)


def _network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise UsageError(f"{text!r} is no range of addresses such as 192.0.2.0/28: {error}") from None


def _ranges(networks: Sequence[str], now: datetime) -> dict[str, object]:
    """In the form in which big crawlers publish theirs."""
    prefixes = [{"ipv6Prefix" if ":" in one else "ipv4Prefix": one} for one in networks]
    return {"creationTime": now.strftime("%Y-%m-%dT%H:%M:%S.000000"), "prefixes": prefixes}


def _page(
    settings: Settings, stats: Stats, why: str, networks: Sequence[str], now: datetime
) -> Iterator[str]:
    told, product = settings.identity, escape(settings.identity.product)
    yield "<!doctype html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>{product}: who asks</title></head><body>'
    yield f"<h1>{product}</h1>"
    yield f"<p>Requests with the user agent <code>{escape(user_agent(told))}</code> are ours.</p>"
    if why:
        yield f"<h2>Why</h2><p>{escape(why)}</p>"
    yield "<h2>How to stop it</h2>"
    yield "<p>robots.txt is read before anything else and always obeyed; a change counts within "
    yield f"{settings.politeness.robots_ttl / 3600:g} hours:</p>"
    yield f"<pre>User-agent: {product}\nDisallow: /</pre>"
    yield "<p><code>Crawl-delay</code>, <code>Retry-After</code> and 429 are obeyed as well.</p>"
    if told.contact:
        offer = "we say what your site was asked, ask it less, or remove it"
        yield f"<p>Write to {escape(told.contact)}: {offer}.</p>"
    yield "<h2>Where we come from</h2>"
    if networks:
        yield f'<p>Only from these addresses, also as <a href="{RANGES}">JSON</a>:</p><ul>'
        yield from (f"<li>{escape(one)}</li>" for one in networks)
        yield "</ul>"
    if told.signing_key:
        from skitter.fetch.signing import DIRECTORY

        yield f'<p>Requests are signed (Web Bot Auth): <a href="{DIRECTORY}">the keys</a>.</p>'
    yield f"<h2>How we behave</h2><p>As of {now:%Y-%m-%d %H:%M} UTC:</p><ul>"
    yield from (f"<li>{escape(line)}</li>" for line in _figures(settings, stats))
    yield "</ul></body></html>"


def _figures(settings: Settings, stats: Stats) -> Iterator[str]:
    polite = stats.politeness
    yield f"{stats.fetches:,} requests to {sum(stats.hosts.values()):,} hosts, {stats.bytes:,} bytes received"
    yield f"one request at a time to a host, and at least {settings.politeness.delay:g} s between two of them"
    yield f"{polite.gaps:,} gaps measured, {polite.violations:,} shorter than promised"
    if polite.smallest_gap is not None and polite.required is not None:
        closest = f"{polite.smallest_gap:.3f} s where {polite.required:.3f} s were promised"
        yield f"the one that came closest: {closest}"


def _write(path: Path, content: str) -> None:
    """Whole or not at all: the page is being served."""
    temporary = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(content)
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
