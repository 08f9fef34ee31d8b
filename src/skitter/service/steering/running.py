"""What an operator asks of a crawl that runs, and of no other: to pause and to go on."""

from __future__ import annotations

import msgspec

from skitter.service.steering.order import Order


class Running(msgspec.Struct, frozen=True, kw_only=True):
    paused: bool


PAUSE: Order[Running] = Order(method="POST", path="/v1/crawl/pause", answer=Running)
RESUME: Order[Running] = Order(method="POST", path="/v1/crawl/resume", answer=Running)
