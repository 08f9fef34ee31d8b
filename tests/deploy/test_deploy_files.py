"""The files of deploy/ are what their tools take: checked by these tools where they are installed, and for what
skitter itself must understand in any case."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from skitter.cli import _parse
from skitter.service.http.access import read_tokens
from skitter.telemetry import METRICS

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy/systemd").iterdir())
MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
COMPOSE = sorted((ROOT / "deploy/compose").glob("*.yml"))


def tool(name: str) -> str:
    """From the environment (SKITTER_HADOLINT and so on), or from the path."""
    found = os.environ.get(f"SKITTER_{name.upper().replace('-', '_')}") or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not there")
    return found


def commands() -> list[list[str]]:
    """Every command line of skitter in these files."""
    found = []
    for unit in UNITS:
        for line in re.findall(r"^ExecStart=\S*/skitter (.*)$", unit.read_text(), re.MULTILINE):
            found.append(shlex.split(line.replace("%i", "news")))
    for file in COMPOSE:
        for service in yaml.safe_load(file.read_text())["services"].values():
            if "build" in service or "<<" in service:
                found.append([re.sub(r"\$\{(\w+).*?\}", r"\1", str(word)) for word in service["command"]])
    for manifest in MANIFESTS:
        for one in yaml.safe_load_all(manifest.read_text()):
            found += [container["args"] for container in _containers(one)]
    return found


def _containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    template = manifest.get("spec", {}).get("template", {})
    found: list[dict[str, Any]] = template.get("spec", {}).get("containers", [])
    return found


def test_skitter_understands_every_command_line_of_them() -> None:
    found = commands()
    assert len(found) >= 9
    for words in found:
        assert callable(_parse(words).run), words


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_what_a_unit_writes_is_its_owners_alone(unit: Path) -> None:
    if "[Service]" in unit.read_text():
        assert "UMask=0077" in unit.read_text().splitlines()


def test_tokens_and_metrics_are_ones_that_skitter_knows() -> None:
    secret = yaml.safe_load((ROOT / "deploy/kubernetes/secret.yaml").read_text())["stringData"]
    assert not read_tokens(None, secret["tokens"]).is_open
    assert secret["worker"] in secret["tokens"]
    scaling = (ROOT / "deploy/kubernetes/worker.yaml").read_text()
    [metric] = re.findall(r"name: (skitter_\w+)", scaling)
    assert metric in set(map(str, METRICS))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_every_container_gives_up_what_it_does_not_need(manifest: Path) -> None:
    for one in yaml.safe_load_all(manifest.read_text()):
        for container in _containers(one):
            given_up = container["securityContext"]
            assert given_up["readOnlyRootFilesystem"]
            assert given_up["capabilities"] == {"drop": ["ALL"]}
            assert one["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]


def test_the_image_is_linted() -> None:
    done = subprocess.run(
        [tool("hadolint"), str(ROOT / "Dockerfile")], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "manifest", [path for path in MANIFESTS if path.stem != "kustomization"], ids=lambda p: p.stem
)
def test_manifests_are_valid(manifest: Path) -> None:
    command = [tool("kubernetes-validate"), "--strict", str(manifest)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_are_valid(unit: Path, tmp_path: Path) -> None:
    verify = tool("systemd-analyze")
    program = tmp_path / "skitter"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for one in UNITS:
        text = one.read_text().replace("/usr/local/bin/skitter", str(program))
        (tmp_path / one.name.replace("@", "@news")).write_text(text)
    named = tmp_path / unit.name.replace("@", "@news")
    done = subprocess.run([verify, "verify", str(named)], capture_output=True, text=True, timeout=60)
    # A machine without systemd as its first process says so, and checks the file all the same.
    said = [line for line in done.stderr.splitlines() if named.name in line or str(tmp_path) in line]
    assert said == []
