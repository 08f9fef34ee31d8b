"""Seeds: where a crawl begins, given while it runs."""

from __future__ import annotations

from skitter.service.api_context import ApiContext
from skitter.service.http.access import Role
from skitter.service.http.routes import Call, Route
from skitter.service.steering import urls as steering
from skitter.service.steering.urls import Seeds, SeedsTaken


async def seed(context: ApiContext, call: Call[Seeds, None]) -> SeedsTaken:
    return await steering.seed(context.steered, call.body)


ROUTES = (
    Route(
        method="POST",
        path="/v1/seeds",
        role=Role.OPERATOR,
        group="seeds",
        summary="Add URLs to crawl from",
        detail=(
            "A seed is a URL, or a bare domain (over https; over http where https cannot be connected). "
            "It brings its host into scope. Sending the same ones again is harmless."
        ),
        call=seed,
        body=Seeds,
        answer=SeedsTaken,
        status=202,
        keyed=True,
    ),
)
