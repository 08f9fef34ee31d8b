"""What `skitter crawl` and `skitter serve` say first when settings differ from those of the folder's last run."""

from __future__ import annotations

import shlex

from skitter.console.display.display import Display
from skitter.console.display.wording import counted, refused_by
from skitter.telemetry import Event
from skitter.wiring import CrawlServices


def tell_rule_changes(services: CrawlServices, folder: str, display: Display) -> None:
    changes = services.rule_changes
    if changes.judged_again:
        words = ", ".join(refused_by(reason, count) for reason, count in changes.judged_again.items())
        display.note(f"settings changed: {words} are judged again")
        services.log.write(Event.RULES_CHANGED, **changes.judged_again)
    if changes.pages_without_requisites:
        pages = counted(changes.pages_without_requisites, "page")
        display.note(
            f"crawl.requisites is new here: what {pages} fetched earlier need is not known; after this crawl, "
            f"skitter refresh {shlex.quote(folder)} queues them again"
        )
