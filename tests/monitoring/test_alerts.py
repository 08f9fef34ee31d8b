"""The alerts that are shipped: each fires when it should, keeps quiet when it should, and says what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from skitter.telemetry import METRICS, Kind
from tests.monitoring.promtool import needs_promtool, promtool

RULES = Path(__file__).parents[2] / "deploy/prometheus/skitter-alerts.yml"
INSTANCE = '{instance="crawl:8600", job="skitter"}'
HOURS = 60


class Case(NamedTuple):
    """Series in steps of a minute, in promtool's shorthand `start+step x times`, and when to look (min)."""

    alert: str
    what: str
    fires: bool
    at: int
    series: dict[str, str]


def running(pages: str = "0+600x600", **more: str) -> dict[str, str]:
    """A crawl at ten pages a second with a full queue, but for what is told otherwise."""
    healthy = {
        "up": "1x600",
        "skitter_pages_total": pages,
        "skitter_fetches_total": "0+660x600",
        "skitter_failures_total|kind=throttled": "0+2x600",
        "skitter_failures_total|kind=stalled": "0+8x600",
        "skitter_queued_urls|tier=F1": "100000-60x600",
        "skitter_queued_urls|tier=F2": "300000-60x600",
        "skitter_politeness_violations_total": "0x600",
        "skitter_workers_live": "2x600",
        "skitter_worker_silence_seconds": "0x600",
        "skitter_paused": "0x600",
        "skitter_fetch_seconds_bucket|le=1.0": "0+580x600",
        "skitter_fetch_seconds_bucket|le=5.0": "0+650x600",
        "skitter_fetch_seconds_bucket|le=10.0": "0+660x600",
        "skitter_fetch_seconds_bucket|le=+Inf": "0+660x600",
        "skitter_urls|state=dead_letter": "0+2x600",
        "skitter_unsynced_seconds": "1x600",
        "skitter_spool_bytes": "6000000000-1000000x600",
        "skitter_disk_free_bytes": "90000000000-10000000x600",
        "skitter_seen_filter_false_positive_ratio": "0.002x600",
        "skitter_log_lines_dropped_total": "0x600",
    }
    return healthy | more


CASES = (
    Case("SkitterDown", "does not answer", True, 5, {"up": "1x2 0x600"}),
    Case("SkitterDown", "missed one scrape", False, 5, {"up": "1x2 0 1x600"}),
    Case(
        "SkitterPolitenessViolated",
        "the first violation",
        True,
        200,
        running(skitter_politeness_violations_total="0x190 1x600"),
    ),
    Case(
        "SkitterPolitenessViolated",
        "there was one before anybody watched",
        True,
        1,
        running(skitter_politeness_violations_total="3x600"),
    ),
    Case(
        "SkitterPolitenessViolated",
        "looked into hours ago",
        False,
        400,
        running(skitter_politeness_violations_total="0x190 1x600"),
    ),
    Case("SkitterNoWorkers", "nobody asks", True, 30, running(skitter_workers_live="2x10 0x600")),
    Case(
        "SkitterNoWorkers",
        "held by the operator",
        False,
        30,
        running(skitter_workers_live="2x10 0x600", skitter_paused="0x10 1x600"),
    ),
    Case(
        "SkitterNoWorkers",
        "nothing is left to do",
        False,
        30,
        {"up": "1x600", "skitter_workers_live": "0x600", "skitter_paused": "0x600"}
        | {"skitter_queued_urls|tier=F0": "0x600"},
    ),
    Case(
        "SkitterWorkerSilent",
        "one is gone",
        True,
        30,
        running(skitter_worker_silence_seconds="0x20 60+60x600"),
    ),
    Case(
        "SkitterWorkerSilent",
        "one was gone shortly",
        False,
        30,
        running(skitter_worker_silence_seconds="0x20 60+60x2 0x600"),
    ),
    Case("SkitterThroughputDrop", "a third less", True, 330, running("0+600x300 180000+390x600")),
    Case("SkitterThroughputDrop", "a tenth less", False, 330, running("0+600x300 180000+540x600")),
    Case(
        "SkitterThroughputDrop",
        "held by the operator",
        False,
        330,
        running("0+600x300 180000+0x600", skitter_paused="0x300 1x600"),
    ),
    Case("SkitterThroughputDrop", "a crawl that begins", False, 15, running("0+600x600")),
    Case(
        "SkitterErrorRate",
        "a tenth fails",
        True,
        60,
        running(**{"skitter_failures_total|kind=connect_timeout": "0+60x600"}),
    ),
    Case("SkitterErrorRate", "one in sixty fails", False, 60, running()),
    Case(
        "SkitterThrottled",
        "three in a hundred",
        True,
        60,
        running(**{"skitter_failures_total|kind=throttled": "0+20x600"}),
    ),
    Case("SkitterThrottled", "three in a thousand", False, 60, running()),
    Case(
        "SkitterSlow",
        "one in ten takes longer than 5 s",
        True,
        60,
        running(**{"skitter_fetch_seconds_bucket|le=5.0": "0+590x600"}),
    ),
    Case("SkitterSlow", "one in sixty does", False, 60, running()),
    Case(
        "SkitterQueueGrows",
        "for six hours",
        True,
        6 * HOURS,
        running(**{"skitter_queued_urls|tier=F2": "300000+600x600"}),
    ),
    Case(
        "SkitterQueueGrows",
        "for two hours, as a young crawl's does",
        False,
        6 * HOURS,
        running(**{"skitter_queued_urls|tier=F2": "300000+600x120 372000-600x480"}),
    ),
    Case(
        "SkitterDeadLetters",
        "thousands",
        True,
        120,
        running(**{"skitter_urls|state=dead_letter": "0+50x600"}),
    ),
    Case("SkitterDeadLetters", "a hundred an hour", False, 120, running()),
    Case(
        "SkitterArchiveLag",
        "the disk hangs",
        True,
        60,
        running(skitter_unsynced_seconds="1x50 10+60x600"),
    ),
    Case("SkitterArchiveLag", "a slow sync", False, 60, running(skitter_unsynced_seconds="1x50 40 1x600")),
    Case(
        "SkitterSpoolGrows",
        "the object store is away",
        True,
        120,
        running(skitter_spool_bytes="4000000000+50000000x600"),
    ),
    Case("SkitterSpoolGrows", "large and falling", False, 120, running()),
    Case("SkitterDiskLow", "4 GB are left", True, 60, running(skitter_disk_free_bytes="4000000000-1000x600")),
    Case("SkitterDiskLow", "90 GB are left", False, 60, running()),
    Case(
        "SkitterDiskFillsUp",
        "50 MB a minute of 90 GB",
        True,
        400,
        running(skitter_disk_free_bytes="90000000000-100000000x600"),
    ),
    Case("SkitterDiskFillsUp", "10 MB a minute of 90 GB", False, 400, running()),
    Case(
        "SkitterSeenFilterFull",
        "every fifth is wrong",
        True,
        60,
        running(skitter_seen_filter_false_positive_ratio="0.2x600"),
    ),
    Case("SkitterSeenFilterFull", "as designed", False, 60, running()),
    Case("SkitterLogLost", "lines are lost", True, 60, running(skitter_log_lines_dropped_total="0x50 9x600")),
    Case(
        "SkitterLogLost",
        "they were, hours ago",
        False,
        400,
        running(skitter_log_lines_dropped_total="0x50 9x600"),
    ),
)


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def series(name: str, values: str) -> dict[str, str]:
    metric, _, label = name.partition("|")
    key, _, value = label.partition("=")
    more = f', {key}="{value}"' if label else ""
    return {"series": metric + INSTANCE.replace("}", more + "}"), "values": values}


def as_promtool_has_it(case: Case) -> dict[str, Any]:
    expected = [{"labels": f'{{alertname="{case.alert}"}}', "value": 1}] if case.fires else []
    asked = f'count by (alertname) (ALERTS{{alertname="{case.alert}", alertstate="firing"}})'
    return {
        "name": f"{case.alert}: {case.what}",
        "interval": "1m",
        "input_series": [series(*one) for one in case.series.items()],
        "promql_expr_test": [{"expr": asked, "eval_time": f"{case.at}m", "exp_samples": expected}],
    }


@needs_promtool
def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    # each alert by itself: with all of them in every case promtool takes 20 s instead of 3
    for rule in rules():
        alone = tmp_path / f"{rule['alert']}.yml"
        alone.write_text(json.dumps({"groups": [{"name": "alone", "rules": [rule]}]}))
        cases = [as_promtool_has_it(case) for case in CASES if case.alert == rule["alert"]]
        asked = {"rule_files": [str(alone)], "evaluation_interval": "1m", "tests": cases}
        (tmp_path / f"{rule['alert']}-test.yml").write_text(json.dumps(asked))
    promtool("test", "rules", *sorted(tmp_path.glob("*-test.yml")))


@needs_promtool
def test_a_healthy_crawl_raises_no_alert_at_all(tmp_path: Path) -> None:
    test = as_promtool_has_it(Case("", "healthy", False, 500, running()))
    test["promql_expr_test"][0]["expr"] = 'ALERTS{alertstate=~"firing|pending"}'
    file = tmp_path / "healthy.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "tests": [test]}))
    promtool("test", "rules", file)


@needs_promtool
def test_the_rules_are_well_formed() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES)


def test_every_alert_is_tried_both_ways() -> None:
    tried = {(case.alert, case.fires) for case in CASES}
    assert tried == {(rule["alert"], fires) for rule in rules() for fires in (True, False)}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_tells_how_bad_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"]
    assert len(rule["annotations"]["description"]) > 40


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:skitter|process)_[a-z_]+\b", expression))


def exported() -> set[str]:
    names = {metric.value for metric in METRICS}
    for metric, about in METRICS.items():
        if about.kind is Kind.HISTOGRAM:
            names |= {f"{metric}_bucket", f"{metric}_sum", f"{metric}_count"}
    return names


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_is_about_metrics_that_exist(rule: dict[str, Any]) -> None:
    assert names_in(rule["expr"]) <= exported()
    assert names_in(rule["expr"]) or "up{" in rule["expr"]
    for name, value in re.findall(r'(\w+)="(\w+)"', rule["expr"]):
        known = {label for about in METRICS.values() if about.label == name for label in about.labels}
        assert value in known | {"skitter"}
