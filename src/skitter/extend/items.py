"""From what an extractor yields to a row of the table `items`: type, key and JSON.

Takes dicts, dataclasses, msgspec structs and, where it is installed, pydantic models. What says which types its
fields have is checked against them: a price that was not found is a fault now, not a null in a report next month.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any

import msgspec

MOST_ITEMS = 10_000
MOST_BYTES = 4_000_000
_encode = msgspec.json.Encoder().encode


class WrongItem(Exception):
    """An extractor yielded what is no item, or one that is not of its own type."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """An item as it is kept. `key` is None where nothing says what makes two of them one."""

    type: str
    key: str | None
    json: str


def row_of(item: object, name: str, key: tuple[str, ...] = ()) -> Row:
    """`name` is the type of dicts that do not say theirs (`@type`), `key` their key."""
    if isinstance(item, dict):
        said = item.get("@type")
        kind = said if isinstance(said, str) and said else name
        return Row(kind, _key(item, key), _json(item))
    kind = type(item).__name__
    keys = _names(getattr(type(item), "__key__", key))
    if hasattr(item, "model_dump"):  # pydantic checks its own
        values = item.model_dump(mode="json")
        return Row(kind, _key(values, keys), _json(values))
    if not isinstance(item, msgspec.Struct) and not (
        dataclasses.is_dataclass(item) and not isinstance(item, type)
    ):
        raise WrongItem(
            f"{shown(item)} is no item: yield a dict, a dataclass, a msgspec.Struct or a pydantic model"
        )
    values = msgspec.to_builtins(item, str_keys=True)
    _check(values, type(item))
    return Row(kind, _key(values, keys), _json(values))


def _check(values: object, kind: type) -> None:
    try:
        if _is_checkable(kind):
            msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise WrongItem(f"{kind.__name__}: {error}") from error


@lru_cache(maxsize=1000)
def _is_checkable(kind: type) -> bool:
    """Not where a field has a type that only the user's own code understands."""
    try:
        msgspec.json.Decoder(kind)
    except (TypeError, NameError, AttributeError):
        return False
    return True


def _names(given: object) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)  # type: ignore[arg-type]


def _key(values: Any, names: tuple[str, ...]) -> str | None:
    if not names:
        return None
    parts = [values.get(name) for name in names]
    if all(part is None for part in parts):
        return None
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else _json(parts)


def _json(value: object) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return _encode(_storable(value)).decode()
    except (TypeError, msgspec.MsgspecError) as error:
        raise WrongItem(f"cannot be written as JSON: {error}") from error


def _storable(value: Any) -> Any:
    """Without lone surrogates, which no encoding can write."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(name): _storable(each) for name, each in value.items()}
    return [*map(_storable, value)] if isinstance(value, list | tuple | set) else value


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
