"""Curves over time as one SVG, a panel a figure: for trials of hours, without a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _LEFT, _GAP = 900, 110, 90, 34


def chart(title: str, minutes: Sequence[float], panels: Mapping[str, Sequence[float]]) -> str:
    """All panels share the axis of `minutes`."""
    height = 40 + len(panels) * (_HEIGHT + _GAP)
    drawn = "".join(
        _panel(name, minutes, values, 40 + number * (_HEIGHT + _GAP))
        for number, (name, values) in enumerate(panels.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 20}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>{drawn}</svg>\n'
    )


def _panel(name: str, minutes: Sequence[float], values: Sequence[float], top: int) -> str:
    most, last = max(values, default=0) or 1.0, max(minutes, default=0) or 1.0
    points = " ".join(
        f"{_LEFT + at / last * _WIDTH:.1f},{top + _HEIGHT - value / most * (_HEIGHT - 14):.1f}"
        for at, value in zip(minutes, values, strict=True)
    )
    return (
        f'<text x="{_LEFT}" y="{top + 8}">{escape(name)}</text>'
        f'<text x="{_LEFT - 6}" y="{top + 18}" text-anchor="end">{most:,.4g}</text>'
        f'<text x="{_LEFT - 6}" y="{top + _HEIGHT}" text-anchor="end">0</text>'
        f'<text x="{_LEFT + _WIDTH}" y="{top + _HEIGHT + 14}" text-anchor="end">{last:,.0f} min</text>'
        f'<path d="M{_LEFT},{top + 12}V{top + _HEIGHT}H{_LEFT + _WIDTH}" stroke="#999" fill="none"/>'
        f'<polyline points="{points}" stroke="#1f5fa8" stroke-width="1.2" fill="none"/>'
    )
