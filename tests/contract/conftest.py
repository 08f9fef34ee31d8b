"""Every promise is kept on every store."""

from __future__ import annotations

from tests.frontier_fixtures import Start as Start
from tests.frontier_fixtures import driver as driver
from tests.frontier_fixtures import pytest_generate_tests as pytest_generate_tests
from tests.frontier_fixtures import start as start
