"""The commands for who types the others: `completion` and `man`. Arguments only; the texts are made late, from
the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from skitter import __version__
from skitter.console.display.output import write

SHELLS = ("bash", "zsh", "fish")
_HOW_TO = """\
put it in place:
  bash   skitter completion bash > ~/.local/share/bash-completion/completions/skitter
  zsh    skitter completion zsh > ~/.zfunc/_skitter      with ~/.zfunc in fpath, before compinit
  fish   skitter completion fish > ~/.config/fish/completions/skitter.fish
"""
Command = Callable[..., argparse.ArgumentParser]


def add_shell(commands: Any, command: Command, parser: argparse.ArgumentParser, examples: str) -> None:
    completing = command(
        commands,
        "completion",
        "print what a shell needs to complete skitter's commands and flags",
        partial(_completion, parser),
        has_json=False,
        epilog=_HOW_TO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completing.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    manual = command(
        commands,
        "man",
        "print the manual page; read it with: skitter man | man -l -",
        partial(_man, parser, examples),
        has_json=False,
    )
    manual.add_argument(
        "--pages", type=Path, metavar="DIR", help="write a page for each command to DIR instead, in Markdown"
    )


def _completion(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    from skitter.console.command_line import commands_of
    from skitter.console.completion import completion

    write(completion(arguments.shell, commands_of(parser)))
    return 0


def _man(parser: argparse.ArgumentParser, examples: str, arguments: argparse.Namespace) -> int:
    from skitter.console.command_line import commands_of

    if arguments.pages is not None:
        return _write_pages(parser, arguments.pages)
    from skitter.console.man_page import man_page

    write(man_page(commands_of(parser), parser.description or "", examples, __version__))
    return 0


def _write_pages(parser: argparse.ArgumentParser, folder: Path) -> int:
    from skitter.console.command_line import commands_of
    from skitter.console.command_pages import command_pages

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in command_pages(commands_of(parser)).items():
        (folder / name).write_text(text)
    return 0
