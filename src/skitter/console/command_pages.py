"""A page of the documentation for each command, in Markdown, from the same list as the help and the manual page.

`make docs` writes them to docs/commands, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator

from skitter.console.command_line import Command, Flag

_GENERATED = "<!-- Written by `skitter man --pages`; change the code, not this page. -->\n"


def command_pages(commands: tuple[Command, ...]) -> dict[str, str]:
    """Pages by the names of their files."""
    pages = {f"{command.name}.md": _GENERATED + "\n".join(_page(command)) + "\n" for command in commands}
    rows = [
        f"| [`skitter {command.name}`]({command.name}.md) | {_cell(command.help)} |" for command in commands
    ]
    pages["README.md"] = "\n".join(
        (
            _GENERATED + "# Commands",
            "",
            "Most take `--json` for programs. All work while a crawl runs.",
            "",
            "| command | what it does |",
            "|---|---|",
            *rows,
            "",
        )
    )
    return pages


def _page(command: Command) -> Iterator[str]:
    yield f"# skitter {command.name}"
    yield ""
    yield command.help[0].upper() + command.help[1:] + "."
    yield ""
    yield f"    skitter {command.usage}"
    yield ""
    if command.arguments:
        yield "| argument | meaning |"
        yield "|---|---|"
        yield from (f"| `{one.name}` | {_cell(one.help)} |" for one in command.arguments)
        yield ""
    flags = [flag for flag in command.flags if "--help" not in flag.names]
    if flags:
        yield "| flag | meaning |"
        yield "|---|---|"
        yield from map(_flag, flags)


def _flag(flag: Flag) -> str:
    names = ", ".join(f"`{name}`" for name in flag.names)
    value = f" `{flag.metavar}`" if flag.metavar else ""
    return f"| {names}{_cell(value)} | {_cell(flag.help)} |"


def _cell(text: str) -> str:
    return text.replace("%%", "%").replace("|", "\\|")
