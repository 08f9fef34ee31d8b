"""`skitter shell URL`: one page at a prompt of Python, to try selectors out.

Fetched as a crawl of one page would: robots.txt, address guard, contact, identities of `--config`. Or taken from
an archive, with nothing fetched.
"""

from __future__ import annotations

import code
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skitter.collection.collection import Collection
from skitter.console.display.output import write
from skitter.console.read.inspect import explain
from skitter.errors import UsageError
from skitter.extend.page import Page
from skitter.extend.try_out import extract_items
from skitter.folder import CrawlFolder
from skitter.runtime.from_python import crawl
from skitter.seeds import https_form

_NO_PAGE = 300
_HINT = """\
page.first("h1")   page.css("a")   page.xpath("//h2/text()")   page.number(".price")   page.data   page.tables
css(...), xpath(...), first(...) are those of this page; items() runs {plugins}; Ctrl-D ends"""


def run_shell(
    url: str,
    folder: Path | str | None,
    config: Path | None,
    settings: dict[str, Any],
    plugins: Sequence[str],
    commands: Sequence[str],
) -> None:
    page = _archived(url, folder) if folder is not None else _fetched(url, config, settings)
    names = _names(page, plugins)
    for command in commands:
        _run(command, names)
    if not commands:
        hint = _HINT.format(plugins=", ".join(plugins) or "the plugins of --with")
        code.interact(
            banner=f"{page!r}, {page.media_type}, {len(page.body):,} bytes\n{hint}", local=names, exitmsg=""
        )


def _names(page: Page, plugins: Sequence[str]) -> dict[str, Any]:
    import skitter

    return {
        "page": page,
        "skitter": skitter,
        "css": page.css,
        "xpath": page.xpath,
        "first": page.first,
        "items": lambda *more: extract_items(page, (*plugins, *more)),
    }


def _run(command: str, names: dict[str, Any]) -> None:
    """An expression is shown, a statement carried out, as at the prompt."""
    try:
        made = eval(compile(command, "<shell>", "eval"), names)
    except SyntaxError:
        try:
            exec(compile(command, "<shell>", "exec"), names)
        except Exception as error:
            raise UsageError(f"{command}: {type(error).__name__}: {error}") from None
        return
    except Exception as error:
        raise UsageError(f"{command}: {type(error).__name__}: {error}") from None
    if made is not None:
        write(f"{made!r}\n" if not isinstance(made, str) else f"{made}\n")


def _archived(url: str, folder: Path | str) -> Page:
    with Collection.at(folder) as collection:
        return collection.page(url)


def _fetched(url: str, config: Path | None, settings: dict[str, Any]) -> Page:
    """By a crawl of one page, into a folder that is gone afterwards. A redirect within the site is followed."""
    seed = url if "://" in url else https_form(url) or url
    with tempfile.TemporaryDirectory(prefix="skitter-shell-") as name:
        given = {
            "crawl.max_pages": 1,
            "crawl.linger": 20.0,
            "sitemaps.use": "off",
            "traps.mode": "off",
            **settings,
        }
        into = Path(name) / "crawl"
        page = next(iter(crawl((seed,), into, given, config)), None)
        if page is None:
            raise UsageError(f"{url} was not fetched: {_why(into, seed)}")
        _ = page.links  # read while nothing else runs
        return page


def _why(into: Path, url: str) -> str:
    import asyncio
    import json

    from skitter.settings.load import load

    folder = CrawlFolder.existing(into)
    told = asyncio.run(explain(folder, load(crawl_file=folder.settings_file).settings, url, as_json=True))
    found: dict[str, Any] = json.loads(told)
    last: dict[str, Any] = found["fetches"][-1] if found["fetches"] else {"status": 0, "detail": ""}
    if last["status"] >= _NO_PAGE:
        return f"it was answered with {last['status']}"
    said: str = found["reason"] or last["detail"] or found["waits"] or found["state"]
    return said
