"""How fresh the crawl is expected to be, and how much it has left, for whoever asks: walks, made rarely.

Beside `readings.py`. The first looks at every page (some 20 us each), the second at every host (some 10 us).
Nothing is walked for freshness where a crawl is not kept fresh.
"""

from __future__ import annotations

from skitter.frontier.base import Freshness
from skitter.plan.estimate import Estimate
from skitter.service.metrics.rare_walks import RareWalk


class FreshnessReadings(RareWalk[Freshness]):
    def __init__(self) -> None:
        super().__init__(lambda frontier: frontier.freshness(), soonest=60.0, share=0.05)


class EstimateReadings(RareWalk[Estimate]):
    def __init__(self) -> None:
        super().__init__(lambda frontier: frontier.estimate(), soonest=5.0, share=0.01)
