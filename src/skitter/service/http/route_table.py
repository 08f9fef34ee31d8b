"""All routes, group by group: the one place where a group is registered."""

from __future__ import annotations

from skitter.service import dashboard
from skitter.service import worker_routes as work
from skitter.service.api import (
    changes,
    crawl,
    hosts,
    letters,
    monitoring,
    operators,
    overview,
    partitions,
    results,
    seeds,
    tasks,
    traps,
    urls,
    websub,
)
from skitter.service.http.routes import Route

OPERATORS_ROUTES: tuple[Route, ...] = (
    *crawl.ROUTES,
    *overview.ROUTES,
    *seeds.ROUTES,
    *changes.ROUTES,
    *websub.ROUTES,
    *urls.ROUTES,
    *hosts.ROUTES,
    *letters.ROUTES,
    *monitoring.ROUTES,
    *traps.ROUTES,
    *operators.ROUTES,
    *dashboard.ROUTES,
)
"""What a crawl answers that has workers of its own and takes no others."""

ROUTES: tuple[Route, ...] = (
    *OPERATORS_ROUTES,
    *partitions.ROUTES,
    *tasks.ROUTES,
    *results.ROUTES,
    *work.ROUTES,
)
