"""`--header "Name: value"`: headers for the hosts of the seeds, as `[hosts."x"] headers` would have them.

A value `env:NAME` or `file:PATH` names a secret. The flag never reaches a host that no seed names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from skitter.errors import UsageError
from skitter.model import Discovered
from skitter.settings.host_identity import HostIdentity, converted
from skitter.settings.load import Loaded


def with_headers(loaded: Loaded, headers: Sequence[str], seeds: Iterable[Discovered]) -> Loaded:
    if not headers:
        return loaded
    hosts = list(dict.fromkeys(seed.host for seed in seeds))
    if not hosts:
        raise UsageError(
            '--header is for the hosts of the seeds: give a seed, or write [hosts."x"] in a file'
        )
    given, complaint = converted("headers", dict(map(_split, headers)))
    if complaint:
        raise UsageError(f"--header {complaint}")
    identities = dict(loaded.settings.identities)
    origins = dict(loaded.origins)
    for host in hosts:
        known = identities.get(host, HostIdentity())
        identities[host] = replace(known, headers={**known.headers, **given})
        origins[f"hosts.{host}.headers"] = "--header"
    return Loaded(settings=replace(loaded.settings, identities=identities), origins=origins)


def _split(header: str) -> tuple[str, str | dict[str, str]]:
    name, colon, value = header.partition(":")
    if not colon or not name.strip():
        raise UsageError('--header is "Name: value"; a secret is "Name: env:VARIABLE" or "Name: file:PATH"')
    value = value.strip()
    for source in ("env", "file"):
        if value.startswith(f"{source}:"):
            return name.strip(), {source: value.partition(":")[2]}
    return name.strip(), value
