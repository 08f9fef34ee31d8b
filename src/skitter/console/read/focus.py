"""`skitter focus train` and `skitter focus score`: a topic from example pages, and pages before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from skitter.console.display.output import write
from skitter.console.display.table import table
from skitter.errors import UsageError
from skitter.focus.classifier import TooFewExamples, train
from skitter.focus.model_file import read_model, write_model
from skitter.parse.page import read_page

_TYPES = {".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".txt": "text/plain"}
_SHOWN = 12


def run_train(folders: Sequence[Path], to: Path, *, as_json: bool) -> None:
    if len(folders) != 2:
        raise UsageError("train takes two folders: skitter focus train good/ bad/")
    good, bad = ([_text_of(page) for page in _pages_in(folder)] for folder in folders)
    try:
        model = train(good, bad)
    except TooFewExamples as error:
        raise UsageError(str(error)) from None
    write_model(to, model)
    told = {"model": str(to), "good": model.good, "bad": model.bad, "right": model.right}
    if as_json:
        write(
            msgspec.json.encode({**told, "words": len(model.weights), "telling": model.telling}).decode()
            + "\n"
        )
        return
    write(
        f"{len(model.weights):,} words of {model.good} good and {model.bad} bad pages in {to}\n"
        f"{model.right} of {model.good + model.bad} are told apart by what the others teach\n"
        f"words of the topic: {', '.join(model.telling[:_SHOWN])}\n"
    )


def run_score(pages: Sequence[Path], model_file: Path, *, as_json: bool) -> None:
    model = read_model(model_file)
    files = [page for path in pages for page in (_pages_in(path) if path.is_dir() else [path])]
    scores = {str(page): round(model.score(_text_of(page)), 3) for page in files}
    if as_json:
        write(msgspec.json.encode(scores).decode() + "\n")
        return
    ranked = sorted(scores.items(), key=lambda each: -each[1])
    write("\n".join(table([("score", "page"), *((f"{score:.3f}", page) for page, score in ranked)])) + "\n")


def _pages_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder: put example pages (.html, .txt) into one")
    pages = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _TYPES and path.is_file())
    if not pages:
        raise UsageError(
            f"{folder} has no page: put some into it as .html or .txt (skitter show DIR URL > x.html)"
        )
    return pages


def _text_of(path: Path) -> str:
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    kind = _TYPES.get(path.suffix.lower(), "text/html")
    page = read_page(body, url=f"file://{path.absolute()}", content_type=kind, with_text=True)
    return f"{page.title}\n{page.text}"
