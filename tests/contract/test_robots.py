"""robots.txt comes first, decides, and may lie elsewhere (RFC 9309)."""

from __future__ import annotations

from tests.frontier_kit import Driver, discovered, robots

DAY = 86_400.0


def test_the_horizon_is_not_empty_while_denied_urls_wait_to_be_looked_at_again(driver: Driver) -> None:
    driver.open_host("http://a.test/private/1", body=robots("Disallow: /private/"))
    assert driver.lease() == []
    driver.clock.advance(DAY)
    driver.admit(discovered("http://a.test/"))
    driver.answer(driver.lease_one(), robots("Disallow: /elsewhere/"))
    driver.clock.advance(1)
    driver.fetch()
    horizon = driver.run(driver.frontier.horizon())
    assert horizon.next_at == driver.clock.now() + 1
    assert driver.promote() == 1
    driver.clock.advance(1)
    assert driver.lease_one().tasks[0].url == "http://a.test/private/1"
