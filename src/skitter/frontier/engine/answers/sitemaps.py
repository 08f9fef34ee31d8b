"""Sitemaps: those that a robots.txt names are admitted, and what a sitemap may not speak for is left out.

Asked within the transaction that settles a robots.txt, a sitemap or a feed. What is left out gets no row: nobody
has decided about these URLs, and a link may lead to them tomorrow. Never decides about scope: admission does.
"""

from __future__ import annotations

from collections.abc import Sequence

from skitter.frontier.engine.admission import KNOWN, Admission
from skitter.frontier.engine.requeue import refresh_one
from skitter.frontier.link_batches import keys_of, size, split, urls_of
from skitter.frontier.posts import PostedListing
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, Host, LinkBatch, TaskKind, UrlKey, Via
from skitter.schedule.kinds import KINDS
from skitter.settings import Settings
from skitter.urls.canonical import host_id, host_of, normalise
from skitter.urls.scope import registrable_domain
from skitter.urls.sitemap_rules import folder_of

LISTED = (Via.SITEMAP, Via.FEED)
LEFT_OUT = "some of what it names was left out: it may not speak for that, or a host's budget has no room"
_USUAL_PLACE = "/sitemap.xml"
# Two readings of one sitemap lie at least so far apart, however often the robots.txt that names it is read.
_BETWEEN_READINGS = 3600.0
# Indexes and redirects above a sitemap; both are bounded elsewhere.
_LONGEST_CHAIN = 10


class Sitemaps:
    def __init__(self, settings: Settings, admission: Admission) -> None:
        self._is_on = settings.sitemaps.use != "off"
        self._probes = settings.sitemaps.probe
        self._trust = settings.sitemaps.trust
        # then every file has a date for its next reading
        self._reads_again = not settings.revisit.keep_fresh
        self._admission = admission

    def admit_named(self, tx: Transaction, host: HostRow, *, is_first: bool) -> None:
        """The robots.txt of this host was read: its sitemaps are admitted, or read again."""
        if not self._is_on:
            return
        origin = Host(host.host)
        named = tx.cache.rules(host_id(origin), host.robots.rules_key).sitemaps
        if not (named or self._probes) or not self._admission.is_host_wanted(tx, origin):
            return
        if not named:
            self._admit(tx, origin, _USUAL_PLACE, Via.PROBE, is_first)
        for href in named:
            self._admit(tx, origin, href, Via.ROBOTS, is_first)

    def _admit(self, tx: Transaction, origin: Host, href: str, via: Via, is_first: bool) -> None:
        url = normalise(href, f"{origin}/")
        if url is None:
            return
        key, host = tx.cache.keys.key_of(url), host_of(url)
        found = Discovered(url=url, key=key, host=host, depth=0, via=via, kind=TaskKind.SITEMAP)
        self._admit_or_read_again(tx, found, is_news=is_first and host != origin)

    def _admit_or_read_again(self, tx: Transaction, found: Discovered, *, is_news: bool) -> None:
        key = found.key
        if self._admission.admit(tx, found) is not KNOWN or (row := tx.url(key)) is None:
            return
        # A host that names a sitemap elsewhere lets it speak for itself: what was left out of it counts now.
        is_news = is_news and row.rule == LEFT_OUT
        is_again = self._reads_again and tx.now - row.answer.at >= _BETWEEN_READINGS
        if KINDS[row.found.kind].lists_urls and (is_news or is_again):
            if is_news:
                # not to be told that nothing has changed
                row.answer.etag = row.answer.last_modified = ""
                tx.put_url(key, row)
            refresh_one(tx, key)

    def allowed(
        self, tx: Transaction, link_batches: Sequence[LinkBatch]
    ) -> tuple[tuple[LinkBatch, ...], int]:
        """The batches without what their sitemap may not name, and without what is beyond a host's budget: how
        many links were left out."""
        kept, left_out = [], 0
        if tx.cache.partition is not None:
            link_batches = self._keep_ours(tx, link_batches)
        for link_batch in link_batches:
            numbers = self._within_budget(tx, link_batch, self._spoken_for(tx, link_batch))
            count = size(link_batch)
            if len(numbers) < count:
                left_out += count - len(numbers)
                _note_left_out(tx, link_batch.parent)
            if len(numbers) == count:
                kept.append(link_batch)
            elif numbers:
                kept.append(split(link_batch, numbers, "")[0])
        return tuple(kept), left_out

    def _keep_ours(self, tx: Transaction, link_batches: Sequence[LinkBatch]) -> list[LinkBatch]:
        """What a sitemap names of other partitions is posted: there it is known whom the sitemap may speak for.
        Feeds, and sitemaps that may name anything, bring links like any other."""
        if self._trust == "any":
            return list(link_batches)
        kept: list[LinkBatch] = []
        for link_batch in link_batches:
            hosts = [host_of(url) for url in urls_of(link_batch)]
            away = sorted({host for host in hosts if tx.is_elsewhere(host)})
            if link_batch.via is not Via.SITEMAP or not away:
                kept.append(link_batch)
                continue
            authority = _Authority(tx, link_batch.parent or b"", self._trust)
            is_trusted = authority.speaks_for_all(link_batch.kind)
            for host in away:
                numbers = [number for number, one in enumerate(hosts) if one == host]
                listing = PostedListing(split(link_batch, numbers, "")[0], authority.names, is_trusted)
                tx.post(host, listing)
            if ours := [number for number, host in enumerate(hosts) if host not in away]:
                kept.append(split(link_batch, ours, "")[0])
        return kept

    def allowed_of(self, tx: Transaction, listing: PostedListing) -> tuple[LinkBatch, ...]:
        """What a sitemap of another partition may name here."""
        link_batch = listing.link_batch
        numbers: Sequence[int] = range(size(link_batch))
        if not listing.is_trusted:
            authority = _Authority(tx, b"", self._trust, listing.names)
            numbers = [n for n, url in enumerate(urls_of(link_batch)) if authority.may_name(url)]
        numbers = self._within_budget(tx, link_batch, numbers)
        return (split(link_batch, numbers, "")[0],) if numbers else ()

    def admit_posted(self, tx: Transaction, found: Discovered) -> None:
        """A robots.txt of another partition names this sitemap."""
        if self._is_on:
            self._admit_or_read_again(tx, found, is_news=True)

    def _spoken_for(self, tx: Transaction, link_batch: LinkBatch) -> Sequence[int]:
        urls = urls_of(link_batch)
        if link_batch.via is not Via.SITEMAP or self._trust == "any":
            return range(len(urls))
        authority = _Authority(tx, link_batch.parent or b"", self._trust)
        may_name = authority.may_name_file if link_batch.kind is TaskKind.SITEMAP else authority.may_name
        return [number for number, url in enumerate(urls) if may_name(url)]

    def _within_budget(self, tx: Transaction, link_batch: LinkBatch, numbers: Sequence[int]) -> Sequence[int]:
        """What the budget of a host has no room for would be refused for good. Left out, it can come back."""
        if link_batch.kind is not TaskKind.PAGE or not numbers:
            return numbers
        urls = urls_of(link_batch)
        hosts = [host_of(urls[number]) for number in numbers]
        rooms = {host: self._admission.room(tx, host) for host in set(hosts)}
        if all(room is None or room >= len(numbers) for room in rooms.values()):
            return numbers
        keys, kept = keys_of(link_batch), []
        for number, host in zip(numbers, hosts, strict=True):
            room = rooms[host]
            if room is None or tx.known_url(keys[number]) is not None:
                kept.append(number)
            elif room > 0:
                rooms[host] = room - 1
                kept.append(number)
        return kept


class _Authority:
    """Whom one sitemap may speak for: its own folder; hosts whose robots.txt names it, or an index that leads to
    it; all, if the operator gave it as a seed."""

    def __init__(self, tx: Transaction, key: bytes, trust: str, names: Sequence[bytes] = ()) -> None:
        """`names` of a sitemap whose row another partition has."""
        self._tx = tx
        chain = _chain(tx, key)
        self._names = {*names, *(bytes(tx.cache.keys.key_of(row.url)) for row in chain)}
        root = chain[-1].found.via if chain else Via.LINK
        self._is_seed = root is Via.SEED
        self._is_named = self._is_seed or root is Via.ROBOTS
        self._own = folder_of(chain[0].url) if chain else "-"
        self._origin = f"{host_of(chain[0].url)}/" if chain else "-"
        self._domain = registrable_domain(_name(self._origin)) if chain and trust == "domain" else ""
        self._hosts: dict[str, bool] = {}

    @property
    def names(self) -> tuple[bytes, ...]:
        return tuple(sorted(self._names))

    def speaks_for_all(self, kind: TaskKind) -> bool:
        """Whether it may name such files of any host."""
        return self._is_seed or (kind is TaskKind.SITEMAP and self._is_named)

    def may_name(self, url: str) -> bool:
        if self._is_seed or url.startswith(self._own):
            return True
        host = host_of(url)
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = self._speaks_for(host)
        return known

    def may_name_file(self, url: str) -> bool:
        """Another sitemap: what that one names is judged by itself, with the index that led to it."""
        return self._is_named or url.startswith(self._origin) or self.may_name(url)

    def _speaks_for(self, host: Host) -> bool:
        if self._domain and registrable_domain(_name(host)) == self._domain:
            return True
        ident, row = self._tx.look(host)
        if row is None or not row.robots.read_at:
            return False
        keys = self._tx.cache.keys
        for href in self._tx.cache.rules(ident, row.robots.rules_key).sitemaps:
            url = normalise(href, f"{host}/")
            if url is not None and bytes(keys.key_of(url)) in self._names:
                return True
        return False


def _note_left_out(tx: Transaction, key: UrlKey | None) -> None:
    row = tx.url(key) if key else None
    if key and row is not None and row.rule != LEFT_OUT:
        row.rule = LEFT_OUT
        tx.put_url(key, row)


def _chain(tx: Transaction, key: bytes) -> list[UrlRow]:
    """A sitemap, and the indexes and redirects that led to it; the first one last."""
    chain: list[UrlRow] = []
    while key and len(chain) < _LONGEST_CHAIN and (row := tx.url(UrlKey(key))) is not None:
        chain.append(row)
        if row.found.via not in (Via.SITEMAP, Via.REDIRECT):
            break
        key = row.found.parent or b""
    return chain


def _name(origin: str) -> str:
    return origin.partition("://")[2].rstrip("/")
