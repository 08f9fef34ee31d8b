"""The file of a model: read when a crawl starts, written by `skitter focus train`. Errors say what to do."""

from __future__ import annotations

from pathlib import Path

import msgspec

from skitter.errors import UsageError
from skitter.focus.classifier import FORMAT, Model


def read_model(path: Path | str) -> Model:
    try:
        model = msgspec.json.decode(Path(path).read_bytes(), type=Model)
    except OSError as error:
        raise UsageError(f"model {path} cannot be read ({error.strerror}): check focus.model") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no model ({error}): make one with skitter focus train") from None
    if model.format != FORMAT or not model.scale > 0:
        raise UsageError(f"{path} is of another version: make it again with skitter focus train")
    return model


def write_model(path: Path, model: Model) -> None:
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(model), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
