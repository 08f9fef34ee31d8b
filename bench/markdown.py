"""How many of a page's words its Markdown keeps: every word of `text`, against `skitter export --to markdown`.

    python -m bench.markdown [--pages 300]

Reads the pages of four Debian packages of documentation as the exports do: all of them, or as many of each as
`--pages` says, chosen at random. A page is whole if 95 % of the words of its text are in its Markdown, as often
as they are in the text; addresses of links do not count. A table, one JSON object as the last line; exit code 1
when less than 99 % of a package's pages are whole, 2 when a package is missing.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import msgspec

from bench._peers import complain, found, want
from bench._report import last_line, progress, table
from skitter.collection.export.markdown import markdown_of
from skitter.parse.page import read_page

PACKAGES = ("openjdk-17-doc", "python3-doc", "postgresql-doc-15", "cppreference-doc-en-html")
KEPT_WORDS = 0.95
WHOLE_PAGES = 0.99
SHOWN = 5
_TARGET = re.compile(r"\]\((?:[^()\s]|\([^()\s]*\))*(?: \"[^\"\n]*\")?\)")
# A table that Markdown cannot say is HTML in it; elsewhere `<int>` is code.
_HTML = re.compile(r"<table.*?</table>(?=\n|$| \|)", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_MARKS = re.compile(r"[*`~\[\]]+")


class Score(msgspec.Struct, frozen=True, kw_only=True):
    package: str
    pages: int
    whole: int
    least: float
    """The smallest share of words that a page keeps."""
    words: int
    ms_a_page: float
    """CPU of the conversion alone."""

    @property
    def share(self) -> float:
        return self.whole / self.pages if self.pages else 0.0


def words_in(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


def words_of_markdown(markdown: str) -> Counter[str]:
    """Of what a reader sees. Marks and tags within a word (`c_**str**`) may or may not part it: either counts."""
    return words_in(_shown(markdown, " ")) | words_in(_MARKS.sub("", _shown(markdown, "")))


def _shown(markdown: str, for_a_tag: str) -> str:
    without_tags = _HTML.sub(lambda found: unescape(_TAG.sub(for_a_tag, found[0])), markdown)
    return _ESCAPED.sub("", _TARGET.sub("]", without_tags))


def share_kept(text: str, markdown: str) -> float:
    wanted = words_in(text)
    kept = wanted & words_of_markdown(markdown)
    return kept.total() / wanted.total() if wanted else 1.0


def measure(package: str, folder: Path, files: Sequence[Path]) -> Score:
    shares: list[tuple[float, Path]] = []
    words, spent = 0, 0.0
    for file in files:
        body = file.read_bytes()
        url = f"https://docs.example.org/{file.relative_to(folder)}"
        content = read_page(body, url=url, content_type="text/html", with_text=True, max_links=0)
        begun = time.process_time()
        markdown = markdown_of(body, content)
        spent += time.process_time() - begun
        words += words_in(content.text).total()
        shares.append((share_kept(content.text, markdown), file))
    shares.sort()
    for share, file in shares[:SHOWN]:
        if share < KEPT_WORDS:
            progress(f"{share:.1%} of the words: {file}")
    return Score(
        package=package,
        pages=len(files),
        whole=sum(share >= KEPT_WORDS for share, _ in shares),
        least=round(shares[0][0], 4) if shares else 0.0,
        words=words,
        ms_a_page=round(spent * 1000 / max(1, len(files)), 2),
    )


def files_of(folder: Path, most: int, seed: int) -> list[Path]:
    files = sorted(folder.rglob("*.html"))
    return random.Random(seed).sample(files, most) if 0 < most < len(files) else files


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.markdown", description=__doc__)
    parser.add_argument("--pages", type=int, default=0, help="of each package; 0 is all")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(given)
    if absent := want(*PACKAGES):
        return complain("markdown", absent)
    scores = []
    for package in PACKAGES:
        folder = Path(found(package) or "").parent
        progress(package)
        scores.append(measure(package, folder, files_of(folder, arguments.pages, arguments.seed)))
    rows = [
        (one.package, one.pages, one.whole, f"{one.share:.2%}", f"{one.least:.1%}", one.ms_a_page)
        for one in scores
    ]
    print(table([("package", "pages", "whole", "share", "least kept", "ms a page"), *rows]))
    last_line({"bench": "markdown", "packages": [msgspec.to_builtins(one) for one in scores]})
    return 0 if all(one.share >= WHOLE_PAGES for one in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
