"""How many bytes were read from a connection, as the kernel counts them.

Beside the fetch. libcurl counts only what it delivers: headers and body. A chunk extension (RFC 9112 7.1.1) is
read and thrown away, and no counter of libcurl's moves. Never reads from the connection itself.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios

import pycurl

# struct tcp_info of linux/tcp.h: tcpi_bytes_received; since Linux 4.1, and other systems have no such field.
_BYTES_RECEIVED = struct.Struct("@Q")
_OFFSET = 128
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)
_UNREAD = struct.Struct("@i")


def bytes_read(curl: pycurl.Curl) -> int | None:
    """Bytes read since the connection was opened; None where that cannot be known."""
    descriptor = curl.getinfo(pycurl.ACTIVESOCKET)
    if _TCP_INFO is None or descriptor < 0:
        return None
    # libcurl's own descriptor, borrowed. Family and type are given so that Python does not ask the kernel.
    borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=descriptor)
    try:
        stats = borrowed.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _OFFSET + _BYTES_RECEIVED.size)
        # a transfer that we pause leaves as much as 32 MB unread
        unread = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(_UNREAD.size))
    except OSError:
        return None
    finally:
        borrowed.detach()
    if len(stats) < _OFFSET + _BYTES_RECEIVED.size:
        return None
    received: int = _BYTES_RECEIVED.unpack_from(stats, _OFFSET)[0]
    return received - int(_UNREAD.unpack(unread)[0])
