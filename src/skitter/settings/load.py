"""From TOML files, environment and flags to one `Settings`, and to where each value came from.

Runs once, before anything of a crawl exists. Layers are applied in order and the later one wins: defaults,
the crawl folder's own `crawl.toml`, `--config FILE`, `SKITTER_<SECTION>_<KEY>`, flags. A key that is not a
setting, or a value a setting cannot take, stops the start with one line that names the place; nothing is
ever ignored, guessed or corrected in silence.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from skitter.errors import SettingsError
from skitter.model import HostPolicy
from skitter.settings import Settings
from skitter.settings.check import complaint_about, did_you_mean
from skitter.settings.host_identity import IDENTITY_FIELDS, HostIdentity, SecretSource, as_told, converted
from skitter.settings.plugins import ExtractRule
from skitter.settings.rules import SeedRule
from skitter.settings.toml_text import key_lines, shown, toml_key, toml_value

LIST_THEM = "(`skitter settings` lists them all)"
DEFAULT = "default"
_Path = tuple[str, ...]


class Flag(NamedTuple):
    """A value given on the command line, and the flag that gave it."""

    value: object
    name: str


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force, and per `section.key` (or `hosts.HOST.key`) where the value came from."""

    settings: Settings
    origins: dict[str, str]


_Rule = TypeVar("_Rule", ExtractRule, SeedRule)


class _Given(NamedTuple):
    path: _Path
    value: object
    where: str
    is_text: bool = False


# Sections of tables with names of their own.
TABLES = ("hosts", "extract", "seeds")
_NO_SECTIONS = (*TABLES, "identities")  # which are told in the tables of hosts
TYPES: dict[str, type[msgspec.Struct]] = {
    section.name: section.type
    for section in msgspec.structs.fields(Settings)
    if section.name not in _NO_SECTIONS
}
# By the name in TOML, which may be a word that Python keeps for itself, as `with`.
SECTIONS: dict[str, dict[str, FieldInfo]] = {
    name: {field.encode_name: field for field in msgspec.structs.fields(section)}
    for name, section in TYPES.items()
}
HOST_FIELDS: dict[str, FieldInfo] = {field.name: field for field in msgspec.structs.fields(HostPolicy)}
_ALL_HOST_FIELDS = {**HOST_FIELDS, **IDENTITY_FIELDS}


def load(
    *,
    crawl_file: Path | None = None,
    config_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Flag] | None = None,
) -> Loaded:
    """The settings of all layers. `crawl_file` may be missing; `config_file`, if named, must exist."""
    given: list[_Given] = []
    made: dict[str, object] | None = None
    if crawl_file is not None:
        given += _from_file(crawl_file, may_be_missing=True)
        if (crawl_file.parent / "frontier").is_dir():
            if not any(item.path[0] == "keys" for item in given):
                given.append(_Given(("keys", "rules"), 1, f"{crawl_file}, made before [keys]"))
            made = msgspec.structs.asdict(_merge(given).settings.keys)
    if config_file is not None:
        given += _from_file(config_file)
    given += _from_environment(environ or {})
    given += [_from_flag(name, flag) for name, flag in (flags or {}).items()]
    loaded = _merge(given)
    if made is not None:
        _compare_keys(loaded, made)
    return loaded


def _compare_keys(loaded: Loaded, made: dict[str, object]) -> None:
    """The keys of all that a crawl knows were made with these: with others its URLs would be lost or double."""
    for name, before in made.items():
        now = getattr(loaded.settings.keys, name)
        if now != before:
            where = loaded.origins[f"keys.{name}"]
            raise SettingsError(
                f"{where}: [keys] {name} is {shown(now)}, but this crawl was made with {shown(before)}: "
                "leave it so, or begin a new crawl in another folder"
            )


def _merge(given: Iterable[_Given]) -> Loaded:
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    hosts: dict[str, dict[str, Any]] = {}
    identities: dict[str, dict[str, Any]] = {}
    rules: dict[str, ExtractRule] = {}
    seeds: dict[str, SeedRule] = {}
    origins = {f"{section}.{key}": DEFAULT for section, keys in SECTIONS.items() for key in keys}
    for item in given:
        match item.path:
            case ("hosts", host):
                hosts.setdefault(host, {})
            case ("hosts", host, key) if key in IDENTITY_FIELDS:
                identities.setdefault(host, {})[key] = _identity_value(item)
                origins[f"hosts.{host}.{key}"] = item.where
            case ("hosts", host, key):
                hosts.setdefault(host, {})[key] = _value(item)
                origins[f"hosts.{host}.{key}"] = item.where
            case ("extract", name):
                rules[name] = _rule(item, ExtractRule, "plugins")
                origins[f"extract.{name}"] = item.where
            case ("seeds", name):
                seeds[name] = _rule(item, SeedRule, "rules")
                origins[f"seeds.{name}"] = item.where
            case (section, key):
                values[section][_field(item.path, item.where).name] = _value(item)
                origins[f"{section}.{key}"] = item.where
            case _:
                raise AssertionError(item.path)
    built: dict[str, Any] = {name: TYPES[name](**keys) for name, keys in values.items()}
    # a table that says only who we are to a host leaves the operator's policy for it alone
    told = {host: policy for host, policy in hosts.items() if policy or host not in identities}
    policies = {host: HostPolicy(**policy) for host, policy in told.items()}
    known = {host: HostIdentity(**identity) for host, identity in identities.items()}
    settings = Settings(**built, hosts=policies, extract=rules, seeds=seeds, identities=known)
    return Loaded(settings=settings, origins=origins)


# --- one value -------------------------------------------------------------------------------------------


def _value(item: _Given) -> object:
    field = _field(item.path, item.where)
    value = _split(item.value, field) if item.is_text else item.value
    try:
        converted: object = msgspec.convert(value, type=field.type, strict=not item.is_text)
    except msgspec.ValidationError:
        raise _wrong(item, f"is {shown(item.value)} and must be {wanted(field)}") from None
    complaint = complaint_about(item.path, converted)
    if complaint:
        raise _wrong(item, complaint)
    return converted


def _identity_value(item: _Given) -> object:
    found, complaint = converted(item.path[-1], item.value)
    if complaint:
        raise _wrong(item, f"{complaint} (docs/identities.md has examples)")
    return found


def _rule(item: _Given, of: type[_Rule], guide: str) -> _Rule:
    try:
        return msgspec.convert(item.value, of)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at ")
        at = place.strip("`").removeprefix("$.")
        raise SettingsError(
            f"{item.where}: [{item.path[0]}.{toml_key(item.path[-1])}] {at + ': ' if at else ''}{said}; "
            f"docs/{guide}.md has examples"
        ) from None


def _split(value: object, field: FieldInfo) -> object:
    """`a, b` as a list where one is wanted; text for `msgspec` to read otherwise."""
    if isinstance(value, str) and isinstance(_bare(field), inspect.VarTupleType):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


# --- names, and how they are reported ---------------------------------------------------------------------


def _field(path: _Path, where: str) -> FieldInfo:
    fields = _ALL_HOST_FIELDS if path[0] == "hosts" else SECTIONS[path[0]]
    if path[-1] not in fields:
        hint = did_you_mean(path[-1], fields) or _elsewhere(path[-1])
        raise SettingsError(f"{where}: {_named(path)} is not a setting{hint} {LIST_THEM}")
    return fields[path[-1]]


def _unknown_section(name: str, where: str, value: object) -> SettingsError:
    hint = did_you_mean(name, [*SECTIONS, *TABLES])
    if isinstance(value, dict):
        return SettingsError(f"{where}: [{toml_key(name)}] is not a section{hint} {LIST_THEM}")
    hint = _elsewhere(name) or hint
    return SettingsError(f"{where}: {toml_key(name)} is not in a section{hint} {LIST_THEM}")


def _elsewhere(key: str) -> str:
    sections = [section for section, keys in SECTIONS.items() if key in keys]
    return f"; did you mean [{sections[0]}] {key}?" if sections else ""


def _wrong(item: _Given, complaint: str) -> SettingsError:
    return SettingsError(f"{item.where}: {_named(item.path)} {complaint}")


def _named(path: _Path) -> str:
    return f"[{'.'.join(map(toml_key, path[:-1]))}] {toml_key(path[-1])}"


def _bare(field: FieldInfo) -> inspect.Type:
    found = inspect.type_info(field.type)
    while isinstance(found, inspect.Metadata | inspect.UnionType):
        found = found.type if isinstance(found, inspect.Metadata) else found.types[0]
    return found


def wanted(field: FieldInfo) -> str:
    """What a setting takes, in words: `a number, 0 or more`."""
    found = _bare(field)
    match found:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number" + _bounds(found)
        case inspect.FloatType():
            return "a number" + _bounds(found)
        case inspect.LiteralType(values=values):
            return " or ".join([", ".join(map(str, values[:-1])), str(values[-1])])
        case inspect.VarTupleType(item_type=inspect.StrType()):
            return "a list of texts"
        case inspect.VarTupleType():
            return "a list of numbers"
        case inspect.DictType():
            return "a table"
        case inspect.StructType(cls=found_type):
            return "a secret" if found_type is SecretSource else "a table"
    return "text"


def _bounds(found: inspect.IntType | inspect.FloatType) -> str:
    if found.ge is not None and found.le is not None:
        return f", {found.ge:g} to {found.le:g}"
    if found.gt is not None:
        return f" above {found.gt:g}"
    return f", {found.ge:g} or more" if found.ge is not None else ""


# --- the layers -------------------------------------------------------------------------------------------


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Given]:
    for name, text in sorted(environ.items()):
        prefix, _, rest = name.partition("_")
        section, separator, key = rest.lower().partition("_")
        if prefix != "SKITTER" or not separator:
            continue
        if section in TABLES:
            raise SettingsError(
                f'{name}: {section} are not set by environment; use a [{section}."..."] table'
            )
        if section in SECTIONS:
            yield _Given((section, key), text, name, True)
        elif hint := _near_section(section):
            raise SettingsError(f"{name}: {section} is not a section; did you mean {hint}? {LIST_THEM}")


def _near_section(section: str) -> str:
    # Strict, because a SKITTER_ variable of an unknown section may well be somebody else's.
    from difflib import get_close_matches

    return next(iter(get_close_matches(section, SECTIONS, n=1, cutoff=0.88)), "")


def _from_flag(name: str, flag: Flag) -> _Given:
    section, _, key = name.partition(".")
    host, _, host_key = key.rpartition(".")
    path = (section, host, host_key) if section == "hosts" else (section, key)
    return _Given(path, flag.value, flag.name, True)


def _from_file(path: Path, may_be_missing: bool = False) -> Iterator[_Given]:
    text = _read(path, may_be_missing)
    tables = _parse(path, text)
    lines = key_lines(text)

    def where(*at: str) -> str:
        return f"{path} line {lines[at]}" if at in lines else str(path)

    for section, keys in tables.items():
        if section not in SECTIONS and section not in TABLES:
            raise _unknown_section(section, where(section), keys)
        if not isinstance(keys, dict):
            raise SettingsError(
                f"{where(section)}: {section} must be a table; write [{section}] above its keys"
            )
        for key, value in keys.items():
            at = where(section, key)
            if section == "hosts":
                yield from _host_table(key, value, at, where)
            else:
                yield _Given((section, key), value, at)


def _host_table(host: str, policy: object, at: str, where: Callable[..., str]) -> Iterator[_Given]:
    if not isinstance(policy, dict):
        hint = 'write [hosts."http://example.org"] above its keys'
        raise SettingsError(f"{at}: [hosts] {toml_key(host)} must be a table; {hint}")
    yield _Given(("hosts", host), policy, at)
    for key, value in policy.items():
        yield _Given(("hosts", host, key), value, where("hosts", host, key))


def _read(path: Path, may_be_missing: bool) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(f"{path} line {line}: not UTF-8; save the file in UTF-8") from None
    except OSError as error:
        if may_be_missing and isinstance(error, FileNotFoundError):
            return ""
        raise SettingsError(f"{path}: cannot be read: {error.strerror}; check the path") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+)", place)
        line = found[1] if found else text.count("\n") + 1
        raise SettingsError(f"{path} line {line}: not valid TOML: {reason}; correct that line") from None
    except (RecursionError, ValueError) as error:
        raise SettingsError(f"{path}: cannot be read as TOML: {error}; simplify the file") from None


# --- the settings as text ---------------------------------------------------------------------------------

_HEADER = """\
# Settings of this crawl; what is absent has its default. `skitter settings` lists every setting, its value
# and where it came from.
"""


def dump_toml(settings: Settings, only_changed: bool = True) -> str:
    """A `crawl.toml` that loads back to the same settings."""
    parts = [_HEADER]
    for section, fields in SECTIONS.items():
        # whole: what is absent there is not the default, but older than the section
        some = only_changed and section != "keys"
        lines = list(_assignments(getattr(settings, section), fields, some))
        if lines:
            parts.append("\n".join([f"[{section}]", *lines]) + "\n")
    for host in dict.fromkeys((*settings.hosts, *settings.identities)):
        lines = list(_assignments(settings.hosts.get(host, HostPolicy()), HOST_FIELDS, only_changed))
        lines += _identity_lines(settings.identities.get(host, HostIdentity()))
        parts.append("\n".join([f"[hosts.{toml_key(host)}]", *lines]) + "\n")
    for table, name, rule in _named_rules(settings):
        told = msgspec.to_builtins(rule)
        lines = [f"{key} = {toml_value(value)}" for key, value in told.items() if value not in ("", [], ())]
        parts.append("\n".join([f"[{table}.{toml_key(name)}]", *lines]) + "\n")
    return "\n".join(parts)


def _assignments(section: msgspec.Struct, fields: dict[str, FieldInfo], only_changed: bool) -> Iterator[str]:
    for key, field in fields.items():
        value = getattr(section, field.name)
        if value is not None and not (only_changed and value == field.default):
            yield f"{key} = {toml_value(value)}"


def _identity_lines(identity: HostIdentity) -> Iterator[str]:
    told = as_told(identity)
    assert isinstance(told, dict)
    for key, value in told.items():
        yield f"{key} = {toml_value(value)}"


def _rows(loaded: Loaded) -> Iterator[tuple[_Path, object, str]]:
    settings, origins = loaded.settings, loaded.origins
    for section, fields in SECTIONS.items():
        for key, field in fields.items():
            yield (section, key), getattr(getattr(settings, section), field.name), origins[f"{section}.{key}"]
    for host, policy in settings.hosts.items():
        for key in HOST_FIELDS:
            if origin := origins.get(f"hosts.{host}.{key}"):
                yield ("hosts", host, key), getattr(policy, key), origin
    for host, identity in settings.identities.items():
        for key in IDENTITY_FIELDS:
            if origin := origins.get(f"hosts.{host}.{key}"):
                yield ("hosts", host, key), as_told(getattr(identity, key)), origin
    for table, name, rule in _named_rules(settings):
        yield (table, name), msgspec.to_builtins(rule), origins.get(f"{table}.{name}", DEFAULT)


def _named_rules(settings: Settings) -> Iterator[tuple[str, str, ExtractRule | SeedRule]]:
    yield from (("extract", name, rule) for name, rule in settings.extract.items())
    yield from (("seeds", name, rule) for name, rule in settings.seeds.items())


def render(loaded: Loaded) -> str:
    """An aligned table for people; a long value is cut, `as_json` has it whole."""
    table = [("section", "key", "value", "from")]
    for path, value, origin in _rows(loaded):
        table.append((".".join(map(toml_key, path[:-1])), path[-1], shown(value), origin))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "".join(line.rstrip() + "\n" for line in lines)


def as_json(loaded: Loaded) -> str:
    """`{"section": {"key": {"value": ..., "from": ...}}}`, hosts as sections named `hosts.HOST`."""
    tree: dict[str, dict[str, dict[str, object]]] = {}
    for path, value, origin in _rows(loaded):
        tree.setdefault(".".join(path[:-1]), {})[path[-1]] = {"value": value, "from": origin}
    return msgspec.json.format(msgspec.json.encode(tree), indent=2).decode() + "\n"
