"""All routes, group by group: the one place where a group is registered."""

from __future__ import annotations

from skitter.service import dashboard, work
from skitter.service.api import (
    crawl,
    hosts,
    letters,
    monitoring,
    operators,
    results,
    seeds,
    tasks,
    traps,
    urls,
)
from skitter.service.routes import Route

ROUTES: tuple[Route, ...] = (
    *crawl.ROUTES,
    *seeds.ROUTES,
    *tasks.ROUTES,
    *results.ROUTES,
    *urls.ROUTES,
    *hosts.ROUTES,
    *letters.ROUTES,
    *monitoring.ROUTES,
    *traps.ROUTES,
    *operators.ROUTES,
    *dashboard.ROUTES,
    *work.ROUTES,
)
