"""Status lines, header blocks and connections that end too early, too late or never."""

from __future__ import annotations

from skitter.testing.hostile.case import (
    Case,
    Ending,
    Wire,
    fails,
    head,
    page,
    repeats,
    says,
    says_and_holds,
    whole,
)

HELLO = b"<title>hello</title>"
END = b"Content-Type: text/html\r\nContent-Length: 20\r\n\r\n" + HELLO
KILOBYTE = 1000


async def _reset_at_once(wire: Wire) -> None:
    wire.reset()


async def _reset_midway(wire: Wire) -> None:
    await wire.send(head(b"Content-Length: 1000"), HELLO)
    await wire.pause(0.05)
    wire.reset()


async def _silent(wire: Wire) -> None:
    await wire.hold()


def _status(name: str, line: bytes, about: str, ends: Ending) -> Case:
    return Case(name=name, about=about, play=says(line + b"\r\n" + END), ends=ends)


PROTOCOL = fails("protocol", 2)
TOO_LARGE = fails("headers_too_large", 1, 200)
LOST = fails("connection_lost")

STATUS_LINES = (
    Case(
        name="status-garbage",
        about="binary noise where the status line should be",
        play=says(bytes(range(256)) * 4),
        ends=PROTOCOL,
    ),
    Case(name="http-0-9", about="a body without any head (HTTP/0.9)", play=says(HELLO), ends=PROTOCOL),
    Case(name="ssh-banner", about="another protocol's greeting", play=says(b"SSH-2.0-x\r\n"), ends=PROTOCOL),
    _status("http-9-9", b"HTTP/9.9 200 OK", "a version of HTTP that does not exist", PROTOCOL),
    _status("no-reason", b"HTTP/1.1 200", "a status line without its words", page()),
    _status("status-0", b"HTTP/1.1 000 Zero", "status 000", PROTOCOL),
    _status("status-4-digits", b"HTTP/1.1 2000 OK", "status 2000: the first three digits count", page()),
    _status("status-negative", b"HTTP/1.1 -200 OK", "status -200", PROTOCOL),
    _status("status-words", b"HTTP/1.1 OK 200", "words where the number should be", PROTOCOL),
    _status("status-418", b"HTTP/1.1 418 Teapot", "a status that means nothing to a crawler", page(418)),
    _status("status-999", b"HTTP/1.1 999 Denied", "a status beyond 599", fails("server_error", 0, 999)),
    _status(
        "status-599", b"HTTP/1.1 599 Odd", "the status that we give ourselves", fails("server_error", 0, 599)
    ),
    _status(
        "status-giant",
        b"HTTP/1.1 200 " + b"k" * 200_000,
        "a status line of 200 KB",
        fails("headers_too_large", 1),
    ),
)

HEADERS = (
    Case(
        name="lone-lf",
        about="lines that end in LF alone",
        play=says(b"HTTP/1.1 200 OK\n" + END.replace(b"\r\n", b"\n")),
        ends=page(),
    ),
    Case(
        name="bare-cr",
        about="a CR within a header's value",
        play=says(whole(HELLO, b"X-Odd: a\rSet-Cookie: b")),
        ends=fails("protocol", 2, 200),
    ),
    Case(
        name="no-colon",
        about="a header line without a colon",
        play=says(whole(HELLO, b"nonsense")),
        ends=fails("protocol", 2, 200),
    ),
    Case(
        name="header-nul",
        about="a NUL in a header",
        play=says(whole(HELLO, b"X-Odd: a\0b")),
        ends=fails("protocol", 2, 200),
    ),
    Case(
        name="folded",
        about="a header folded over two lines",
        play=says(whole(HELLO, b"X-Odd: a\r\n b")),
        ends=page(),
    ),
    Case(
        name="space-colon",
        about="a space before a header's colon",
        play=says(whole(HELLO, b"X-Odd : a")),
        ends=page(),
    ),
    Case(
        name="header-count",
        about="10,000 headers",
        play=says(head(*(b"X-%d: y" % n for n in range(10_000)))),
        ends=TOO_LARGE,
    ),
    Case(
        name="header-giant",
        about="one header of 1 MB",
        play=says(whole(HELLO, b"X-Giant: " + b"x" * 1_000_000)),
        ends=TOO_LARGE,
    ),
    Case(
        name="header-endless",
        about="headers for ever",
        play=repeats(b"X-More: " + b"y" * KILOBYTE + b"\r\n", first=b"HTTP/1.1 200 OK\r\n"),
        ends=TOO_LARGE,
    ),
    Case(
        name="header-line-endless",
        about="one header line for ever",
        play=repeats(b"y" * KILOBYTE, first=b"HTTP/1.1 200 OK\r\nX-Line: "),
        ends=TOO_LARGE,
    ),
    Case(
        name="cookies",
        about="5,000 Set-Cookie headers",
        play=says(whole(HELLO, *(b"Set-Cookie: c%d=%d" % (n, n) for n in range(5000)))),
        ends=TOO_LARGE,
    ),
    Case(
        name="continues",
        about="a few 100 Continue and 103 Early Hints before the answer",
        play=says(b"HTTP/1.1 100 Continue\r\n\r\n" * 3, b"HTTP/1.1 103 Hints\r\n\r\n" * 3, whole(HELLO)),
        ends=page(),
    ),
    Case(
        name="continue-flood",
        about="100 Continue for ever",
        play=repeats(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        ends=fails("headers_too_large", 1, 100),
    ),
    Case(
        name="hints-flood",
        about="103 Early Hints for ever",
        play=repeats(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100),
        ends=fails("headers_too_large", 1, 103),
    ),
    Case(
        name="upgrade",
        about="101 Switching Protocols, unasked",
        play=says_and_holds(b"HTTP/1.1 101 Up\r\n\r\n"),
        ends=fails("protocol", 2, 101),
    ),
)

BODILESS = (
    Case(
        name="204-body", about="204 with a body", play=says(whole(HELLO, status=b"204 None")), ends=page(204)
    ),
    Case(
        name="304-unasked",
        about="304 with a body, to a request without conditions",
        play=says(whole(HELLO, status=b"304 Same")),
        ends=fails("protocol", 2, 304),
    ),
    Case(
        name="206-unasked",
        about="206 to a request without a range",
        play=says(whole(HELLO, b"Content-Range: bytes 0-19/9999", status=b"206 Part")),
        ends=page(206),
    ),
    Case(name="empty", about="200 with nothing in it", play=says(whole(b"")), ends=page()),
)

CONNECTIONS = (
    Case(name="closes-at-once", about="closes without a word", play=says(), ends=LOST),
    Case(name="resets-at-once", about="resets without a word", play=_reset_at_once, ends=LOST),
    Case(
        name="closes-in-status",
        about="closes within the status line",
        play=says(b"HTTP/1.1 2"),
        ends=LOST,
    ),
    Case(
        name="closes-in-head",
        about="closes within the headers",
        play=says(b"HTTP/1.1 200 OK\r\nX-A: b"),
        ends=fails("connection_lost", 0, 200),
    ),
    Case(
        name="closes-after-head",
        about="closes after the headers",
        play=says(head(b"Content-Length: 9")),
        ends=fails("connection_lost", 0, 200),
    ),
    Case(
        name="closes-midway",
        about="closes after a fifth of the body",
        play=says(head(b"Content-Length: 100") + HELLO),
        ends=fails("connection_lost", 0, 200),
    ),
    Case(
        name="resets-midway",
        about="resets within the body",
        play=_reset_midway,
        ends=fails("connection_lost", 0, 200),
    ),
    Case(
        name="no-length", about="a body that ends with the connection", play=says(head(), HELLO), ends=page()
    ),
    Case(
        name="never-answers",
        about="takes the request and says nothing",
        play=_silent,
        ends=fails("first_byte_timeout"),
    ),
    Case(
        name="slow-head",
        about="one byte of a header a second",
        play=repeats(b"y", first=b"HTTP/1.1 200 OK\r\nX-Slow: ", pause=1.0),
        ends=fails("stalled", 0, 200),
    ),
    Case(
        name="slow-body",
        about="one byte of the body a second",
        play=repeats(b"y", first=head(), pause=1.0),
        ends=fails("stalled", 0, 200),
    ),
    Case(
        name="stalls-midway",
        about="stops in the middle and keeps the connection",
        play=says_and_holds(head(b"Content-Length: 1000"), HELLO),
        ends=fails("stalled", 0, 200),
    ),
    Case(
        name="just-fast-enough",
        about="a body without end, just above the stall rate",
        play=repeats(b"y" * KILOBYTE, first=head(), pause=0.25),
        ends=fails("total_timeout", 3, 200),
    ),
    Case(
        name="endless-body",
        about="a body without end, fast",
        play=repeats(b"<p>more" * 10_000, first=head()),
        ends=page(detail="cut at fetch.max_body"),
    ),
)

CASES = STATUS_LINES + HEADERS + BODILESS + CONNECTIONS
