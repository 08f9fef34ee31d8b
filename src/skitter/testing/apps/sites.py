"""What the hosts of the web of apps answer: eight kinds of single-page shops, and static sites. Pure.

An app has `routes` pages: its front, lists of ten products each, and the products. Every route is answered with
the same shell; its links and words are there only when its scripts have run. Each kind gets there in another
way: a classic script or a module, XHR or fetch, data in one request or a chain of them, timers, a custom element
with a shadow root, data in the page itself. Scripts also ask for what robots.txt forbids, and for pictures. A
static site has as many pages, with links and text, and a script that only counts visitors.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import msgspec

STYLES = ("xhr", "fetch", "module", "chain", "timer", "element", "inline", "idle")
HTML, SCRIPT, JSON = "text/html; charset=utf-8", "text/javascript; charset=utf-8", "application/json"
_PER_LIST = 10
ROBOTS = "User-agent: *\nDisallow: /private/\n"
_SYLLABLES = "ba co du fe gi ho ju ka le mi no pu ra se ti vo wa xe yo zu".split()


class Page(NamedTuple):
    status: int
    content_type: str
    body: str


class AppsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """So many apps with so many routes each, and static sites with so many pages each."""

    apps: int = 8
    routes: int = 24
    sites: int = 2
    pages: int = 30

    @property
    def app_hosts(self) -> list[str]:
        return [f"app{number}.apps.test" for number in range(self.apps)]

    @property
    def site_hosts(self) -> list[str]:
        return [f"site{number}.static.test" for number in range(self.sites)]

    @property
    def seeds(self) -> list[str]:
        return [f"http://{host}/" for host in (*self.app_hosts, *self.site_hosts)]

    def paths(self, host: str) -> list[str]:
        """The pages that a crawl should find on a host."""
        return _routes(self.routes) if host.startswith("app") else _static_paths(self.pages)

    def answer(self, host: str, target: str) -> Page:
        path = target.partition("?")[0]
        if path == "/robots.txt":
            return Page(200, "text/plain", ROBOTS)
        if host in self.app_hosts:
            return _app(self.app_hosts.index(host), self.routes, path)
        if host in self.site_hosts:
            return _static(path, self.pages)
        return Page(404, "text/plain", "no such host")


def _routes(routes: int) -> list[str]:
    lists = _lists(routes)
    products = routes - 1 - lists
    return ["/", *(f"/list/{n}" for n in range(lists)), *(f"/item/{n}" for n in range(products))]


def _lists(routes: int) -> int:
    return max(1, (routes - 1 + _PER_LIST) // (_PER_LIST + 1))


def _links(path: str, routes: int) -> list[str]:
    known = _routes(routes)
    if path == "/":
        return [each for each in known if each.startswith("/list/")]
    if path.startswith("/list/"):
        first = int(path.rpartition("/")[2]) * _PER_LIST
        return [each for n in range(first, first + _PER_LIST) if (each := f"/item/{n}") in known]
    return ["/"]


def _text(name: str) -> str:
    """Words that no other page has: what is alike would be taken for a trap."""
    chosen = Random(name)
    words = ("".join(chosen.choices(_SYLLABLES, k=3)) for _ in range(60))
    return f"{name}: " + " ".join(words)


# -- apps


def _app(number: int, routes: int, path: str) -> Page:
    style = STYLES[number % len(STYLES)]
    known = _routes(routes)
    if path in known:
        return Page(200, HTML, _shell(style, number, path, routes))
    if path == "/assets/app.js":
        return Page(200, SCRIPT, _SCRIPTS[style])
    if path == "/assets/view.js":
        return Page(200, SCRIPT, f"{_DRAW}\nexport {{ draw }}")
    if path.startswith("/assets/more.js"):
        return Page(200, SCRIPT, "window.more = true")
    if path == "/api/config.json":
        return Page(200, JSON, msgspec.json.encode({"base": "/api/data"}).decode())
    if path.startswith("/api/data") and (route := path[len("/api/data") :].removesuffix(".json")) in known:
        return Page(200, JSON, _data(number, route, routes))
    return Page(404, HTML, "<!doctype html><title>Not found</title><p>There is nothing here.")


def _data(number: int, path: str, routes: int) -> str:
    name = f"shop {number} {path}"
    found = {"title": name, "text": _text(name), "links": _links(path, routes)}
    if path.startswith("/item/"):
        found["price"] = f"{int(path.rpartition('/')[2]) % 90 + 9}.50"
    return msgspec.json.encode(found).decode()


def _shell(style: str, number: int, path: str, routes: int) -> str:
    mount = "<shop-app></shop-app>" if style == "element" else '<div id="root"></div>'
    kind = ' type="module"' if style == "module" else ""
    inline = f"<script>window.state = {_data(number, path, routes)}</script>" if style == "inline" else ""
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>Shop {number}</title>"
        f'<link rel=stylesheet href="/assets/style.css"></head><body>'
        f"<noscript>You need to enable JavaScript to run this app.</noscript>{mount}{inline}"
        f'<script{kind} src="/assets/app.js"></script>'
        f'<script async src="/private/track.js"></script></body></html>'
    )


_DRAW = """
function draw(data, root) {
  document.title = data.title;
  const text = document.createElement('p'); text.textContent = data.text; root.append(text);
  if (data.price) {
    const price = document.createElement('span'); price.className = 'price'; price.textContent = data.price;
    root.append(price);
  }
  const nav = document.createElement('nav');
  for (const link of data.links) {
    const a = document.createElement('a'); a.href = link; a.textContent = 'to ' + link; nav.append(a);
  }
  root.append(nav);
  new Image().src = '/pictures' + location.pathname + '.png';
  navigator.sendBeacon('/beacon', 'seen');
}
"""
_HERE = "const here = '/api/data' + location.pathname + '.json';"
_ROOT = "const root = document.getElementById('root');"
_XHR = """const ask = new XMLHttpRequest(); ask.open('GET', here);
ask.onload = () => draw(JSON.parse(ask.responseText), root); ask.send();"""
_SCRIPTS = {
    "xhr": f"{_DRAW}{_HERE}{_ROOT}{_XHR}",
    "fetch": f"{_DRAW}{_HERE}{_ROOT}fetch(here).then(found => found.json()).then(data => draw(data, root));",
    "module": f"import {{ draw }} from './view.js';{_HERE}{_ROOT}draw(await (await fetch(here)).json(), root);",
    "chain": f"""{_DRAW}{_ROOT}
fetch('/api/config.json').then(found => found.json())
  .then(config => fetch(config.base + location.pathname + '.json'))
  .then(found => found.json()).then(data => draw(data, root));""",
    "timer": f"""{_DRAW}{_HERE}{_ROOT}setTimeout(() => {{
  const more = document.createElement('script'); more.src = '/assets/more.js';
  more.onload = () => setTimeout(() => {{ {_XHR} }}, 400); document.head.append(more); }}, 700);""",
    "element": f"""{_DRAW}{_HERE}customElements.define('shop-app', class extends HTMLElement {{
  connectedCallback() {{ const root = this.attachShadow({{mode: 'open'}});
    fetch(here).then(found => found.json()).then(data => draw(data, root)); }} }});""",
    "inline": f"{_DRAW}{_ROOT}draw(window.state, root);",
    "idle": f"""{_DRAW}{_HERE}{_ROOT}requestIdleCallback(() => requestAnimationFrame(() =>
  fetch(here).then(found => found.json()).then(data => draw(data, root))));""",
}


# -- static sites


def _static_paths(pages: int) -> list[str]:
    return ["/", *(f"/page/{number}.html" for number in range(1, pages))]


def _static(path: str, pages: int) -> Page:
    known = _static_paths(pages)
    if path == "/count.js":
        return Page(200, SCRIPT, "window.counted = true")
    if path not in known:
        return Page(404, HTML, "<!doctype html><title>Not found</title><p>There is nothing here.")
    at = known.index(path)
    near = [known[(at * 3 + step) % len(known)] for step in (1, 2, 3)]
    links = "".join(f'<li><a href="{each}">{_text(each)[:40]}</a>' for each in ["/", *near])
    paragraphs = "".join(f"<p>{_text(f'{path} {number}')}</p>" for number in range(4))
    return Page(
        200,
        HTML,
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>Page {path}</title>"
        f'<script src="/count.js"></script></head>'
        f"<body><h1>{path}</h1>{paragraphs}<ul>{links}</ul></body></html>",
    )
