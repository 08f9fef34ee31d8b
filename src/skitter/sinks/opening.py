"""From a target's URL to the target. Libraries that only one kind of target needs are loaded with it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from skitter.clock import Clock
from skitter.errors import UsageError
from skitter.extras import need
from skitter.sinks.target import Target, without_secrets

SCHEMES = "postgresql://, kafka://, https://, s3:// (gs://, az://) or file://"
_OBJECTS = ("s3", "gs", "az")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """`note` is where a sink keeps how far it is, if its target cannot."""

    url: str
    crawl: str
    form: str
    note: Path

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    @property
    def shown(self) -> str:
        return without_secrets(self.url)


def url_of(given: str) -> str:
    """`env:NAME` stands for what is in the environment: so that no secret is on the command line."""
    if not given.startswith("env:"):
        return given
    name = given.removeprefix("env:")
    if not os.environ.get(name):
        raise UsageError(f"{name} is not in the environment: set it to the URL of the target")
    return os.environ[name]


def open_target(address: Address, clock: Clock) -> Target:
    match address.scheme:
        case "postgresql" | "postgres":
            from skitter.sinks.targets.postgres import PostgresTarget

            return PostgresTarget(address.url, address.crawl)
        case "kafka":
            need("confluent_kafka")
            from skitter.sinks.targets.kafka import KafkaTarget

            return KafkaTarget(address.url, address.crawl)
        case "https" | "http":
            from skitter.sinks.targets.web import WebTarget

            return WebTarget(address.url, address.crawl, address.note, clock)
        case "file":
            from skitter.sinks.targets.folders import FolderTarget

            return FolderTarget(address.url, address.form)
        case scheme if scheme in _OBJECTS:
            from skitter.sinks.targets.folders import ObjectTarget

            return ObjectTarget(address.url, address.form)
    raise UsageError(f"{address.shown} is no target: write {SCHEMES}")
