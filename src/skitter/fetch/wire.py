"""How many bytes were read from a connection, by the kernel's count.

Beside the fetch. libcurl reports what it delivers: headers and body. A chunk extension (RFC 9112 7.1.1) is
read and thrown away at full speed, and no counter of libcurl's moves. Never reads from the connection.
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


def read_from(curl: pycurl.Curl) -> int | None:
    """Since the connection was opened; None where it cannot be known."""
    descriptor = curl.getinfo(pycurl.ACTIVESOCKET)
    if _TCP_INFO is None or descriptor < 0:
        return None
    # libcurl's own descriptor, borrowed: family and type are given so that nobody has to ask for them
    borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=descriptor)
    try:
        told = borrowed.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _OFFSET + _BYTES_RECEIVED.size)
        # a transfer that we pause leaves as much as 32 MB unread
        unread = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(_UNREAD.size))
    except OSError:
        return None
    finally:
        borrowed.detach()
    if len(told) < _OFFSET + _BYTES_RECEIVED.size:
        return None
    received: int = _BYTES_RECEIVED.unpack_from(told, _OFFSET)[0]
    return received - int(_UNREAD.unpack(unread)[0])
