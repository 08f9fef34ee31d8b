"""What sitemaps and feeds say of known pages: their dates make pages due, as far as their host is believed.

Within the transaction that admits what a file names, where a crawl is kept fresh. A page that changed after our
last visit by its date is *told* of; its next visit moves to when that is worth it (`schedule/signals.py`). What a
reading brought is kept with the file, and says when it is read again. Decides nothing about URLs that are new.
"""

from __future__ import annotations

from skitter.frontier.engine.revisiting.revisit_dates import RevisitDates, groups_of, trust_of
from skitter.frontier.link_batches import keys_of
from skitter.frontier.rows import UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.frontier.tables.trap_tables import host_key
from skitter.model import LinkBatch, NotModified, Outcome, TaskKind, UrlKey, UrlState, Via
from skitter.schedule.revisit import DATED, DAY, Purpose, Visits, pack_visits, unpack_visits
from skitter.urls.canonical import host_id, host_of
from skitter.urls.keys import host_part

# What a file brought long ago counts less with each reading.
_FADE = 0.9


class ToldChanges:
    def __init__(self, dates: RevisitDates) -> None:
        self._dates = dates

    # -- while its links are admitted

    def hear(self, tx: Transaction, link_batch: LinkBatch) -> None:
        """Part of what a file names, before it is admitted."""
        columns, parent = link_batch.columns, link_batch.parent
        if columns is None or not columns.lastmod or link_batch.kind is not TaskKind.PAGE or parent is None:
            return
        is_sitemap, ident = link_batch.via is Via.SITEMAP, host_part(parent)
        news, hosts = 0.0, set[bytes]()
        for key, lastmod in zip(keys_of(link_batch), columns.lastmod, strict=True):
            # a feed may name what it likes, but speaks for its own host alone
            if lastmod is None or not (is_sitemap or host_part(key) == ident):
                continue
            row = tx.known_url(key)
            if row is not None and row.visits and row.state == UrlState.COMPLETED:
                news += self._hear_of(tx, key, row, lastmod + tx.cache.skew, is_sitemap)
                hosts.add(host_id(host_of(row.url)))
        if is_sitemap:
            for host in hosts:
                tx.learn_habits(host_key(host)).heard_at = int(tx.now)
        self.count_news(tx, parent, news)

    def _hear_of(self, tx: Transaction, key: UrlKey, row: UrlRow, lastmod: float, is_sitemap: bool) -> float:
        """How far it is believed that the page has changed, and had not been told of."""
        visits = unpack_visits(row.visits)
        if not visits.seen_at or visits.is_told:
            return 0.0
        if lastmod <= visits.seen_at:
            if is_sitemap and not visits.told_at:
                row.visits = pack_visits(visits._replace(told_at=DATED))
                tx.put_url(key, row)
            return 0.0
        self._tell(tx, key, row, visits._replace(told_at=int(tx.now)))
        return trust_of(tx.cache, groups_of(tx.cache, key, row.url)).precision

    def _tell(self, tx: Transaction, key: UrlKey, row: UrlRow, visits: Visits) -> None:
        """Its date is found anew, and never gets later by it."""
        row.visits = pack_visits(visits)
        _, host = tx.look(host_of(row.url))
        is_by_worth = visits.purpose in (Purpose.ROUTINE, Purpose.PROMISE)
        if row.due and is_by_worth and host is not None:
            at = max(self._dates.today(tx, host, key, row), tx.now)
            if at < row.due:
                tx.cancel_visit(key, row)
                tx.plan_visit(key, row, at)
        tx.put_url(key, row)

    def count_news(self, tx: Transaction, file: UrlKey, news: float) -> None:
        """New URLs, or changes that were told, of a reading that is not settled yet."""
        if news:
            tx.learn_habits(file).news += news

    # -- when the reading is settled

    def read(self, tx: Transaction, outcome: Outcome, row: UrlRow, visits: Visits) -> Visits:
        """What is kept of a file's readings after one more."""
        brought = tx.learn_habits(outcome.key)
        if visits.seen_at:
            brought.changes = _FADE * brought.changes + brought.news
            brought.days = _FADE * brought.days + max(0.0, outcome.ended_at - visits.seen_at) / DAY
        # of a first reading all is new, which says nothing of the next one
        brought.news = 0.0
        if isinstance(outcome.result, NotModified) and row.found.kind is TaskKind.SITEMAP:
            tx.learn_habits(host_key(host_id(host_of(row.url)))).heard_at = int(tx.now)
        seen = visits._replace(seen_at=int(outcome.ended_at), times_gone=0, purpose=Purpose.ROUTINE)
        return seen._replace(interval=self._dates.days_of_file(tx, outcome.key))
