"""What a worker's token lets its holder do to a crawl: nothing that a worker of ours could not have done.

Over the real wire, at a real server: each attack is refused alone, told to its sender and counted, and the crawl
goes on and can be opened again.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from isal import igzip_lib
from msgspec.structs import replace

from skitter.archive.packing import Reference
from skitter.committer.delivery_check import DeliveryCheck
from skitter.committer.work_source import Delivery
from skitter.committer.worker_messages import SETTLE, SettleResponse
from skitter.folder import CrawlFolder
from skitter.frontier.base import Settled
from skitter.frontier.link_batches import pack
from skitter.model import (
    Copy,
    Extracted,
    Failed,
    FailureKind,
    Host,
    LinkBatch,
    NotModified,
    RecordAt,
    Redirected,
    RobotsRead,
    Token,
    UrlKey,
)
from skitter.telemetry import Metric
from skitter.wiring import CrawlServices, open_services
from tests.frontier_kit import discovered
from tests.integration.test_remote_work_source import (
    LEASED,
    dated,
    joined,
    linked,
    next_lease,
    run,
    settle_request,
)

Attack = Callable[[Delivery], Delivery]


def outcome(**changes: Any) -> Attack:
    return lambda made: replace(made, outcome=replace(made.outcome, **changes))


def result(**changes: Any) -> Attack:
    return lambda made: replace(
        made, outcome=replace(made.outcome, result=replace(made.outcome.result, **changes))
    )


def parcel(**changes: Any) -> Attack:
    def attack(made: Delivery) -> Delivery:
        assert made.parcel is not None
        return replace(made, parcel=replace(made.parcel, **changes))

    return attack


def repacked(change: Callable[[bytes], bytes]) -> Attack:
    def attack(made: Delivery) -> Delivery:
        assert made.parcel is not None
        record = change(igzip_lib.decompress(made.parcel.answer, igzip_lib.DECOMP_GZIP))
        return replace(made, parcel=replace(made.parcel, answer=gzipped(record)))

    return attack


def gzipped(record: bytes) -> bytes:
    packed: bytes = igzip_lib.compress(record, 1, igzip_lib.COMP_GZIP)
    return packed


def rows(change: Callable[[dict[str, Any]], object]) -> Attack:
    def attack(made: Delivery) -> Delivery:
        assert made.parcel is not None
        told = msgspec.msgpack.decode(made.parcel.rows)
        return replace(made, parcel=replace(made.parcel, rows=msgspec.msgpack.encode(change(told))))

    return attack


def with_value(table: str, place: int, value: object) -> Callable[[dict[str, Any]], object]:
    def change(told: dict[str, Any]) -> object:
        told[table][0][place] = value
        return told

    return change


TARGET = discovered("http://a.test/elsewhere")
BOMB = gzipped(b"\0" * 200_000_000)
ATTACKS: dict[str, Attack] = {
    "a page settled with a robots result": outcome(result=RobotsRead(status=200, body=b"")),
    "sent at nan": outcome(sent_at=nan),
    "ended at inf": outcome(ended_at=inf),
    "sent in a year": outcome(sent_at=4e9, ended_at=4e9),
    "sent in 1970": outcome(sent_at=1.0),
    "sent an hour before its lease": lambda made: outcome(sent_at=made.outcome.sent_at - 3600)(made),
    "ended before it was sent": lambda made: outcome(ended_at=made.outcome.sent_at - 1)(made),
    "a host that is none": outcome(host=Host("http://a.test/path")),
    "an endless host": outcome(host=Host("http://" + "a" * 100_000)),
    "a short key": outcome(key=UrlKey(b"short")),
    "a token that is none": outcome(token=Token(-1)),
    "an address that is none": outcome(address="a.test"),
    "a status that is none": result(status=70_000),
    "a negative size": result(size=-1),
    "a digest that is none": result(digest=b"x"),
    "a place of its own": result(record=RecordAt("x.warc.gz", 0, 10)),
    "a copy of its own": result(copy=Copy("http://a.test/", 1.0, "urn:x")),
    "an endless title": result(title="x" * 1_000_000),
    "a canonical URL that is none": result(canonical="javascript:alert(1)"),
    "a link without a URL": result(link_batches=(LinkBatch(b"k" * 16, "", 1),)),
    "a link with another's key": result(link_batches=(LinkBatch(b"k" * 16, "http://a.test/x", 1),)),
    "a link that is not normalised": result(
        link_batches=(LinkBatch(discovered("http://a.test/x").key, "HTTP://A.test/x", 1),)
    ),
    "links deeper than any": result(
        link_batches=(replace(pack([discovered("http://a.test/x")])[0], depth=1 << 62),)
    ),
    "more keys than links": result(link_batches=(LinkBatch(b"k" * 32, "http://a.test/x", 1),)),
    "a redirect to nowhere": outcome(
        result=Redirected(status=301, location="x", target=replace(TARGET, url="ftp://x/"))
    ),
    "a redirect with another's key": outcome(
        result=Redirected(status=301, location="x", target=replace(TARGET, key=UrlKey(b"k" * 16)))
    ),
    "a failure that waits for ever": outcome(result=Failed(kind=FailureKind.THROTTLED, retry_after=inf)),
    "a failure that waits for nan": outcome(result=Failed(kind=FailureKind.THROTTLED, retry_after=nan)),
    "a 304 without its record": lambda made: replace(
        made, outcome=replace(made.outcome, result=NotModified()), parcel=None
    ),
    "a page without its record": lambda made: replace(made, parcel=None),
    "garbage for gzip": parcel(answer=b"\x1f\x8b\x08 garbage"),
    "garbage for zstd": parcel(answer=b"\x28\xb5\x2f\xfd garbage"),
    "no compression at all": parcel(answer=b"WARC/1.1"),
    "a record that breaks off": lambda made: parcel(answer=made.parcel.answer[:-9] if made.parcel else b"")(
        made
    ),
    "two records in one": lambda made: parcel(answer=made.parcel.answer * 2 if made.parcel else b"")(made),
    "a bomb": parcel(answer=BOMB),
    "a bomb for metadata": parcel(metadata=BOMB),
    "a record of another kind": repacked(lambda record: record.replace(b"Type: response", b"Type: resource")),
    "a record that lies about its length": repacked(
        lambda record: record.replace(b"Content-Length: ", b"Content-Length: 9")
    ),
    "a record of another URL": repacked(lambda record: record.replace(b"http://a.test/", b"http://b.test/")),
    "a record id that is none": parcel(record_id="urn:uuid:x\r\nWARC-Type: response"),
    "a parcel of another URL": parcel(url="http://a.test/another"),
    "a parcel of another host": parcel(url="http://b.test/"),
    "a body with another's digest": repacked(lambda record: record[:-9] + b"other" + record[-4:]),
    "another's digest": lambda made: parcel(digest=b"d" * 32)(result(digest=b"d" * 32)(made)),
    "a digest that is not its record's": result(digest=b"d" * 32),
    "a size that is not its record's": parcel(size=1),
    "an index line of another status": parcel(line_middle=b'"mime": "text/html", "status": "404", '),
    "a row of another URL": rows(with_value("pages", 1, "http://b.test/")),
    "endless names of extractors": lambda made: replace(made, extracted=(Extracted("x" * 10_000, 1),)),
    "fewer items than none": lambda made: replace(made, extracted=(Extracted("x", -5),)),
    "a fault of no kind": lambda made: replace(made, extracted=(Extracted("x", 0, "made up"),)),
    "a parcel of no URL": parcel(url="http://a.test/\r\n"),
    "a parcel of no time": parcel(sent_at=nan),
    "an index line in two": parcel(line_start=b'test,a)/ 20260101000000 {"url": "x"}\ntest,b)/ '),
    "an index line of another host": parcel(line_start=b'test,b)/ 20260101000000 {"url": "http://b.test/", '),
    "an index line that is no JSON": parcel(line_middle=b'"mime": "'),
    "fields that break out": parcel(reference=Reference("A: b\r\n\r\nWARC/1.1", b"", "")),
    "rows of garbage": parcel(rows=b"garbage"),
    "rows of another table": rows(lambda told: {**told, "secrets": [[1]]}),
    "rows of too few values": rows(lambda told: {"pages": [[1, 2]]}),
    "a row without a URL": rows(with_value("pages", 1, None)),
    "a row with a text for a number": rows(with_value("pages", 3, "two hundred")),
    "a row with a number beyond its type": rows(with_value("pages", 3, 1 << 40)),
    "a whole number that no fraction holds": rows(
        lambda told: {**told, "pages": [[1 << 31 if one == 0.0 else one for one in told["pages"][0]]]}
    ),
    "a text that is no UTF-8": rows(lambda told: {**told, "text": [["u", 1, "", "", b"\xff", ""]]}),
    "links of unequal columns": rows(lambda told: {**told, "links": [["u", 1, ["a\nb", "a", "", ""]]]}),
}


async def page_of(source: Any, services: CrawlServices) -> Delivery:
    await source.settle([dated(await next_lease(source), services.clock.now())])  # robots.txt
    return dated(await next_lease(source), services.clock.now())


@pytest.mark.parametrize("name", ATTACKS)
def test_an_impossible_delivery_is_refused_alone_and_the_crawl_goes_on(tmp_path: Path, name: str) -> None:
    async def use(where: str, services: CrawlServices) -> None:
        source, link = await joined(where), linked(where)
        good = await page_of(source, services)
        bad = ATTACKS[name](good)
        # each with the seal of the good one's lease: what a worker that has it may still not say
        ask = replace(
            settle_request(source, good),
            deliveries=[bad, good, bad],
            seals=source._seals.of([(good.outcome.host, good.outcome.token)]) * 3,
        )
        taken = msgspec.msgpack.decode(
            await link.post(SETTLE, msgspec.msgpack.encode(ask)), type=SettleResponse
        )
        assert taken.settled == [Settled.STALE, Settled.ACCEPTED, Settled.STALE]
        assert sorted(taken.refused) == [0, 2]
        assert services.telemetry.value(Metric.DELIVERIES_REFUSED) == 2
        assert (await services.frontier.stats()).fetches == 2

    run(tmp_path, use)

    async def open_again() -> None:
        async with open_services(CrawlFolder(tmp_path), LEASED) as services:
            assert (await services.frontier.stats()).pages == 1

    asyncio.run(open_again())


def zstd_bomb(size: int) -> bytes:
    """As `zstd` makes it of zeros, a megabyte at a time."""
    writer = zstandard.ZstdCompressor(level=3).compressobj()
    zeros = bytes(1 << 20)
    return b"".join(writer.compress(zeros) for _ in range(size >> 20)) + writer.flush()


def peak_memory() -> int:
    return next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("field", ["answer", "request", "metadata"])
def test_a_bomb_is_refused_without_being_inflated(tmp_path: Path, field: str) -> None:
    """48 KB that become 1.5 GB, where there is room for 100 MB."""
    bomb = zstd_bomb(1_500_000_000)
    assert len(bomb) < 200_000

    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        bad = parcel(**{field: bomb})(await page_of(source, services))
        Path("/proc/self/clear_refs").write_text("5")  # the peak is of now
        before = peak_memory()
        assert DeliveryCheck(LEASED).fault(bad, services.clock.now())
        assert peak_memory() - before < 100_000_000

    run(tmp_path, use)


def mutated(dice: random.Random, message: bytes) -> bytes:
    """A few bytes changed, cut out, or put in: what a fuzzer does to a message."""
    changed = bytearray(message)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(changed))
        match dice.randrange(4):
            case 0:
                changed[at] = dice.randrange(256)
            case 1:
                del changed[at : at + dice.randint(1, 8)]
            case 2:
                changed[at:at] = dice.randbytes(dice.randint(1, 8))
            case _:
                changed[at] = dice.choice((0, 0x7F, 0x80, 0xC0, 0xCB, 0xCF, 0xD3, 0xFF))
        if not changed:
            return b"\0"
    return bytes(changed)


def test_mutated_deliveries_are_judged_and_raise_nothing(tmp_path: Path) -> None:
    """What still decodes is possible or refused; and what passed can be committed."""

    async def use(where: str, services: CrawlServices) -> None:
        source = await joined(where)
        good = await page_of(source, services)
        check, dice, now = DeliveryCheck(LEASED), random.Random(25), services.clock.now()
        assert check.fault(good, now) == ""
        message, decoder = msgspec.msgpack.encode(good), msgspec.msgpack.Decoder(Delivery)
        judged = passed = 0
        for _ in range(20_000):
            try:
                made = decoder.decode(mutated(dice, message))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            judged += 1
            if not check.fault(made, now):
                passed += 1
                await services.committer.commit_batch([made])
        assert judged > 1_000
        assert passed < judged

    run(tmp_path, use)
