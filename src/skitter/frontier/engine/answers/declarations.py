"""Files in which a site says what may be done with its content: who asks for them, and what becomes of the rules.

Asked within the transaction that settles a robots.txt, or such a file. A host is asked once for each file that
`opt_outs.files` names; the rules of its tdmrep.json go with every lease of the host.
"""

from __future__ import annotations

from skitter.frontier.engine.admission import Admission
from skitter.frontier.rows import HostRow, UrlRow
from skitter.frontier.tables.transaction import Transaction
from skitter.model import Discovered, Fetched, Host, TaskKind, Via
from skitter.parse.declarations import PLACES, TDMREP
from skitter.settings import Settings
from skitter.urls.canonical import target_of


class Declarations:
    def __init__(self, settings: Settings, admission: Admission) -> None:
        self._places = [PLACES[name] for name in settings.opt_outs.files]
        self._admission = admission

    def admit(self, tx: Transaction, host: HostRow) -> None:
        """The robots.txt of this host was read."""
        origin = Host(host.host)
        if not self._places or not self._admission.is_host_wanted(tx, origin):
            return
        for place in self._places:
            url = origin + place
            key = tx.cache.keys.key_of(url)
            found = Discovered(
                url=url, key=key, host=origin, depth=0, via=Via.PROBE, kind=TaskKind.DECLARATION
            )
            self._admission.admit(tx, found)


def note_declared(host: HostRow, row: UrlRow, result: Fetched) -> None:
    if target_of(row.url) == TDMREP:
        host.robots.tdm = result.directives if 200 <= result.status < 300 else ""
