"""How often a host may be asked: pure arithmetic on what is known of it.

The frontier keeps these figures in the host's row and hands the resulting delay out with each lease.
"""

from __future__ import annotations

from skitter.model import HostPolicy
from skitter.settings import PolitenessSettings

MAX_PENALTY = 64.0
_SMOOTHING = 0.2
_RECOVERY = 0.1
# The least delay (s) that a penalty multiplies: an operator's delay of 0 is slowed down too.
_LEAST_THROTTLED = 1.0


def delay_for(
    settings: PolitenessSettings,
    policy: HostPolicy | None,
    crawl_delay: float | None,
    response_time: float,
    penalty: float,
) -> float:
    """Seconds between two request starts. An operator's delay for the host replaces everything but the
    penalty for being throttled: a host that says "too many requests" is always believed."""
    if policy is not None and policy.delay is not None:
        delay = policy.delay
    else:
        asked = min(crawl_delay or 0.0, settings.max_crawl_delay)
        delay = max(settings.delay, asked, settings.slow_factor * response_time)
    return max(delay, _LEAST_THROTTLED) * penalty if penalty > 1.0 else delay


def smoothed(response_time: float, latest: float) -> float:
    return latest if response_time == 0.0 else response_time + _SMOOTHING * (latest - response_time)


def throttled(penalty: float) -> float:
    """429 or 503: the rate is halved at once."""
    return min(max(penalty, 1.0) * 2.0, MAX_PENALTY)


def recovered(penalty: float) -> float:
    """A good answer: the rate grows back by a tenth of the full rate, additively."""
    if penalty <= 1.0:
        return 1.0
    return max(1.0, 1.0 / min(1.0, 1.0 / penalty + _RECOVERY))
