"""Cells of CSV that are harmless to whoever opens the file: spreadsheets run formulas, terminals obey escapes.

Under every command that writes CSV. A text of the web that begins as a formula gets an apostrophe before it, as
OWASP advises; control characters are replaced. Numbers and dates stay as they are: they are ours.
"""

from __future__ import annotations

import re

_FORMULA = "=+-@\t\r"
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_CONTROL = re.compile(f"[{_CONTROLS}]")
_INSTEAD = "\ufffd"


def harmless(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = f"'{value}" if value.startswith(tuple(_FORMULA)) else value
    return _CONTROL.sub(_INSTEAD, text)


def harmless_in_sql(column: str) -> str:
    """The same of a column of texts, for DuckDB."""
    name = '"' + column.replace('"', '""') + '"'
    first = f"{name}[1] in ('=', '+', '-', '@', chr(9), chr(13))"
    marked = f"case when {first} then chr(39) || {name} else {name} end"
    return f"regexp_replace({marked}, '[{_CONTROLS}]', '{_INSTEAD}', 'g') as {name}"
