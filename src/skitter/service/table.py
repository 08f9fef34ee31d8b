"""All routes, group by group: the one place where a group is registered."""

from __future__ import annotations

from skitter.service.api import crawl, hosts, letters, monitoring, results, seeds, tasks, urls
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
)
