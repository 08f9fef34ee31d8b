"""For tests of the engine itself, which may look behind the contract. Tests of the contract do not."""

from __future__ import annotations

from skitter.frontier.engine.frontier import EngineFrontier
from tests.frontier_kit import Driver


def engine_of(driver: Driver) -> EngineFrontier:
    engine = driver.frontier
    assert isinstance(engine, EngineFrontier)
    return engine
