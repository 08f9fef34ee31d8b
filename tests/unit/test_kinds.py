"""The tables of the kinds of tasks: every kind has its row, on both sides."""

from __future__ import annotations

import pytest

from skitter.model import TaskKind
from skitter.schedule.kinds import KINDS as OF_A_FRONTIER
from skitter.worker.kinds import KINDS as OF_A_WORKER


@pytest.mark.parametrize("kind", TaskKind)
def test_every_kind_has_a_row_and_the_archive_calls_it_by_its_name(kind: TaskKind) -> None:
    assert kind in OF_A_FRONTIER
    # what the archive has of a rendering is the rendered page
    assert OF_A_WORKER[kind].name == ("rendered" if kind is TaskKind.RENDER else kind)


def test_links_of_a_foreign_worker_count_only_where_a_frontier_follows_links() -> None:
    for kind, row in OF_A_WORKER.items():
        assert OF_A_FRONTIER[kind].brings_links or not row.has_links
