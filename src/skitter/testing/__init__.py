"""The synthetic web, shipped so that users can try their crawls on it before they let them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skitter.testing.plugins import run as run
    from skitter.testing.plugins import saved_page as saved_page


def __getattr__(name: str) -> Any:
    """`skitter.testing.run` tries out plugins on saved pages, and loads what they need."""
    if name not in ("run", "saved_page"):
        raise AttributeError(f"module 'skitter.testing' has no attribute {name!r}")
    from skitter.testing import plugins

    return getattr(plugins, name)
