"""The five tasks of `examples/`, each beside a Scrapy spider: lines, wall time, CPU, and what came of it.

    python -m bench.tasks --products 5000 --threads 1000 --homes 5000

nginx serves all sites on loopback: a shop, a forum that shows its threads to who has the cookie of a login, home
pages with JSON-LD, and PostgreSQL's documentation. skitter runs with all its promises on (frontier on disk, WARC
archive, tables); Scrapy writes JSON lines and keeps its frontier in memory. Both obey robots.txt, with 16
requests at once to a host, 256 over many hosts, and no delay. A table, one JSON object as the last line; exit
code 1 when an item is missing, 2 without the packages.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import skitter
from bench._crawls import Usage, run_with_usage, skitter_command
from bench._nginx import serving
from bench._peers import PROJECT, SCRIPTS, complain, found, peers_python, want
from bench._report import last_line, progress, table

EXAMPLES = PROJECT / "examples"
DOCS = Path("/usr/share/doc/postgresql-doc-15/html")
TOPIC_PAGES = 117
_QUICK = """
[crawl]
linger = 1.0
[traps]
mode = "off"
[sitemaps]
use = "off"
[fetch]
allow_private = true
resolve = ["*:80:127.0.0.1:{port}"]
[politeness]
delay = 0.0
slow_factor = 0.0
[hosts."http://shop.test"]
parallel = 16
[hosts."http://forum.test"]
parallel = 16
"""
_SERVERS = """\
    server {{{{
        listen 127.0.0.1:{{port}} default_server;
        root {folder}/homes;
    }}}}
    server {{{{
        listen 127.0.0.1:{{port}};
        server_name shop.test;
        default_type text/html;
        root {folder}/shop;
    }}}}
    server {{{{
        listen 127.0.0.1:{{port}};
        server_name docs.test;
        root {docs};
    }}}}
    server {{{{
        listen 127.0.0.1:{{port}};
        server_name forum.test;
        default_type text/html;
        root {folder}/forum;
        error_page 418 = @in;
        location = /robots.txt {{{{ return 404; }}}}
        location = /login {{{{ error_page 405 = @in; try_files /login.html =404; }}}}
        location @in {{{{ add_header Set-Cookie "sid=1; Path=/"; return 303 http://forum.test/; }}}}
        location / {{{{
            if ($cookie_sid != "1") {{{{ rewrite ^ /login.html break; }}}}
        }}}}
    }}}}
"""
_PRODUCT = """<html><head><title>Kettle {n}</title></head><body><h1>Kettle {n}</h1><p>{words}</p>
<b class=price>EUR {price},50</b><img class=product src="/img/{n}.jpg"><a href="/about">about us</a>
<a href="/list{page}">back</a></body></html>"""
_WORDS = "It boils water, whistles, and keeps quiet when it is cold. " * 20


class Task(NamedTuple):
    """`expected` items; `count` says how many there are in a crawl's folder."""

    name: str
    code: tuple[Path, ...]
    spider: str
    arguments: list[str]
    expected: int
    sql: str
    pages: int = 0
    seeds: str = ""


class Ran(NamedTuple):
    lines: int
    usage: Usage
    items: int


def build(folder: Path, products: int, threads: int, homes: int) -> None:
    shop = folder / "shop"
    (shop / "products").mkdir(parents=True)
    lists = range(0, products, 100)
    _write(shop / "index.html", "".join(f'<a href="/list{start // 100}">list</a>' for start in lists))
    _write(shop / "about", "<html><title>About us</title></html>")
    for start in lists:
        links = "".join(f'<a href="/products/{n}">{n}</a>' for n in range(start, min(start + 100, products)))
        _write(shop / f"list{start // 100}", f"<html><title>List</title>{links}</html>")
    for n in range(products):
        values = {"n": n, "price": 10 + n % 90, "page": n // 100, "words": f"{_WORDS} {n}"}
        _write(shop / "products" / str(n), _PRODUCT.format(**values))
    forum = folder / "forum"
    (forum / "t").mkdir(parents=True)
    out = '<a class=logout href="/">out</a>'
    _write(forum / "index.html", out + "".join(f'<a href="/t/{n}">{n}</a>' for n in range(threads)))
    form = "<form method=post action=/login><input name=user><input type=password name=password></form>"
    _write(forum / "login.html", form)
    for n in range(threads):
        body = f"<title>Thread {n}</title>{out}<b class=author>Author {n}</b><p>{_WORDS} {n}</p>"
        _write(forum / "t" / str(n), f"<html>{body}</html>")
    (folder / "homes").mkdir()
    said = '{"@type": "Organization", "name": "A Shop", "email": "a@shop.test", "telephone": "+1 555 0100"}'
    _write(
        folder / "homes" / "index.html",
        f'<html><script type="application/ld+json">{said}</script><p>{_WORDS}</p><a href="/x">x</a></html>',
    )
    _write(folder / "homes.txt", "".join(f"http://home{n}.test/\n" for n in range(homes)))


def _write(file: Path, text: str) -> None:
    file.write_text(text)


def tasks(folder: Path, products: int, threads: int, homes: int) -> list[Task]:
    count = "select count(*) from {}".format
    with_ = "--with"
    seeds = str(folder / "homes.txt")
    return [
        Task(
            "a shop, in Python",
            (EXAMPLES / "shop.py",),
            "shop",
            ["http://shop.test/", with_, str(EXAMPLES / "shop.py")],
            products,
            count("Product"),
        ),
        Task(
            "a shop, in TOML",
            (EXAMPLES / "shop.toml",),
            "shop",
            ["http://shop.test/"],
            products,
            count("product"),
        ),
        Task(
            "only its products",
            (EXAMPLES / "only_products.toml",),
            "only_products",
            ["http://shop.test/"],
            products,
            count("text"),
        ),
        Task(
            "a forum behind a login",
            (EXAMPLES / "forum.toml",),
            "forum",
            ["http://forum.test/"],
            threads,
            count("post"),
        ),
        Task(
            "home pages",
            (EXAMPLES / "home_pages.py",),
            "home_pages",
            [seeds, "--max-depth", "0", with_, str(EXAMPLES / "home_pages.py")],
            homes,
            count("Organisation"),
            seeds=seeds,
        ),
        Task(
            "a topic",
            (EXAMPLES / "topic.toml",),
            "topic",
            ["http://docs.test/index.html", "--max-pages", str(TOPIC_PAGES)],
            0,
            count("pages where score >= 0.5"),
            pages=TOPIC_PAGES,
        ),
    ]


def run_skitter(task: Task, folder: Path, port: int) -> Ran:
    config, into = folder / "settings.toml", folder / "skitter"
    own = "".join(file.read_text() for file in task.code if file.suffix == ".toml")
    config.write_text(_QUICK.format(port=port).replace('"http://forum.test"', '"forum.test"') + own)
    command = skitter_command(
        "crawl", *task.arguments, "--into", str(into), "--config", str(config), "--json"
    )
    usage = run_with_usage(command)
    with skitter.open(into) as crawl, crawl.duckdb() as tables:
        row = tables.execute(task.sql).fetchone()
    return Ran(sum(map(lines_of, task.code)), usage, row[0] if row else 0)


def run_scrapy(python: str) -> Callable[[Task, Path, int], Ran]:
    def run(task: Task, folder: Path, port: int) -> Ran:
        out = folder / "out.jsonl"
        command = [python, str(SCRIPTS / "scrapy_task.py"), task.spider, str(out), str(port), str(task.pages)]
        usage = run_with_usage([*command, task.seeds] if task.seeds else command)
        rows = out.read_text().splitlines() if out.exists() else []
        items = sum('"score": 0.' in row and float(row.rsplit(": ", 1)[1][:-1]) >= 0.5 for row in rows)
        items += sum('"score": 1.0' in row for row in rows)
        return Ran(
            lines_of(SCRIPTS / "spiders" / f"{task.spider}.py"), usage, items if task.pages else len(rows)
        )

    return run


def lines_of(file: Path) -> int:
    """Without comments, the docstring and empty lines."""
    told = (line.strip() for line in file.read_text().splitlines())
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in told)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tasks", description=__doc__.splitlines()[0])
    parser.add_argument("--products", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=1000)
    parser.add_argument("--homes", type=int, default=5000)
    options = parser.parse_args(arguments)
    if absent := want("nginx", "postgresql-doc-15"):
        return complain("tasks", absent)
    nginx, python = found("nginx"), peers_python()
    assert nginx is not None
    os.environ["FORUM_PASSWORD"] = "of the forum"
    runs = {"skitter": run_skitter, **({"Scrapy": run_scrapy(python)} if python else {})}
    rows: list[tuple[object, ...]] = [("task", "with", "lines", "items", "wall s", "CPU s")]
    missing, figures = 0, []
    with tempfile.TemporaryDirectory(prefix="skitter-tasks-") as name:
        site = Path(name)
        # nginx's own user reads it
        site.chmod(0o755)
        build(site, options.products, options.threads, options.homes)
        servers = _SERVERS.format(folder=site, docs=DOCS)
        with serving(nginx, site, site, servers) as port:
            for task in tasks(site, options.products, options.threads, options.homes):
                for who, run in runs.items():
                    progress(f"{task.name}, {who}")
                    with tempfile.TemporaryDirectory(prefix="skitter-task-") as own:
                        ran = run(task, Path(own), port)
                    missing += who == "skitter" and ran.items < task.expected
                    told = ran.lines, ran.items, round(ran.usage.wall, 1), round(ran.usage.cpu, 1)
                    rows.append((task.name, who, *told))
                    figures.append({"task": task.name, "with": who, "ran": told})
    print(table(rows))
    last_line({"bench": "tasks", "runs": figures})
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
