"""TOML as text: on which line a key stands, and how a value is written.

`tomllib` gives values without their lines and cannot write; these two are the rest of what the settings
need. Only texts that `tomllib` has accepted come here, so nothing is checked twice.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

KeyPath = tuple[str, ...]
DEEPEST = 3


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


_END = _Token("mark", "", 0)

_TOKEN = re.compile(
    r"""
      (?P<text>\"\"\"(?:\\.|[^\\])*?\"{3,5} | '''.*?'{3,5} | "(?:\\.|[^"\\])*" | '[^']*')
    | (?P<skip>[ \t\r]+ | \#[^\n]*)
    | (?P<mark>[\[\]{}=,.\n])
    | (?P<bare>[^\s\[\]{}=,.\#"']+)
    """,
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line on which each key, and each table on the way to it, is named first; `hosts.HOST.key` is the
    deepest that there is."""
    lines: dict[KeyPath, int] = {}
    for path, line in _Scan(text).document():
        for depth in range(1, min(len(path), DEEPEST) + 1):
            lines.setdefault(path[:depth], line)
    return lines


class _Scan:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def document(self) -> Iterator[tuple[KeyPath, int]]:
        table: KeyPath = ()
        while self._skip("\n").text:
            if self._next_is("["):
                self._skip("[")
                table, line = self._key("]")
                self._skip("]")
                yield table, line
            else:
                key, line = self._key("=")
                yield table + key, line
                yield from self._value(table + key)

    def _value(self, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        if self._next_is("{"):
            self._at += 1
            while self._skip(",\n").text not in ("}", ""):
                key, line = self._key("=")
                yield path + key, line
                yield from self._value(path + key)
            self._at += 1
        elif self._next_is("["):
            self._at += 1
            while self._skip(",\n").text not in ("]", ""):
                yield from self._value(path)
            self._at += 1
        else:
            while self._peek().text not in ("\n", ",", "]", "}", ""):
                self._at += 1

    def _key(self, end: str) -> tuple[KeyPath, int]:
        line, parts = self._peek().line, []
        while not self._next_is(end) and self._peek() is not _END:
            token = self._peek()
            if token.kind != "mark":
                parts.append(_decoded(token))
            self._at += 1
        self._at += 1
        return tuple(parts), line

    def _peek(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _next_is(self, mark: str) -> bool:
        token = self._peek()
        return token.kind == "mark" and token.text == mark

    def _skip(self, marks: str) -> _Token:
        while (token := self._peek()).kind == "mark" and token.text and token.text in marks:
            self._at += 1
        return token


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "skip":
            yield _Token(str(found.lastgroup), found[0], line)
        line += found[0].count("\n")


def _decoded(token: _Token) -> str:
    if token.kind == "bare":
        return token.text
    return str(tomllib.loads(f"key = {token.text}")["key"])


def toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def toml_value(value: object) -> str:
    """A setting's value as TOML, on one line and without a character that a terminal would act on."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            pairs = (f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case int() if value.bit_length() > 10_000:
            return f"{value:#x}"  # str() refuses an int of more than 4,300 digits
    return repr(value)


def shown(value: object) -> str:
    """A value as it would be written, on one line and not too long."""
    text = toml_value(value) if isinstance(value, str | bool | int | float | list | tuple) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
