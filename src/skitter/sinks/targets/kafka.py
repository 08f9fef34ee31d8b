"""Kafka as a target: a topic for each table, and one for the names of the parts that were delivered.

Rows of a part and its name are one transaction of Kafka, so whoever reads committed messages gets each row once,
whatever was killed. The key of a message is its `row_id`. What a power loss takes back of a crawl stays in Kafka.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from skitter.errors import SkitterError, TargetFailed, TargetRefused, UsageError
from skitter.sinks.reading import Delivery
from skitter.sinks.target import json_rows, without_secrets

CONFIG = "SKITTER_KAFKA_CONFIG"
"""The variable that names a file of settings of librdkafka, `name=value` a line: passwords, certificates."""
_SECONDS = 30.0
# A wrong name or port is said at once.
_FIRST_ANSWER = 10.0
_PARTS = "parts"
_LARGEST = 10_000_000
# What no waiting mends.
_FOR_GOOD = frozenset(
    (
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
    )
)


class KafkaTarget:
    """`kafka://host:9092,host:9092/PREFIX`: topics are PREFIX.pages and so on; `crawl` without a prefix."""

    def __init__(self, url: str, crawl: str) -> None:
        to = urlsplit(url)
        if not to.netloc or "@" in to.netloc:
            raise UsageError(
                f"{without_secrets(url)}: write kafka://HOST:9092/PREFIX, and secrets in {CONFIG}"
            )
        self._shown = without_secrets(url)
        self._prefix = to.path.strip("/") or crawl
        self._crawl = crawl.encode()
        self._known: set[str] = set()
        self._settings: dict[str, Any] = {"bootstrap.servers": to.netloc, "log_level": 0, **_own_settings()}
        self._producer: Any = None
        try:
            self._admin = AdminClient(self._settings)
            self._admin.list_topics(timeout=_FIRST_ANSWER)
            self._make_topic(_PARTS)
            self._producer = Producer(
                {
                    **self._settings,
                    "transactional.id": f"skitter {self._prefix} {crawl}",
                    "message.max.bytes": _LARGEST,
                    "compression.type": "zstd",
                }
            )
            # whoever had this name before can commit no more
            self._producer.init_transactions(_SECONDS)
        except KafkaException as error:
            raise self._fault(error) from error

    def _topic(self, table: str) -> str:
        return f"{self._prefix}.{table}"

    def _make_topic(self, table: str) -> None:
        if table in self._known:
            return
        made = self._admin.create_topics(
            [NewTopic(self._topic(table), num_partitions=1, replication_factor=-1)]
        )
        try:
            made[self._topic(table)].result(_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        self._known.add(table)

    def delivered(self) -> set[str]:
        """The names in the topic of parts, as far as they are committed."""
        consumer = Consumer(
            {
                **self._settings,
                "group.id": f"skitter {self._prefix}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            place = TopicPartition(self._topic(_PARTS), 0, 0)
            consumer.assign([place])
            return set(self._names(consumer))
        except KafkaException as error:
            raise self._fault(error) from error
        finally:
            consumer.close()

    def _names(self, consumer: Any) -> list[str]:
        names: list[str] = []
        while True:
            message = consumer.poll(_SECONDS)
            if message is None:
                raise TargetFailed(f"{self._shown} does not answer")
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    return names
                raise KafkaException(message.error())
            if message.key() == self._crawl:
                names.append(message.value().decode())

    def deliver(self, delivery: Delivery) -> None:
        try:
            self._make_topic(delivery.table)
            self._producer.begin_transaction()
            ids = delivery.rows.column("row_id").to_pylist()
            for ident, row in zip(ids, json_rows(delivery), strict=True):
                self._produce(self._topic(delivery.table), str(ident).encode(), row)
            self._produce(self._topic(_PARTS), self._crawl, delivery.name.encode())
            self._producer.commit_transaction(_SECONDS)
        except KafkaException as error:
            with suppress(KafkaException):
                self._producer.abort_transaction(_SECONDS)
            raise self._fault(error) from error

    def _produce(self, topic: str, key: bytes, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key)
                return
            except BufferError:
                self._producer.poll(1.0)

    def _fault(self, error: KafkaException) -> SkitterError:
        said = error.args[0]
        words = f"{self._shown}: {without_secrets(said.str())}"
        if said.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            words += "; leave the table text out, or raise max.message.bytes of the topic"
        return TargetRefused(words) if said.code() in _FOR_GOOD else TargetFailed(words)

    def close(self) -> None:
        self._producer = None


def _own_settings() -> dict[str, str]:
    path = os.environ.get(CONFIG)
    if not path:
        return {}
    try:
        lines = [line.strip() for line in Path(path).read_text().splitlines()]
    except OSError as error:
        raise UsageError(f"{CONFIG} cannot be read ({error.strerror}): check the path") from None
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError(f"{CONFIG} has a line that is not name=value")
    return {name.strip(): value.strip() for name, _, value in pairs}
