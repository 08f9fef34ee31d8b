"""What a focused crawl is about: words, and what example pages teach."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from skitter.errors import UsageError
from skitter.focus.classifier import TooFewExamples, train
from skitter.focus.model_file import read_model, write_model
from skitter.focus.topic import Topic, priority_of_link
from skitter.focus.words import Words
from skitter.frontier.link_batches import unpack
from skitter.model import Exchange, Task, TaskKind
from skitter.settings import KeySettings, SitemapSettings
from skitter.settings.focus import FocusSettings
from skitter.testing.clock import FakeClock
from skitter.urls.keys import Keys
from skitter.worker.cpu_turns import CpuTurns
from skitter.worker.focusing import Focus
from skitter.worker.reading.sitemap_files import SitemapFiles
from skitter.worker.step import answer_of

KEYS = Keys(KeySettings())

GOOD = [
    f"Replication number {n}: a standby server streams the log of its primary, and replication slots keep it."
    for n in range(6)
]
BAD = [
    f"Recipe number {n}: stir the flour and the butter, bake the cake, and let the oven cool."
    for n in range(6)
]


@pytest.mark.parametrize(
    ("words", "text", "are_in"),
    [
        (("replication",), "Streaming Replication", True),
        (("replication",), "replications", False),
        (("replicat*",), "it replicates", True),
        (("write-ahead log",), "the Write-Ahead  Log", True),
        (("hot standby",), "https://a.test/hot-standby.html", True),
        (("hot standby",), "https://a.test/hot_standby", True),
        (("log",), "https://a.test/catalog.html", False),
        (("", " * "), "anything", False),
        (("straße",), "STRASSE", True),
        (("c++",), "about C++ and more", True),
    ],
)
def test_words_are_found_in_texts_and_urls(words: tuple[str, ...], text: str, are_in: bool) -> None:
    assert Words(words).are_in(text) is are_in


def test_density_is_how_much_of_a_text_the_words_are() -> None:
    assert Words(["standby"]).density("standby " + "word " * 99) == pytest.approx(0.5)
    assert Words(["standby"]).density("") == 0.0
    assert Words([]).density("standby") == 0.0


def test_a_model_tells_what_it_has_not_seen_apart() -> None:
    model = train(GOOD, BAD)
    assert model.right == 12
    assert model.score("The primary streams its log to a standby.") > 0.8
    assert model.score("Bake the butter and the flour in the oven.") < 0.2
    assert model.score("") == model.score("zzz 123") == 0.0
    assert {"replication", "standby"} <= set(model.telling)
    assert "the" not in model.telling


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    model = train(GOOD, BAD)
    write_model(tmp_path / "topic.json", model)
    assert read_model(tmp_path / "topic.json") == model


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"format": 1}', b"\xff" * 100])
def test_what_is_no_model_is_said_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "topic.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=r"check focus\.model|make one with skitter focus train"):
        read_model(file)


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(TooFewExamples, match="give two of each at least"):
        train(GOOD[:1], BAD)
    with pytest.raises(TooFewExamples, match="no word stands in two of the pages"):
        train(["aaa", "bbb"], ["ccc", "ddd"])


def test_a_link_that_speaks_of_the_topic_is_urgent_wherever_it_stands() -> None:
    topic = Topic(("standby",))
    assert topic.is_promised_by("https://a.test/hot-standby.html", "see there")
    assert topic.is_promised_by("https://a.test/x", "The Standby")
    assert not topic.is_promised_by("https://a.test/x", "see there")
    assert [priority_of_link(0.0), priority_of_link(1.0)] == [10, 70]
    assert priority_of_link(0.0, is_promising=True) == 46
    assert priority_of_link(0.9, is_promising=True) == 64


def test_what_a_sitemap_names_is_ranked_by_the_words_of_its_urls() -> None:
    """Whatever the sitemap itself thinks of them."""
    focus, clock = Focus(Topic(("replication",)), FocusSettings()), FakeClock()
    files = SitemapFiles(SitemapSettings(), KEYS, clock, CpuTurns(clock), focus.rank_named)
    urls = ("http://a.test/cooking", "http://a.test/replication-slots")
    body = "".join(f"<url><loc>{url}</loc><priority>1.0</priority></url>" for url in urls)
    sitemap = Task(kind=TaskKind.SITEMAP, key=KEYS.key_of("http://a.test/s.xml"), url="http://a.test/s.xml")
    exchange = Exchange(
        url=sitemap.url,
        request=b"",
        head=b"HTTP/1.1 200 OK\r\n\r\n",
        status=200,
        headers=(("content-type", "application/xml"),),
        body=f"<urlset>{body}</urlset>".encode(),
    )
    reading = asyncio.run(files.read(sitemap, answer_of(exchange)))
    assert [(link.url, link.priority) for link in unpack(reading.listed)] == [(urls[1], 46), (urls[0], 10)]
