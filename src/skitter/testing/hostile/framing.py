"""Content-Length and Transfer-Encoding: lengths that lie and chunks that are none."""

from __future__ import annotations

from skitter.testing.hostile.case import Case, Ending, fails, head, page, repeats, says, says_and_holds

HELLO = b"<title>hello</title>"
CHUNKED = head(b"Transfer-Encoding: chunked")
PROTOCOL = fails("protocol", 2, 200)
LOST = fails("connection_lost", 0, 200)


def _length(name: str, about: str, ends: Ending, *lines: bytes) -> Case:
    return Case(name=name, about=about, play=says(head(*lines) + HELLO), ends=ends)


def _chunks(name: str, about: str, ends: Ending, *parts: bytes) -> Case:
    return Case(name=name, about=about, play=says(CHUNKED, *parts), ends=ends)


LENGTHS = (
    _length("length-negative", "Content-Length: -1", PROTOCOL, b"Content-Length: -1"),
    _length("length-huge", "a Content-Length of 31 digits", page(), b"Content-Length: 1" + b"0" * 30),
    _length("length-words", "Content-Length: many", PROTOCOL, b"Content-Length: many"),
    _length("length-hex", "Content-Length: 0x14", PROTOCOL, b"Content-Length: 0x14"),
    _length("length-empty", "an empty Content-Length", PROTOCOL, b"Content-Length:"),
    _length("length-plus", "Content-Length: +20", PROTOCOL, b"Content-Length: +20"),
    _length("length-list", "Content-Length: 20, 20", page(), b"Content-Length: 20, 20"),
    _length("length-twice", "the same Content-Length twice", page(), *(b"Content-Length: 20",) * 2),
    _length(
        "length-conflict",
        "two different Content-Length headers",
        PROTOCOL,
        b"Content-Length: 20",
        b"Content-Length: 7",
    ),
    _length("length-short", "a Content-Length shorter than the body", page(), b"Content-Length: 7"),
    _length("length-long", "a Content-Length longer than the body", LOST, b"Content-Length: 70"),
    Case(
        name="length-long-held",
        about="a Content-Length longer than the body, and the connection kept",
        play=says_and_holds(head(b"Content-Length: 70"), HELLO),
        ends=fails("stalled", 0, 200),
    ),
    _length(
        "length-and-chunks",
        "Content-Length and chunked together, the body not chunked",
        PROTOCOL,
        b"Content-Length: 20",
        b"Transfer-Encoding: chunked",
    ),
)

CHUNKS = (
    _chunks("chunk-bad-size", "a chunk size that is no number", PROTOCOL, b"zz\r\n" + HELLO),
    _chunks("chunk-negative", "a negative chunk size", PROTOCOL, b"-5\r\n" + HELLO),
    _chunks("chunk-huge", "a chunk size of 2^64", PROTOCOL, b"10000000000000000\r\n" + HELLO),
    _chunks("chunk-lies", "a chunk shorter than its size says", LOST, b"ff\r\n" + HELLO),
    _chunks(
        "chunk-overrun", "a chunk longer than its size says", PROTOCOL, b"2\r\n" + HELLO + b"\r\n0\r\n\r\n"
    ),
    _chunks("chunk-no-end", "chunks without the last one", LOST, b"14\r\n" + HELLO + b"\r\n"),
    _chunks(
        "chunk-extension",
        "a chunk extension of 1 MB",
        page(),
        b"14;x=" + b"y" * 1_000_000 + b"\r\n" + HELLO + b"\r\n0\r\n\r\n",
    ),
    _chunks("chunk-ones", "20,000 chunks of one byte", page(), b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"),
    _chunks(
        "trailers", "trailers", page(), b"14\r\n" + HELLO + b"\r\n0\r\nX-Late: 1\r\nContent-Length: 3\r\n\r\n"
    ),
    Case(
        name="trailers-endless",
        about="trailers for ever",
        play=repeats(b"X-Late: " + b"y" * 1000 + b"\r\n", first=CHUNKED + b"14\r\n" + HELLO + b"\r\n0\r\n"),
        ends=fails("headers_too_large", 1, 200),
    ),
    Case(
        name="extension-endless",
        about="a chunk extension without end",
        play=repeats(b"y" * 1000, first=CHUNKED + b"14;x="),
        ends=fails("stalled", 0, 200),
    ),
    Case(
        name="te-unknown",
        about="an unknown transfer coding",
        play=says(head(b"Transfer-Encoding: rot13") + HELLO),
        ends=PROTOCOL,
    ),
    Case(
        name="te-gzip",
        about="a gzip transfer coding that was not asked for",
        play=says(head(b"Transfer-Encoding: gzip") + HELLO),
        ends=PROTOCOL,
    ),
    Case(
        name="te-twice",
        about="chunked named twice",
        play=says(head(b"Transfer-Encoding: chunked, chunked") + b"14\r\n" + HELLO + b"\r\n0\r\n\r\n"),
        ends=page(),
    ),
)

CASES = LENGTHS + CHUNKS
