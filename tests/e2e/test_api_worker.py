"""The worker of docs/api.md, run as it stands there, crawls the demo web through `skitter serve`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from skitter.testing.audit import compare, violations
from skitter.testing.plan import WebPlan
from skitter.testing.web import SyntheticWeb
from tests.service_kit import asked
from tests.serving import served

DOCS = Path(__file__).resolve().parents[2] / "docs" / "api.md"
WORKER = re.findall(r"<!-- worker -->\n```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
DELAY = 0.1


def test_the_worker_of_the_docs_crawls_politely_and_completely(tmp_path: Path) -> None:
    (worker,) = WORKER
    plan = WebPlan.demo()
    config = tmp_path / "demo.toml"
    with SyntheticWeb(plan) as web:
        config.write_text(
            f"[politeness]\ndelay = {DELAY}\n[retry]\nbackoff = [0.5]\nquarantine_after = 6\n"
            f"[crawl]\nscope = 'any'\n[fetch]\nresolve = ['{web.resolve}']\n"
        )
        with served(tmp_path / "crawl", "--config", config) as server:
            where = server.where
            assert asked(where, "POST", "/v1/seeds", {"urls": web.seeds}).json["accepted"] == 1
            # every name of the synthetic web is found through it, as through a proxy
            proxy = {"http_proxy": f"http://127.0.0.1:{web.port}", "no_proxy": "127.0.0.1"}
            done = subprocess.run(
                [sys.executable, "-c", worker], env={**os.environ, **proxy, "SKITTER_API": where}, timeout=60
            )
            stats = asked(where, "GET", "/v1/stats").json["stats"]
        web.stop()
        requests = web.requests()
    assert done.returncode == 0
    assert violations(requests, lambda host: max(DELAY, plan.delay(host))) == []
    assert not compare(requests, plan, attempts=5)
    assert stats["fetches"] == len(requests)
    assert (stats["politeness"]["violations"], stats["stale_outcomes"]) == (0, 0)
