"""PDFs are read in a child process that hostile ones may kill, hang or bloat without harm to the crawl."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
import uvloop

from skitter.parse.pdf import PdfReading
from skitter.settings import FetchSettings
from skitter.worker.reading.pdf import PdfReader
from tests.pdfs import assemble, pdf, stream, with_content

T = TypeVar("T")
GOOD = pdf("Hello World", title="Greeting", links=("http://example.org/a",))


def run(use: Callable[[PdfReader], Awaitable[T]], limits: FetchSettings | None = None) -> T:
    async def main() -> T:
        reader = PdfReader(limits or FetchSettings())
        try:
            return await use(reader)
        finally:
            await reader.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def pid_of(reader: PdfReader) -> int:
    assert reader._child is not None
    return reader._child.pid


def wait_until_gone(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], 20)[0], "the child outlives its parent"
    finally:
        os.close(descriptor)


def test_a_pdf_gives_its_text_its_title_and_its_links() -> None:
    found = run(lambda reader: reader.read(GOOD))
    assert found.text.strip() == "Hello World"
    assert (found.title, found.links, found.pages, found.reason) == (
        "Greeting",
        ("http://example.org/a",),
        1,
        "",
    )


def test_the_child_starts_at_the_first_pdf_and_reads_the_next_ones_too() -> None:
    async def use(reader: PdfReader) -> None:
        assert reader._child is None
        await reader.read(GOOD)
        first = pid_of(reader)
        readings = await asyncio.gather(*(reader.read(pdf(f"number {n}")) for n in range(5)))
        assert [one.text.strip() for one in readings] == [f"number {n}" for n in range(5)]
        assert pid_of(reader) == first

    run(use)


def self_drawing() -> bytes:
    body = stream(b"/X Do (x) Tj")
    return with_content(body.replace(b"<<", b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]", 1))


HOSTILE = {
    "garbage": b"%PDF-1.7\n" + bytes(range(256)) * 500,
    "nothing": b"%PDF-",
    "no pdf at all": b"<html>",
    "truncated early": GOOD[: len(GOOD) // 3],
    "truncated late": GOOD[: len(GOOD) - 30],
    "no cross-references": GOOD[: GOOD.index(b"xref")],
    "pages that are their own children": assemble(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"]
    ),
    "a billion pages": assemble(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 1000000000>>"]
    ),
    "nested arrays": assemble([b"<</Type/Catalog/Pages 2 0 R/X %s>>" % (b"[" * 500_000), b"<<>>"]),
    "a form that draws itself": self_drawing(),
    "a page of blanks": with_content(stream(b" " * 50_000_000)),
    "a bomb in a bomb": with_content(stream(b" " * 50_000_000, filters=2)),
    "a table that points at itself": b"%PDF-1.7\nxref\n0 1\ntrailer\n<</Size 1/Prev 9>>\nstartxref\n9\n%%EOF",
}


@pytest.fixture(scope="module")
def readings() -> dict[str, tuple[PdfReading, PdfReading]]:
    """Each hostile PDF by one reader, and after each an honest one."""

    async def use(reader: PdfReader) -> dict[str, tuple[PdfReading, PdfReading]]:
        return {name: (await reader.read(body), await reader.read(GOOD)) for name, body in HOSTILE.items()}

    return run(use, FetchSettings(pdf_memory=400_000_000))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pdf_has_an_outcome_and_the_next_is_read(
    readings: dict[str, tuple[PdfReading, PdfReading]], name: str
) -> None:
    hostile, honest = readings[name]
    assert len(hostile.text) <= 2_000_000
    assert honest.text.strip() == "Hello World"


@pytest.mark.parametrize("name", ["garbage", "nothing", "no pdf at all", "truncated early"])
def test_what_cannot_be_read_says_why(readings: dict[str, tuple[PdfReading, PdfReading]], name: str) -> None:
    assert readings[name][0].reason


ENDLESS = with_content(stream(b"BT /F 1 Tf " + b"(x)Tj " * 8_000_000 + b"ET"))


def test_a_reader_that_hangs_is_given_up_and_killed() -> None:
    async def use(reader: PdfReader) -> PdfReading:
        await reader.read(GOOD)
        hanging = pid_of(reader)
        os.kill(hanging, signal.SIGSTOP)
        reader._seconds = 0.2
        found = await reader.read(GOOD)
        wait_until_gone(hanging)
        reader._seconds = 20.0
        assert (await reader.read(GOOD)).text.strip() == "Hello World"
        return found

    assert run(use) == PdfReading(reason="not read within 0.2 s")


def test_a_pdf_that_takes_too_much_memory_costs_only_its_reader() -> None:
    async def use(reader: PdfReader) -> PdfReading:
        found = await reader.read(ENDLESS)
        assert (await reader.read(GOOD)).text.strip() == "Hello World"
        return found

    found = run(use, FetchSettings(pdf_seconds=30.0, pdf_memory=250_000_000))
    assert found.reason.startswith("its reader died: SIG")


def test_a_reader_that_is_killed_is_replaced() -> None:
    async def use(reader: PdfReader) -> None:
        await reader.read(GOOD)
        os.kill(pid_of(reader), signal.SIGKILL)
        assert (await reader.read(GOOD)).reason == "its reader died: SIGKILL"
        assert (await reader.read(GOOD)).reason == ""

    run(use)


def test_a_reading_that_is_cancelled_does_not_answer_the_next_question() -> None:
    async def use(reader: PdfReader) -> None:
        await reader.read(GOOD)
        reading = asyncio.create_task(reader.read(ENDLESS))
        while not reader._turn.locked():
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert reading.cancelled()
        assert (await reader.read(GOOD)).text.strip() == "Hello World"

    run(use)


ORPHAN = """
import asyncio, os, signal, sys
from skitter.settings import FetchSettings
from skitter.worker.reading.pdf import PdfReader
from tests.integration.test_pdf import GOOD, pid_of

async def main():
    reader = PdfReader(FetchSettings())
    await reader.read(GOOD)
    if sys.argv[1] == "hanging":
        os.kill(pid_of(reader), signal.SIGSTOP)
    print(pid_of(reader), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("state", ["waiting", "hanging"])
def test_the_child_dies_with_its_parent(state: str) -> None:
    """One that hangs does not see its pipe end: only the kernel can end it."""
    with subprocess.Popen([sys.executable, "-c", ORPHAN, state], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    wait_until_gone(child)
