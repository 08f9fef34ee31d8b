"""The command line helps who types it: help, guesses, completion, the manual page, and a Makefile that quotes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skitter.cli import _parser
from skitter.console.command_line import commands_of
from tests.e2e.command import ENVIRON, complaint, read_json, said, serving_site, skitter
from tests.serving import served

ROOT = Path(__file__).parents[2]
COMMANDS = commands_of(_parser())


# -- help


def test_skitter_alone_prints_help_and_is_no_success() -> None:
    done = skitter()
    assert done.returncode == 2
    assert done.stderr == ""
    assert done.stdout == said(skitter("--help"))


def modules_after(source: str) -> set[str]:
    source = f"import sys\ntry: {source}\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", source], env=ENVIRON, capture_output=True, text=True)
    return set(done.stderr.split())


def test_help_loads_nothing_that_a_crawl_needs() -> None:
    loaded = modules_after("from skitter.cli import main; main(['--help'])")
    assert loaded & {"difflib", "dataclasses", "asyncio"} == set()
    top = {name.partition(".")[0] for name in loaded}
    assert {name for name in top - sys.stdlib_module_names if not name.startswith("_")} == {"skitter"}


def test_help_costs_little_more_than_the_interpreter_itself() -> None:
    """By the modules that are loaded, which no busy machine changes: half as many again as any program needs."""
    usual = modules_after("import argparse, pathlib, json, shlex, threading")
    assert len(modules_after("from skitter.cli import main; main(['--help'])")) < 1.6 * len(usual)


@pytest.mark.parametrize("name", [one.name for one in COMMANDS])
def test_every_command_refuses_a_flag_that_is_only_begun(name: str) -> None:
    longest = max((flag.names[-1] for one in COMMANDS if one.name == name for flag in one.flags), key=len)
    line = complaint(skitter(name, longest[:-1]), 2)
    assert (
        f"unrecognized arguments: {longest[:-1]}; did you mean {longest}?; see skitter {name} --help" in line
    )


# -- the manual page and completion


def test_the_manual_page_in_docs_is_what_the_parser_says() -> None:
    assert (ROOT / "docs" / "skitter.1").read_text() == said(skitter("man")), "run make docs"


@pytest.mark.skipif(not shutil.which("man"), reason="there is no man here")
def test_the_manual_page_is_read_without_a_complaint() -> None:
    environ = {**os.environ, "MANROFFOPT": "-ww", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    words = ["man", "--warnings", "-l", str(ROOT / "docs" / "skitter.1")]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n   {one.name}\n" in done.stdout for one in COMMANDS)
    assert "--allow-private" in done.stdout


COMPLETED = [
    ("skitter cr", {"crawl"}),
    ("skitter crawl --max-", {"--max-pages", "--max-depth", "--max-age"}),
    ("skitter crawl --scope ", {"host", "domain", "prefix", "any"}),
    ("skitter serve x --sco", {"--scope"}),
    ("skitter hosts d --standing b", {"backing_off", "blocked"}),
    ("skitter export --to w", {"wacz", "warc"}),
    ("skitter completion ", {"bash", "zsh", "fish"}),
]
_IN_BASH = """\
source "$1"
COMP_LINE=$2
read -ra COMP_WORDS <<< "$2"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_skitter
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_bash_completes_commands_flags_and_values(tmp_path: Path, line: str, words: set[str]) -> None:
    assert completed(["bash", "-c", _IN_BASH, "bash"], "bash", tmp_path / "skitter", line) == words


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish here")
@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_fish_completes_commands_flags_and_values(tmp_path: Path, line: str, words: set[str]) -> None:
    asked = 'source $argv[1]; complete -C "$argv[2]"'
    assert completed(["fish", "-N", "-c", asked], "fish", tmp_path / "skitter.fish", line) == words


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh here")
def test_zsh_takes_the_script_as_a_completion_function(tmp_path: Path) -> None:
    script = tmp_path / "_skitter"
    script.write_text(said(skitter("completion", "zsh")))
    assert script.read_text().startswith("#compdef skitter\n")
    loads = "autoload -Uz compinit; compinit -u -D; source $1; print ${_comps[skitter]}"
    done = subprocess.run(
        ["zsh", "-f", "-c", loads, "zsh", str(script)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("_skitter\n", "")


def completed(shell: list[str], name: str, script: Path, line: str) -> set[str]:
    script.write_text(said(skitter("completion", name)))
    done = subprocess.run([*shell, str(script), line], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return {word.split("\t")[0] for word in done.stdout.splitlines()}


# -- serve


def test_serve_takes_the_flags_of_crawl_and_keeps_them(tmp_path: Path) -> None:
    flags = ("--scope", "domain", "--exclude", "/x/", "--delay", "3", "--max-pages", "7", "--allow-private")
    with served(tmp_path / "c", *flags):
        pass
    shown = read_json("settings", "--in", tmp_path / "c")
    assert [
        shown[section][key]["value"]
        for section, key in (
            ("crawl", "scope"),
            ("crawl", "exclude"),
            ("politeness", "delay"),
            ("crawl", "max_pages"),
            ("fetch", "allow_private"),
        )
    ] == ["domain", ["/x/"], 3.0, 7, True]


def test_serve_does_not_make_a_crawl_of_a_misspelt_name(tmp_path: Path) -> None:
    line = complaint(skitter("serve", tmp_path / "exmaple"), 2)
    assert "exmaple holds no crawl: check its name, or begin one there with --new or with seeds" in line
    assert list(tmp_path.iterdir()) == []


# -- make


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make here")
def test_make_crawl_takes_urls_and_folders_as_they_are_written(tmp_path: Path) -> None:
    ready, into = tmp_path / "ready", tmp_path / "my crawl's $folder"
    ready.touch()
    with serving_site({"/?x=1&y=$2": b"one", "/it's": b"two"}) as server:
        words = [
            "make",
            "crawl",
            f"SEEDS={server.url}/?x=1&y=$2 {server.url}/it's",
            f"INTO={into}",
            "FLAGS=--allow-private --delay 0",
            f"READY={ready}",
            f"BIN={Path(sys.executable).parent}",
        ]
        done = subprocess.run(words, cwd=ROOT, env=ENVIRON, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert {one.raw.split()[1] for one in server.requests} >= {b"/?x=1&y=$2", b"/it's"}
    assert read_json("stats", into)["pages"] == 2
