"""The trial of many processes in its short form: a server and three workers, killed, stopped and cut off."""

from __future__ import annotations

import json
import random

import pytest
from bench import processes
from bench._torment import Act
from bench._unrest import strikes


def test_a_server_and_three_workers_that_are_given_no_peace_crawl_exactly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = "--kills 8 --pauses 2 --pages 200 --lease 3 --crawl-delay 0.2 --segment-size 200000"
    # A seed by which the server is killed at full speed and while it starts.
    code = processes.main([*small.split(), "--seed", "8"])
    said = capsys.readouterr().out
    figures = json.loads(said.splitlines()[-1])
    assert figures["faults"] == {}, said
    assert code == 0
    assert figures["kills"] + figures.get("drained_in_time", 0) >= 8
    assert figures["servers"] > 2
    assert figures["connections_cut"] > 0


def test_everybody_is_struck_in_every_way() -> None:
    planned = strikes(random.Random(1), kills=100, pauses=20, workers=3)
    struck = {(strike.act, strike.member) for strike in planned}
    acts = (Act.KILL, Act.EARLY_KILL, Act.DRAIN_KILL, Act.PAUSE)
    assert struck == {(act, member) for act in acts for member in range(4)}
