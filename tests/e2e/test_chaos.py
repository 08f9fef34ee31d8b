"""The chaos trial in its short form: everything that can happen to a crawl happens to a small one."""

from __future__ import annotations

import json

import pytest
from bench import chaos
from bench._jumps import Run, by_real_time
from bench._records import Fetch

from skitter.testing.request_log import Request


def test_a_crawl_that_is_given_no_peace_ends_exact(capsys: pytest.CaptureFixture[str]) -> None:
    small = "--kills 12 --pauses 2 --fills 1 --pages 400 --lease 1 --crawl-delay 0.3 --segment-size 200000"
    code = chaos.main([*small.split(), "--seed", "3"])
    said = capsys.readouterr().out
    figures = json.loads(said.splitlines()[-1])
    assert figures["faults"] == {}, said
    assert code == 0
    killed = sum(figures.get(name, 0) for name in KILLS)
    assert killed == 12
    assert figures["pause_past_the_lease"] == 2


KILLS = ("kill", "kill_while_starting", "kill_while_draining")


def test_a_time_that_two_clocks_showed_is_of_the_run_in_which_the_url_was_asked() -> None:
    fetch = Fetch("http://a.test/", b"", 1000.5, "fetched", 200, None)
    ahead, right = Run(900.0, 100.0, 110.0), Run(0.0, 1000.0, 1010.0)
    asked = Request(id=1, start=100.4, host="a.test", path="/", connection=1)
    (found,) = by_real_time([fetch], [asked], [ahead, right])
    assert found.sent_at == 100.5
    later = Request(id=2, start=1000.4, host="a.test", path="/", connection=1)
    (found,) = by_real_time([fetch], [later], [ahead, right])
    assert found.sent_at == 1000.5
