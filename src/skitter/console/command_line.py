"""The command line as data: commands, flags and arguments, read off the parser.

What completion scripts and the man page are written from, so that neither can differ from what is parsed. Prints
nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple


class Flag(NamedTuple):
    """`metavar` is empty for a flag without a value; `choices` are the values that it takes, if they are few."""

    names: tuple[str, ...]
    metavar: str
    choices: tuple[str, ...]
    is_path: bool
    help: str


class Argument(NamedTuple):
    name: str
    choices: tuple[str, ...]
    help: str


class Command(NamedTuple):
    """A command; `usage` is how it is called."""

    name: str
    help: str
    usage: str
    flags: tuple[Flag, ...]
    arguments: tuple[Argument, ...]


def commands_of(parser: argparse.ArgumentParser) -> tuple[Command, ...]:
    found = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    texts = {action.dest: action.help or "" for action in found._choices_actions}
    return tuple(_command(name, texts[name], one) for name, one in found.choices.items() if name in texts)


def _command(name: str, text: str, parser: argparse.ArgumentParser) -> Command:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return Command(
        name=name,
        help=text,
        usage=_usage(name, shown),
        flags=tuple(flag_of(action) for action in shown if action.option_strings),
        arguments=tuple(_argument(action) for action in shown if not action.option_strings),
    )


def flag_of(action: argparse.Action) -> Flag:
    metavar = "" if action.nargs == 0 else _metavar(action)
    return Flag(
        names=tuple(action.option_strings),
        metavar=metavar,
        choices=_choices(action, metavar),
        is_path=action.type is Path,
        help=action.help or "",
    )


def _argument(action: argparse.Action) -> Argument:
    return Argument(name=_metavar(action), choices=_choices(action, ""), help=action.help or "")


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _choices(action: argparse.Action, metavar: str) -> tuple[str, ...]:
    words = action.choices or (metavar.split("|") if "|" in metavar else ())
    return tuple(map(str, words))


def _usage(name: str, actions: list[argparse.Action]) -> str:
    words = [name, *(_in_usage(action) for action in actions if not action.option_strings)]
    needed = [flag_of(action) for action in actions if action.option_strings and action.required]
    return " ".join([*words, *(f"{flag.names[-1]} {flag.metavar}" for flag in needed), "[FLAG ...]"])


def _in_usage(action: argparse.Action) -> str:
    return f"[{_metavar(action)} ...]" if action.nargs == "*" else _metavar(action)
