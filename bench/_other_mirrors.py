"""How the crawlers of other languages mirror one site: commands, settings, and what they stored.

Beside `_mirrors.py`, for `bench.mirror`. Each is set up as its own documentation advises for speed, and obeys
robots.txt; what they do not do stands in `bench/peers/duties.toml`.
"""

from __future__ import annotations

import socket
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from bench._mirrors import Crawler, Site, files_of

with warnings.catch_warnings():
    # fastwarc 1.1 warns of its own old names when it is imported.
    warnings.simplefilter("ignore")
    from fastwarc.warc import ArchiveIterator, WarcRecordType

AT_ONCE = 16


def by_colly(program: Path) -> Crawler:
    def command(site: Site, folder: Path) -> list[str]:
        return [str(program), "mirror", site.home, str(folder / "files"), str(AT_ONCE)]

    return Crawler(command, files_of, environ=_trust)


# No limit of its own but how many at once; pages and nothing else; no look for updates.
KATANA = (
    "-depth 1000 -strategy breadth-first -concurrency 16 -parallelism 16 -rate-limit 100000 -silent -no-color"
    " -disable-update-check -store-response -extension-filter css,js,png,gif,svg,zip"
).split()


def by_katana(program: Path) -> Crawler:
    def command(site: Site, folder: Path) -> list[str]:
        # it makes settings where its user is at home
        own = ["env", f"HOME={folder}", str(program), "-u", site.home]
        return [*own, *KATANA, "-store-response-dir", str(folder / "responses")]

    return Crawler(command, _indexed_pages)


def _indexed_pages(folder: Path) -> Counter[str]:
    """Its index has a line an answer: a file, the URL and the status."""
    index = folder / "responses" / "index.txt"
    return katana_pages(index.read_text("utf-8", "replace")) if index.exists() else Counter()


def katana_pages(index: str) -> Counter[str]:
    lines = (line.split(" ", 2) for line in index.splitlines())
    answered = [row[1] for row in lines if len(row) == 3 and row[2].startswith("(200")]
    return Counter(unquote(urlsplit(url).path) for url in answered)


def by_spider(program: Path) -> Crawler:
    def command(site: Site, folder: Path) -> list[str]:
        return [str(program), "mirror", site.home, str(folder / "warcs"), str(AT_ONCE)]

    return Crawler(command, archived_pages, environ=_trust)


def by_heritrix(home: Path) -> Crawler:
    def command(site: Site, folder: Path) -> list[str]:
        return heritrix_command(home, folder, site.home, MIRROR_OVERRIDES)

    return Crawler(command, archived_pages)


# For one large site it advises several queues and no delay. Connections are kept, and only pages are looked for.
PAGES_ONLY = {
    "crawlController.pauseAtStart": "false",
    "fetchHttp.useHTTP11": "true",
    "fetchHttp.sendConnectionClose": "false",
    "extractorHtml.extractJavascript": "false",
    "extractorCss.enabled": "false",
    "extractorJs.enabled": "false",
    "extractorSwf.enabled": "false",
}
MIRROR_OVERRIDES = {
    "disposition.delayFactor": "0",
    "disposition.minDelayMs": "0",
    "disposition.maxDelayMs": "0",
    "queueAssignmentPolicy.parallelQueues": str(AT_ONCE),
    "crawlController.maxToeThreads": str(AT_ONCE),
}
_PROFILE = "org/archive/crawler/restlet/profile-crawler-beans.cxml"
# Marks in its profile, where its manual has one write.
_CONTACT = "ENTER_AN_URL_WITH_YOUR_CONTACT_INFO_HERE_FOR_WEBMASTERS_AFFECTED_BY_YOUR_CRAWL"
_SEED, _MORE = "http://example.example/example", "##..more?..##"
_REFUSE = '<bean class="org.archive.modules.deciderules.MatchesListRegexDecideRule">'
_CONTROLLER = '<bean id="crawlController"'
# In the profile it is a comment.
_QUEUES = f"""<bean id="queueAssignmentPolicy"
   class="org.archive.crawler.frontier.SurtAuthorityQueueAssignmentPolicy"/>
 {_CONTROLLER}"""
_NO_PAGES = f"""{_REFUSE}
     <property name="regexList"><list><value>.*\\.(?i)(css|js|png|gif|svg|zip|ico)$</value></list></property>"""


def heritrix_command(home: Path, folder: Path, seeds: str, overrides: Mapping[str, str]) -> list[str]:
    """A job of its own default profile, run to its end without anybody at its console."""
    job = folder / "jobs" / "bench"
    job.mkdir(parents=True, exist_ok=True)
    (job / "crawler-beans.cxml").write_text(heritrix_job(_profile(home), seeds, overrides))
    # it makes a key for its console where it is started
    java = [
        "env",
        "-C",
        str(folder),
        "java",
        "-Xmx1g",
        f"-Dheritrix.home={home}",
        "-cp",
        f"{home}/lib/*",
        "org.archive.crawler.Heritrix",
    ]
    console = ["-a", "bench:bench", "-p", str(free_port()), "-j", str(folder / "jobs")]
    return [*java, *console, "--run-job", "bench"]


def heritrix_job(profile: str, seeds: str, overrides: Mapping[str, str]) -> str:
    """Its own profile, filled in. Raises where a later profile has no such places."""
    lines = "\n".join(f"{name}={value}" for name, value in {**PAGES_ONLY, **overrides}.items())
    filled = {_CONTACT: "http://127.0.0.1/", _SEED: seeds, _MORE: lines, _REFUSE: _NO_PAGES}
    for mark, text in {**filled, _CONTROLLER: _QUEUES}.items():
        if mark not in profile:
            raise ValueError(f"the profile has no {mark}")
        profile = profile.replace(mark, text)
    return profile


def _profile(home: Path) -> str:
    engine = next((home / "lib").glob("heritrix-engine-*.jar"))
    with zipfile.ZipFile(engine) as packed:
        return packed.read(_PROFILE).decode("utf-8")


def archived_pages(folder: Path) -> Counter[str]:
    """Of a crawler that writes WARC files: the paths of all HTML pages that were answered with 200. A file that a
    kill cut short is read as far as it goes."""
    found = Counter[str]()
    for file in sorted(path for path in folder.rglob("*.warc*") if path.is_file()):
        with file.open("rb") as stream:
            found.update(_pages_in(stream))
    return found


def _pages_in(stream: IO[bytes]) -> Iterator[str]:
    for record in ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True):
        headers = record.http_headers
        if headers.status_code == 200 and "text/html" in (headers.get("Content-Type") or ""):
            yield unquote(urlsplit(record.headers["WARC-Target-URI"].strip("<>")).path)


def _trust(site: Site) -> dict[str, str]:
    """As OpenSSL and Go are told whom to trust."""
    return {"SSL_CERT_FILE": str(site.ca_file)} if site.ca_file else {}


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
