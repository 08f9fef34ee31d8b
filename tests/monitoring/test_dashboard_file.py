"""The Grafana dashboard and the example configuration that are shipped: loadable, about metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from skitter.telemetry import METRICS
from tests.monitoring.promtool import needs_promtool, promtool
from tests.monitoring.test_alerts import exported, names_in

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/skitter.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
def test_a_panel_is_about_metrics_and_labels_that_exist(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        names = names_in(target["expr"])
        assert names
        assert names <= exported()
        labels = {METRICS[metric].label for metric in METRICS if metric in names} | {"instance", "le"}
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels
        for label, value in re.findall(r'(\w+)="(\w+)"', target["expr"]):
            assert any(value in about.labels for about in METRICS.values() if about.label == label)


def test_panels_have_places_and_numbers_of_their_own() -> None:
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    taken: set[tuple[int, int]] = set()
    for panel in everything:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


@needs_promtool
def test_every_expression_can_be_evaluated(tmp_path: Path) -> None:
    """As a recording rule, with Grafana's variables filled in: promtool parses what Prometheus would."""
    filled = [expression.replace("$__rate_interval", "5m").replace("$", "") for expression in EXPRESSIONS]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(filled)]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", file)


@needs_promtool
def test_the_example_configuration_is_valid_and_finds_the_rules() -> None:
    assert "16 rules found" in promtool("check", "config", DEPLOY / "prometheus/prometheus.yml")


def test_the_example_scrapes_the_job_that_alerts_and_dashboard_are_about() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    assert [job["job_name"] for job in config["scrape_configs"]] == ["skitter"]
