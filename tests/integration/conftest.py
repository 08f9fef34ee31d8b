"""Tests of the engine open frontiers on each store, as those of the contract do."""

from __future__ import annotations

from tests.frontier_fixtures import driver as driver
from tests.frontier_fixtures import pytest_generate_tests as pytest_generate_tests
from tests.frontier_fixtures import start as start
