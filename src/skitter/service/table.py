"""All routes, group by group: the one place where a group is registered."""

from __future__ import annotations

from skitter.service.api import crawl, monitoring
from skitter.service.routes import Route

ROUTES: tuple[Route, ...] = (*crawl.ROUTES, *monitoring.ROUTES)
