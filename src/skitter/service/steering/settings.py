"""Settings that change while a crawl runs: which they are, who takes them over, and where they are kept.

Few can: those that the running parts read anew for each lease, request or look. For the others the crawl has to
be started again, and the answer says so. A change is also written to the crawl's `crawl.toml`, as a flag is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from skitter.errors import SettingsError
from skitter.folder import CrawlFolder
from skitter.service.http.problem import Problem, Trouble
from skitter.service.steering.order import Order, Steered
from skitter.settings import Settings
from skitter.settings.load import SECTIONS, Flag, dump_toml, load

Take = Callable[[Settings], None]
"""Tells a running part the settings in force from now on; it takes over what it can."""
Value = int | float | str | bool
_MOST = 50


class SettingsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By name: `{"crawl.max_pages": 500}`. All or none of them are changed."""

    settings: Annotated[
        dict[Annotated[str, Meta(min_length=3, max_length=60)], Value], Meta(min_length=1, max_length=_MOST)
    ]


class SettingsNow(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force by section and name; `can_change` names those that need no restart."""

    settings: dict[str, dict[str, Any]]
    can_change: list[str]


class SettingsInForce:
    """`takers` says of each setting that can change who has to be told."""

    def __init__(self, settings: Settings, folder: Path, takers: Callable[[], Mapping[str, Take]]) -> None:
        self.now = settings
        self._folder = folder
        self._takers = takers

    def told(self) -> SettingsNow:
        sections = msgspec.to_builtins(self.now)
        return SettingsNow(settings=sections, can_change=sorted(self._takers()))

    def change(self, asked: SettingsAsked) -> SettingsNow:
        changed = _changed(self.now, asked.settings)
        takers = self._takers()
        if fixed := sorted(asked.settings.keys() - takers.keys()):
            raise Problem(
                Trouble.NEEDS_RESTART,
                f"{', '.join(fixed)} cannot change while this crawl runs: stop it, and start it again with the "
                f"new value. Without a restart: {', '.join(sorted(takers))}",
            )
        CrawlFolder(self._folder).write_settings(dump_toml(changed))
        self.now = changed
        for take in dict.fromkeys(takers[name] for name in asked.settings):
            take(changed)
        return self.told()


def _changed(settings: Settings, changes: Mapping[str, Value]) -> Settings:
    """Checked by the rules that hold for flags."""
    for name in changes:
        section, dot, key = name.partition(".")
        if not dot or section == "hosts" or key not in SECTIONS.get(section, {}):
            raise Problem(
                Trouble.UNKNOWN_SETTING,
                f"{name!r} is not a setting: write SECTION.NAME, such as crawl.max_pages (skitter settings lists "
                "them; skitter policy is for one host)",
            )
    try:
        loaded = load(flags={name: Flag(_text(value), name) for name, value in changes.items()}).settings
    except SettingsError as error:
        raise Problem(Trouble.BAD_SETTING, str(error)) from error
    for name in changes:
        section, _, key = name.partition(".")
        part = msgspec.structs.replace(
            getattr(settings, section), **{key: getattr(getattr(loaded, section), key)}
        )
        settings = msgspec.structs.replace(settings, **{section: part})
    return settings


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def write_settings(crawl: Steered, asked: SettingsAsked) -> SettingsNow:
    """For a crawl that nobody runs: the next run goes by them, whichever they are but [keys]."""
    if fixed := [name for name in asked.settings if name.startswith("keys.")]:
        raise Problem(
            Trouble.BAD_SETTING, f"{fixed[0]} is fixed when a crawl is made: begin another in a new folder"
        )
    changed = _changed(crawl.settings, asked.settings)
    CrawlFolder(crawl.folder).write_settings(dump_toml(changed))
    return SettingsNow(settings=msgspec.to_builtins(changed), can_change=[])


def settings_order(asked: SettingsAsked) -> Order[SettingsNow]:
    return Order(
        method="PATCH",
        path="/v1/settings",
        body=asked,
        answer=SettingsNow,
        act=lambda crawl: write_settings(crawl, asked),
    )
