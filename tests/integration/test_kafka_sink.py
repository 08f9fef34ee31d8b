"""Rows in Kafka, each once, through kills of the sink: against a real broker in KRaft mode.

Needs java, and in SKITTER_KAFKA_LIB a folder with the jars of org.apache.kafka:kafka_2.13 and what it depends on,
as `mvn dependency:copy-dependencies` leaves them; skipped without.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import complaint, said, skitter
from tests.integration.test_sinks import PAGES, kill_while_it_sends, sink
from tests.integration.test_sinks import filled as filled  # fixtures
from tests.integration.test_sinks import growing as growing

kafka = pytest.importorskip("confluent_kafka")
LIB = os.environ.get("SKITTER_KAFKA_LIB", "")
_CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    java = shutil.which("java")
    if java is None or not Path(LIB).is_dir() or not LIB:
        pytest.skip("java, or the jars of Kafka in SKITTER_KAFKA_LIB, are missing")
    folder, port = tmp_path_factory.mktemp("kafka"), free_port()
    config = folder / "server.properties"
    config.write_text(_CONFIG.format(folder=folder, port=port, controller=free_port()))
    run = [java, "-Xmx300m", "-cp", f"{LIB}/*"]
    form = ["kafka.tools.StorageTool", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", str(config)]
    subprocess.run([*run, *form], check=True, capture_output=True)
    with (folder / "said").open("wb") as said_there:
        server = subprocess.Popen([*run, "kafka.Kafka", str(config)], stdout=said_there, stderr=said_there)
    where = f"127.0.0.1:{port}"
    try:
        wait_for(where)
        yield where
    finally:
        server.kill()
        server.wait()


def wait_for(where: str) -> None:
    from confluent_kafka.admin import AdminClient

    until = time.monotonic() + 120
    while True:
        try:
            AdminClient({"bootstrap.servers": where, "log_level": 0}).list_topics(timeout=5)
            return
        except kafka.KafkaException:
            assert time.monotonic() < until, "Kafka did not start"


def messages(where: str, topic: str) -> Counter[str]:
    """The committed ones, by key."""
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": where,
            "group.id": "test",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([kafka.TopicPartition(topic, 0, 0)])
    found: Counter[str] = Counter()
    while (message := consumer.poll(60)) is not None and not message.error():
        assert json.loads(message.value())["row_id"] == message.key().decode()
        found[message.key().decode()] += 1
    consumer.close()
    return found


def test_rows_reach_kafka_once_through_kills_of_the_sink(filled: Path, broker: str) -> None:
    to = f"kafka://{broker}/shop"
    kill_while_it_sends(4, lambda: sink(filled, to, "--tables", "pages,links"), 4.0)
    said(skitter("sink", filled, "--to", to, "--tables", "pages,links", "--once"))
    for table in ("pages", "links"):
        found = messages(broker, f"shop.{table}")
        assert len(found) == PAGES
        assert set(found.values()) == {1}


def test_a_broker_that_is_not_there_is_said_in_one_line(filled: Path) -> None:
    done = skitter("sink", filled, "--to", "kafka://127.0.0.1:9/x", "--once")
    assert "kafka://127.0.0.1:9/x" in complaint(done, 1)


def test_a_secret_in_the_url_is_refused_and_not_shown(filled: Path) -> None:
    done = skitter("sink", filled, "--to", "kafka://me:hidden@127.0.0.1:9/x", "--once")
    assert "hidden" not in complaint(done, 2)
