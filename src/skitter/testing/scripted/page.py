"""One page of the scripted web, and what its scripts ask for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

HTML, SCRIPT, JSON = "text/html; charset=utf-8", "text/javascript", "application/json"


class ScriptedPage(NamedTuple):
    """`answers` has a type and a body by path; `finds` are the paths that a good rendering links to."""

    name: str
    html: str
    answers: Mapping[str, tuple[str, bytes]] = MappingProxyType({})
    finds: tuple[str, ...] = ("/found",)

    @property
    def url(self) -> str:
        return f"http://{self.name}.invalid/"


_START = """<!DOCTYPE html><title>{title}</title><body><div id=root></div><script>
const add = (name = "found") => {{
  const link = document.createElement("a");
  link.href = "/" + name;
  link.textContent = "what came late, and says enough to be seen, and then some more of it";
  document.body.append(link);
}};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const json = (path) => fetch(path).then((answer) => answer.json());
</script>"""


def scripted(
    name: str, script: str, answers: dict[str, str] | None = None, *, tag: str = "script"
) -> ScriptedPage:
    """A page with helpers `add`, `wait` and `json`, and this script. Answers are scripts, JSON or HTML by their
    path's ending."""
    html = _START.format(title=name) + f"<{tag}>{script}</script>"
    told = {path: (type_of(path), body.encode()) for path, body in (answers or {}).items()}
    return ScriptedPage(name, html, told)


def type_of(path: str) -> str:
    return SCRIPT if path.endswith(".js") else HTML if path.endswith(".html") else JSON
