"""Standard output, and through to its reader, while a failure can still be told in one line.

Under every command that prints more than a line. Text from the web reaches a terminal only without control
characters; a file or a pipe gets the bytes as they are.
"""

from __future__ import annotations

import os
import re
import sys

from skitter.errors import SkitterError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


class ReaderGone(Exception):
    """Whoever read our output has left; what it wanted it has."""


def write(text: str) -> None:
    if sys.stdout is None:
        return
    try:
        # a title may hold what the terminal's encoding has not
        sys.stdout.write(text.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding))
        sys.stdout.flush()
    except OSError as error:
        _gone(error)


def write_body(body: bytes) -> None:
    """A page's bytes as they are, or what a terminal can show of them."""
    if sys.stdout is None:
        return
    if sys.stdout.isatty():
        write(_CONTROL.sub("?", body.decode("utf-8", "replace")) + "\n")
        return
    try:
        sys.stdout.buffer.write(body)
        sys.stdout.flush()
    except OSError as error:
        _gone(error)


def write_lines(lines: list[str]) -> None:
    """As `write`, but says with `ReaderGone` when there is no use in going on."""
    if sys.stdout is None:
        return
    try:
        text = "".join(f"{line}\n" for line in lines)
        sys.stdout.write(text.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding))
        sys.stdout.flush()
    except OSError as error:
        _gone(error)
        raise ReaderGone from error


def _gone(error: OSError) -> None:
    # else the interpreter would try once more at its end, and end with a traceback
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        raise SkitterError(f"cannot write the output: {error.strerror}") from error
