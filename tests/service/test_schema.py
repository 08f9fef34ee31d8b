"""Whatever is sent, the service answers as its OpenAPI document says: schemathesis, against a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.command import ENVIRON, command
from tests.service_kit import asked

OPERATOR = "operator-0123456789"


def test_no_answer_departs_from_the_document(tmp_path: Path) -> None:
    serve = command("serve", tmp_path / "crawl", "--listen", "127.0.0.1:0", "--json")
    environ = {**ENVIRON, "SKITTER_TOKENS": f"operator {OPERATOR}", "SKITTER_IDENTITY_CONTACT": "a@b.example"}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ) as server:
        try:
            assert server.stdout is not None
            where = json.loads(server.stdout.readline())["serving"]
            asked(where, "POST", "/v1/seeds", {"urls": ["http://127.0.0.1:1/"]}, token=OPERATOR)
            known = asked(where, "GET", "/v1/explain?url=http://127.0.0.1:1/", token=OPERATOR).json
            parameters = f'[parameters]\nkey = "{known["key"]}"\n"path.host" = "127.0.0.1:1"\n'
            (tmp_path / "schemathesis.toml").write_text(parameters)
            done = subprocess.run(
                [
                    *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{where}/openapi.json"),
                    *("--header", f"Authorization: Bearer {OPERATOR}"),
                    *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", "8"),
                    *("--seed", "20261116", "--generation-deterministic"),
                    *("--suppress-health-check", "all", "--no-color", "--request-timeout", "10"),
                ],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env={**os.environ, "PYTHONWARNINGS": ""},
                timeout=120,
            )
            still_there = asked(where, "GET", "/v1/health").status
        finally:
            server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=20)
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
    assert still_there == 200
    assert (server.returncode, errors) == (0, b"")
