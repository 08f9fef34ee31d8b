"""The block of a metadata record: facts about a response, by the names that Heritrix gave its fields.

Between the facts of an answer and its records. Pure.
"""

from __future__ import annotations

from skitter.archive.facts import Facts
from skitter.model import Exchange, Link

_TAG_ATTRIBUTES = {"iframe": "E iframe/@src", "frame": "E frame/@src", "refresh": "L meta/@content"}
_MOST_HOPS = 100


def metadata_block(exchange: Exchange, facts: Facts, *, with_links: bool) -> str:
    waited = round(max(0.0, exchange.ended_at - exchange.sent_at) * 1000)
    block = f"fetchTimeMs: {waited}\r\n{_timings(exchange)}"
    if exchange.tls_version:
        block += f"tls: {exchange.tls_version} {exchange.tls_cipher}\r\n"
    if facts.kind == "page":
        block += f"hopsFromSeed: {'L' * min(facts.depth, _MOST_HOPS)}\r\n"
    if facts.identity:
        block += f"fetchedWithIdentity: {facts.identity}\r\n"
    if facts.charset:
        block += f"charsetForLinkExtraction: {facts.charset}\r\n"
    if facts.redirect:
        block += f"outlink: {facts.redirect} R Location:\r\n"
    return block + _outlinks(facts) if with_links else block


def _outlinks(facts: Facts) -> str:
    return "".join([f"outlink: {target} {_context(link)}\r\n" for target, link in facts.links])


def _timings(exchange: Exchange) -> str:
    """Waits in whole milliseconds; a connection that was open already took no time."""
    lines = f"dnsTimeMs: {exchange.dns_ms:.0f}\r\n" if exchange.dns_ms >= 0.5 else ""
    if exchange.connect_ms >= 0.5:
        lines += f"connectTimeMs: {exchange.connect_ms:.0f}\r\n"
    if exchange.tls_ms >= 0.5:
        lines += f"tlsTimeMs: {exchange.tls_ms:.0f}\r\n"
    if exchange.first_byte_ms >= 0.5:
        lines += f"firstByteTimeMs: {exchange.first_byte_ms:.0f}\r\n"
    return lines


def _context(link: Link) -> str:
    where = _TAG_ATTRIBUTES.get(link.tag) or f"L {link.tag}/@href"
    return f"{where} {link.rel}" if link.rel else where
