"""Whatever is sent, the service answers as its OpenAPI document says: schemathesis, against a real process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tests.service_kit import asked
from tests.serving import served

OPERATOR = "operator-0123456789"


def _hang_up(where: str) -> None:
    """In the middle of a body: nothing that belongs in a log."""
    with socket.create_connection(("127.0.0.1", urlsplit(where).port or 0)) as client:
        client.sendall(
            b"POST /v1/seeds HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + OPERATOR.encode() + b"\r\nContent-Length: 1000\r\n\r\n{"
        )


def test_no_answer_departs_from_the_document(tmp_path: Path) -> None:
    environ = {"SKITTER_TOKENS": f"operator {OPERATOR}", "SKITTER_IDENTITY_CONTACT": "a@b.example"}
    with served(tmp_path / "crawl", environ=environ) as server:
        asked(server.where, "POST", "/v1/seeds", {"urls": ["http://127.0.0.1:1/"]}, token=OPERATOR)
        _hang_up(server.where)
        known = asked(server.where, "GET", "/v1/explain?url=http://127.0.0.1:1/", token=OPERATOR).json
        parameters = f'[parameters]\nkey = "{known["key"]}"\n"path.host" = "127.0.0.1:1"\n'
        (tmp_path / "schemathesis.toml").write_text(parameters)
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.where}/openapi.json"),
                *("--header", f"Authorization: Bearer {OPERATOR}"),
                *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", "8"),
                *("--seed", "20261116", "--generation-deterministic", "--workers", "1"),
                *("--suppress-health-check", "all", "--no-color", "--request-timeout", "10"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONWARNINGS": ""},
            timeout=240,
        )
        still_there = asked(server.where, "GET", "/v1/health").status
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
    assert still_there == 200
    assert server.said == b""
