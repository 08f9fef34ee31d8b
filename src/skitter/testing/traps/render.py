"""From a view to HTML. Pure, and cheap, because the server shares its cores with the crawler."""

from __future__ import annotations

from collections.abc import Iterable

from skitter.testing.traps.site import Link, View

_HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{}</title>{}</head><body>'
_WITH_LANDMARKS = "<nav><a href='/'>Home</a> {}</nav><main><h1>{}</h1>{}<ul>{}</ul></main></body></html>"
_WITHOUT = "<div><a href='/'>Home</a> {}</div><div><h1>{}</h1>{}<ul>{}</ul></div></body></html>"


def html(view: View, *, landmarks: bool) -> bytes:
    canonical = f'<link rel="canonical" href="{_escaped(view.canonical)}">' if view.canonical else ""
    paragraphs = "".join([f"<p>{text}</p>" for text in view.text])
    paragraphs += _table(view.rows) if view.rows else ""
    entries = "".join([f"<li>{anchor}</li>" for anchor in _anchors(view.entries)])
    body = (_WITH_LANDMARKS if landmarks else _WITHOUT).format(
        " ".join(_anchors(view.around)), view.title, paragraphs, entries
    )
    return (_HEAD.format(view.title, canonical) + body).encode()


def _table(rows: Iterable[Iterable[str]]) -> str:
    lines = ["".join([f"<td>{cell}</td>" for cell in row]) for row in rows]
    return f"<table>{''.join([f'<tr>{line}</tr>' for line in lines])}</table>"


def _anchors(links: Iterable[Link]) -> list[str]:
    """The words before a colon are what is clicked on."""
    anchors = []
    for href, words in links:
        clicked, colon, rest = words.partition(":")
        anchors.append(f'<a href="{_escaped(href)}">{clicked or href}</a>{colon}{rest}')
    return anchors


def _escaped(href: str) -> str:
    return href.replace("&", "&amp;").replace('"', "&quot;")
