"""nginx on a free loopback port, serving one folder, for as long as a context lasts."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

_START_TIMEOUT = 10.0
_PORTS_TRIED = 5

_CONFIG = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    log_format bench '$connection $server_protocol $status $uri';
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000;
    default_type text/plain;
    types {{ text/html html htm; text/css css; text/javascript js; image/png png; image/svg+xml svg; }}
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""
_SERVER = """\
    server {{
        listen 127.0.0.1:{port};
        root {root};
    }}
"""
# With `log`, `pem` (a key and its certificates) and how many `requests` a connection is good for.
_LOGGED = """\
    server {{{{
        listen 127.0.0.1:{{port}};
        root {{root}};
        access_log {log} bench;
    }}}}
"""
_SECURE = """\
    server {{{{
        listen 127.0.0.1:{{port}} ssl{http2};
        root {{root}};
        access_log {log} bench;
        ssl_certificate {pem};
        ssl_certificate_key {pem};
        ssl_session_cache shared:bench:10m;
        keepalive_requests {requests};
    }}}}
"""


class Asked(NamedTuple):
    """A line of nginx's log, as `_CONFIG` lays it out."""

    connection: int
    protocol: str
    status: int
    path: str


def logged(log: Path) -> str:
    """The server of plain HTTP that writes down what it is asked."""
    return _LOGGED.format(log=log)


def secure(log: Path, pem: Path, requests: int = 100_000) -> str:
    """https, by HTTP/2 to those who speak it; by HTTP/1.1 where a connection is good for one request, because
    nginx would refuse the others that are under way on it."""
    return _SECURE.format(log=log, pem=pem, requests=requests, http2=" http2" if requests > 1 else "")


def read_access_log(log: Path, begin: int = 0) -> list[Asked]:
    """From a size that the log once had. A line that is being written is left out."""
    if not log.exists():
        return []
    with log.open("rb") as stream:
        stream.seek(begin)
        lines = stream.read().decode("utf-8", "replace").split("\n")[:-1]
    rows = (line.split(" ", 3) for line in lines)
    return [Asked(int(row[0]), row[1], int(row[2]), row[3]) for row in rows if len(row) == 4]


@contextmanager
def serving(nginx: str, root: Path, folder: Path, server: str = _SERVER) -> Iterator[int]:
    """The port; `folder` is for nginx's own files. `server` is what is served, without its `port` and `root`."""
    child, port = _started(nginx, root, folder, server)
    try:
        yield port
    finally:
        child.terminate()
        child.wait()


def _started(nginx: str, root: Path, folder: Path, server: str) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(_PORTS_TRIED):
        port = _free_port()
        config = folder / "nginx.conf"
        servers = server.format(port=port, root=root)
        config.write_text(_CONFIG.format(folder=folder, servers=servers))
        child = subprocess.Popen([nginx, "-p", str(folder), "-c", str(config)], stderr=subprocess.DEVNULL)
        if _listens(child, port):
            return child, port
    raise SystemExit(f"nginx does not start; see {folder}/error.log")


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(child: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + _START_TIMEOUT
    while child.poll() is None and time.monotonic() < deadline:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.02)
    child.kill()
    child.wait()
    return False
