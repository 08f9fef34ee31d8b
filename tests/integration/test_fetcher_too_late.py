"""A request that may no longer be made is not made: not even when its connection is there already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from skitter.fetch.base import TooLate
from skitter.fetch.curl import CurlFetcher
from skitter.model import Exchange
from skitter.settings import FetchSettings
from tests.fetching import fetching, run
from tests.nameserver import A, nameserver
from tests.raw_server import page, sends, serving


def only(times: int) -> Callable[[], bool]:
    """A right that ends after it was asked about so often."""
    left = iter([True] * times)
    return lambda: next(left, False)


@pytest.mark.parametrize("kept", [False, True], ids=["new connection", "kept connection"])
def test_a_right_that_ended_while_dialling_sends_nothing(kept: bool) -> None:
    async def use(fetcher: CurlFetcher) -> None:
        if kept:
            assert isinstance(await fetcher.fetch(server.url + "/first"), Exchange)
        with pytest.raises(TooLate):
            await fetcher.fetch(server.url + "/late", may_start=only(1))
        assert fetcher.in_flight == 0
        # and the next one is no worse for it
        assert isinstance(await fetcher.fetch(server.url + "/next", may_start=only(2)), Exchange)

    with serving(sends(page(b"here"), keep=True)) as server:
        run(use)
        asked = [received.raw.split()[1] for received in server.requests]
    assert asked == ([b"/first", b"/next"] if kept else [b"/next"])


def test_a_right_that_ended_while_a_name_was_looked_up_dials_nobody() -> None:
    async def main() -> int:
        async with nameserver() as names:
            limits = FetchSettings(nameservers=(names.address,))
            async with fetching(limits) as fetcher:
                with pytest.raises(TooLate):
                    await fetcher.fetch("http://unknown.example/", may_start=only(1))
            return names.asked["unknown.example", A]

    assert asyncio.run(main()) == 1


def test_without_the_right_not_even_a_name_is_looked_up() -> None:
    async def main() -> int:
        async with nameserver() as names:
            async with fetching(FetchSettings(nameservers=(names.address,))) as fetcher:
                with pytest.raises(TooLate):
                    await fetcher.fetch("http://unknown.example/", may_start=only(0))
            return names.asked["unknown.example", A]

    assert asyncio.run(main()) == 0
