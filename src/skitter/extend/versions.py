"""Whether two machines run the same users' code: the versions of what `plugins.with` names, compared.

Noted in the settings when a crawl starts, and checked by every worker that joins it, wherever it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from skitter.errors import UsageError
from skitter.extend.extractor import Described
from skitter.extend.process import ExtractorProcess
from skitter.parse.readers import STANDARD
from skitter.settings.plugins import ExtractRule, PluginSettings


def versions_of(described: Sequence[Described]) -> tuple[str, ...]:
    """`NAME@HASH` of each extractor of a plugin."""
    found = (f"{each.name}@{each.version}" for each in described if not each.plugin.startswith("["))
    return tuple(sorted(found))


def types_of(described: Sequence[Described]) -> tuple[str, ...]:
    """Media types that are fetched only because an extractor sees them."""
    named = {name for each in described for name in each.hook.types if name != "*"}
    return tuple(sorted(name for name in named if not STANDARD.accepts(name)))


def check_versions(settings: PluginSettings, described: Sequence[Described]) -> None:
    """Against what the crawl was started with, where that is known."""
    if not settings.versions:
        return
    here, wanted = versions_of(described), settings.versions
    if here != wanted:
        differing = sorted({*here} ^ {*wanted})
        names = ", ".join(dict.fromkeys(each.partition("@")[0] for each in differing))
        raise UsageError(
            f"plugins differ from those of the crawl ({names}): copy the same {', '.join(settings.with_)} here"
        )


async def with_versions(settings: PluginSettings, rules: Mapping[str, ExtractRule]) -> PluginSettings:
    """The settings with the versions and media types that are here now. Raises where something cannot be
    loaded."""
    if not settings.with_:
        return replace(settings, versions=(), types=())
    process = ExtractorProcess(settings, rules)
    try:
        described = await process.start()
        return replace(settings, versions=versions_of(described), types=types_of(described))
    finally:
        await process.close()
