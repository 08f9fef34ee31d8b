"""`skitter man`: the manual page, from the same list as the help and the completion scripts.

`make docs` writes it to docs/skitter.1, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from skitter.console.command_line import Argument, Command, Flag

EXIT_CODES = (
    ("0", "done"),
    ("1", "a fault of skitter's own: the disk, the store"),
    ("2", "the command cannot be carried out as given, or none of a crawl's seeds could be fetched"),
    ("3", "the crawl ended with URLs that wait; run the same command later"),
    ("130", "interrupted"),
)
_FILES = (
    ("DIR/crawl.toml", "the settings in force"),
    ("DIR/archive", "WARC files, their indexes, and Parquet tables"),
    ("DIR/frontier", "URLs, hosts and queues"),
    ("DIR/skitter.log", "what happened, one JSON object a line"),
)


def man_page(commands: tuple[Command, ...], about: str, examples: str, version: str) -> str:
    """`examples` are lines of a command and, behind two spaces or more, what it is for."""
    return "\n".join(
        [
            f'.TH SKITTER 1 "" "skitter {version}" "User Commands"',
            ".SH NAME",
            "skitter \\- a polite and fast web crawler",
            ".SH SYNOPSIS",
            ".B skitter",
            "COMMAND [ARGUMENT ...]",
            ".SH DESCRIPTION",
            _text(about),
            ".SH COMMANDS",
            *(line for command in commands for line in _command(command)),
            ".SH EXIT STATUS",
            *_list(EXIT_CODES),
            ".SH FILES",
            *_list(_FILES),
            ".SH EXAMPLES",
            ".nf",
            *(_text(line.strip()) for line in examples.splitlines()[1:]),
            ".fi",
            "",
        ]
    )


def _command(command: Command) -> Iterator[str]:
    yield f".SS {_text(command.name)}"
    yield _text(command.help[0].upper() + command.help[1:] + ".")
    yield ".PP"
    yield f".B skitter {_text(command.usage)}"
    yield from (line for argument in command.arguments for line in _argument(argument))
    yield from (line for flag in command.flags if "--help" not in flag.names for line in _flag(flag))


def _argument(argument: Argument) -> Iterator[str]:
    yield ".TP"
    yield f".I {_text(argument.name)}"
    yield _text(argument.help) or "what it is about"


def _flag(flag: Flag) -> Iterator[str]:
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in flag.names)
    yield ".TP"
    yield f"{names} \\fI{_text(flag.metavar)}\\fR" if flag.metavar else names
    yield _text(flag.help)


def _list(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, text in rows:
        yield ".TP"
        yield f".B {_text(name)}"
        yield _text(text)


def _text(text: str) -> str:
    """Literal: a dash that can be copied, and no line that begins as a request does."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("%%", "%")
    return "\\&" + text if text[:1] in (".", "'") else text
