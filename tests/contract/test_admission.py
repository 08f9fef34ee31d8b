"""What gets in: seen-check, scope, limits and budget, one verdict per URL in order."""

from __future__ import annotations

import pytest

from skitter.model import Refusal, VerdictKind
from skitter.settings import FrontierSettings, Settings
from tests.contract.conftest import Start
from tests.frontier_kit import Driver, discovered, redirected, seed

ADDED, KNOWN, REFUSED = VerdictKind.ADDED, VerdictKind.KNOWN, VerdictKind.REFUSED


def kinds(driver: Driver, *urls: str) -> list[VerdictKind]:
    return [verdict.kind for verdict in driver.admit(*(discovered(url) for url in urls))]


@pytest.mark.parametrize("recent_keys", [1, 1000])
def test_a_seeds_redirect_brings_its_target_into_scope_even_if_a_link_was_refused_there(
    start: Start, recent_keys: int
) -> None:
    driver = start(Settings(frontier=FrontierSettings(recent_keys=recent_keys)))
    driver.open_host("http://a.test/")
    assert kinds(driver, "http://www.a.test/", "http://a.test/1", "http://a.test/2") == [
        REFUSED,
        ADDED,
        ADDED,
    ]
    driver.fetch(redirected("http://www.a.test/", depth=0))
    assert driver.explain("http://www.a.test/").state == "queued"
    assert kinds(driver, "http://www.a.test/more") == [ADDED]


def test_a_seed_readmits_what_a_link_was_refused(driver: Driver) -> None:
    driver.admit(seed("http://a.test/"))
    (verdict,) = driver.admit(discovered("http://b.test/x"))
    assert (verdict.kind, verdict.reason) == (REFUSED, Refusal.SCOPE)
    assert driver.admit(seed("http://b.test/x"))[0].kind is ADDED
    assert driver.stats().refusals == {}
