"""How each crawler crawls thousands of hosts politely: its command, for a web that runs and a folder of its own.

Used by `bench.broad`. All get the same seeds, the same delay for each host, and robots.txt to obey. They run
until they are stopped.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench._crawls import skitter_command
from bench._other_mirrors import free_port, heritrix_command
from bench._peers import SCRIPTS
from skitter.testing.web import SyntheticWeb

# A thousand pages a second at 0.4 s each are 410 under way; the rest is for what waits in line.
CONCURRENCY = 1000

SETTINGS = """\
[crawl]
scope = "host"

[politeness]
delay = {delay}

[fetch]
concurrency = {concurrency}
ca_file = "{ca_file}"
resolve = {resolve}
allow_private = true
"""


class Place(msgspec.Struct, frozen=True):
    """A running web, and a folder for one crawl of it. `by_names`: it is found by DNS, on its own ports."""

    web: SyntheticWeb
    folder: Path
    ca_file: Path
    delay: float
    by_names: bool = False

    @property
    def seeds(self) -> Path:
        path = self.folder / "seeds.txt"
        path.write_text("".join(self.web.plan.url(host, "/") + "\n" for host in range(self.web.plan.hosts)))
        return path


class Crawler(NamedTuple):
    """How it is called, and what ends it: Scrapy would take a minute to finish what it has begun."""

    command_for: Callable[[Place], list[str]]
    stop_by: signal.Signals


def by_skitter(python: Path | None = None) -> Crawler:
    """With a `python`, as it is installed there."""
    program = ["env", "-u", "PYTHONPATH", str(python), "-m", "skitter"] if python else skitter_command()

    def command(place: Place) -> list[str]:
        config = place.folder / "settings.toml"
        resolve = [] if place.by_names else place.web.resolves
        config.write_text(
            SETTINGS.format(
                delay=place.delay, concurrency=CONCURRENCY, ca_file=place.ca_file, resolve=json.dumps(resolve)
            )
        )
        where = ["--into", str(place.folder / "crawl"), "--config", str(config), "--json"]
        # names that DNS finds are taken for public hosts
        where += ["--contact", "bench@web.test"] if place.by_names else []
        return [*program, "crawl", str(place.seeds), *where]

    return Crawler(command, signal.SIGINT)


def by_scrapy(python: str, concurrency: int) -> Crawler:
    def command(place: Place) -> list[str]:
        ports = [resolve.rpartition(":")[2] for resolve in place.web.resolves]
        script = str(SCRIPTS / "scrapy_broad.py")
        return [python, script, str(place.seeds), str(place.delay), str(concurrency), *ports]

    return Crawler(command, signal.SIGKILL)


def by_program(program: Path) -> Crawler:
    """Colly's or spider's main: both are called alike, and trust whom OpenSSL's variable names."""

    def command(place: Place) -> list[str]:
        trust = ["env", f"SSL_CERT_FILE={place.ca_file}"]
        delay = str(round(place.delay * 1000))
        return [*trust, str(program), "broad", str(place.seeds), str(place.folder / "pages"), delay]

    return Crawler(command, signal.SIGKILL)


def by_heritrix(home: Path) -> Crawler:
    """As many threads as a thousand pages a second need; each holds half a megabyte."""

    def command(place: Place) -> list[str]:
        delay = str(round(place.delay * 1000))
        pace = {"minDelayMs": delay, "maxDelayMs": delay, "delayFactor": "0"}
        overrides = {f"disposition.{name}": value for name, value in pace.items()}
        overrides["crawlController.maxToeThreads"] = "500"
        return heritrix_command(home, place.folder, place.seeds.read_text(), overrides)

    return Crawler(command, signal.SIGKILL)


BUBING = """\
name=bench
group=bench
weight=1
crawlIsNew=true
rootDir={folder}/crawl
maxUrlsPerSchemeAuthority=100000
parsingThreads=2
dnsThreads=20
fetchingThreads=500
fetchFilter=true
scheduleFilter=true
followFilter=true
parseFilter=true
storeFilter=true
schemeAuthorityDelay={delay}ms
ipDelay=1ms
keepAliveTime=0
maxUrls=10M
bloomFilterPrecision=1E-8
seed=file:{seeds}
socketTimeout=30s
connectionTimeout=30s
fetchDataBufferByteSize=200K
cookiePolicy=ignoreCookies
cookieMaxByteSize=2000
userAgent=bench
robotsExpiration=1h
responseBodyMaxByteSize=2M
digestAlgorithm=MurmurHash3
startPaused=false
workbenchMaxByteSize=128Mi
urlCacheMaxByteSize=128Mi
sieveSize=1Mi
parserSpec=HTMLParser(MurmurHash3)
"""


def by_bubing(jars: Path) -> Crawler:
    def command(place: Place) -> list[str]:
        config = place.folder / "bubing.properties"
        delay = round(place.delay * 1000)
        config.write_text(BUBING.format(folder=place.folder, delay=delay, seeds=place.seeds))
        alone = ["-Djgroups.bind_addr=127.0.0.1", "-Djava.net.preferIPv4Stack=true"]
        # by default it writes down every byte that it reads
        alone.append(f"-Dlogback.configurationFile={SCRIPTS / 'bubing' / 'logback.xml'}")
        jmx = "-Dcom.sun.management.jmxremote"
        alone += [f"{jmx}.port={free_port()}", f"{jmx}.authenticate=false", f"{jmx}.ssl=false"]
        java = ["java", "-Xmx2g", "-Xss256K", *alone, "-cp", f"{jars}/*", "it.unimi.di.law.bubing.Agent"]
        return [*java, "-h", "127.0.0.1", "-P", str(config), "-g", "bench", "-n", "agent"]

    return Crawler(command, signal.SIGKILL)
