"""The parser of the command line: complaints in one line that say what was meant.

Under `cli.py`, which gives it its commands. Flags are taken as they are spelled: an abbreviation that works today
would mean something else when a flag is added. Prints nothing but help.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from skitter.console.display.output import write
from skitter.errors import UsageError

_NEGATIVE_NUMBER = re.compile(r"-[0-9.]")


class Parser(argparse.ArgumentParser):
    """Complains as everything else does: one line, `skitter: ` first, and what to do."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **named})

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = list(sys.argv[1:] if args is None else args)
        # before anything else: with `--ino DIR` argparse would only say that --into is missing
        for before, word in self._flags_in(words):
            if word.partition("=")[0] not in self._option_string_actions:
                self._complain(before, word)
        return super().parse_known_args(words, namespace)

    def _flags_in(self, words: Sequence[str]) -> Iterable[tuple[str, str]]:
        """The words that can only be flags, each with the one before it; those behind a command are for its own
        parser."""
        for before, word in zip(["", *words], words, strict=False):
            if word == "--" or (self._subparsers is not None and word[:1] != "-"):
                return
            if word[:1] == "-" and word != "-" and not _NEGATIVE_NUMBER.match(word):
                yield before, word

    def _complain(self, before: str, word: str) -> NoReturn:
        flag = self._option_string_actions.get(before)
        if flag is not None and flag.nargs != 0 and word[:2] != "--":
            self.error(f"{before} needs a value: write {before}={word} if it begins with a dash")
        name = word.partition("=")[0]
        self.error(f"unrecognized arguments: {name}{near(name, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"{value[:100]!r} is not a command{near(value, action.choices)}")
        name = "/".join(action.option_strings) or action.metavar or action.dest
        choices = ", ".join(map(str, action.choices))
        self.error(f"{name} cannot be {value[:100]!r}: choose from {choices}{near(value, action.choices)}")

    def _print_message(self, message: str, file: object = None) -> None:
        # argparse of Python 3.11.2 (Debian 12) does not forgive a reader that has left, as in `--help | head`
        write(message)


def near(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # needed only on the way out

    # without their dashes, which would make any two flags alike
    names = {name.lstrip("-"): name for name in known}
    close = get_close_matches(word[:100].lstrip("-").lower(), list(names), n=1, cutoff=0.7)
    return f"; did you mean {names[close[0]]}?" if close else ""
