"""Pages whose one link appears by a script, sooner or later: what a rule for "this page is done" is measured on.

Three sets. The rule was made with the first in mind; the second has what such rules are known to miss, and made it
wait longer; the third was written last. One hand wrote them all: they show that the rule works, not how often.
"""
# ruff: noqa: E501
# A way out, or a page, is read more easily on one line.

from __future__ import annotations

from skitter.testing.scripted.page import ScriptedPage, scripted

_WORKER = "const worker = new Worker('/worker.js'); worker.onmessage = () => add(); worker.postMessage(1);"
_MODULE = "script type=module"

USUAL: tuple[ScriptedPage, ...] = (
    scripted("at-once", "add()"),
    scripted("timer-0", "setTimeout(add, 0, 'found')"),
    scripted("timer-1000", "setTimeout(add, 1000, 'found')"),
    scripted("timer-3500", "setTimeout(add, 3500, 'found')"),
    scripted("timer-chain", "(async () => { for (let n = 0; n < 5; n++) await wait(300); add(); })()"),
    scripted("fetch", "json('/one').then(() => add())", {"/one": "1"}),
    scripted(
        "fetch-chain",
        "json('/one').then(() => json('/two')).then(() => json('/three')).then(() => add())",
        {"/one": "1", "/two": "2", "/three": "3"},
    ),
    scripted(
        "fetch-and-timers",
        "(async () => { for (let n = 0; n < 6; n++) { await json('/n' + n); await wait(200); } add(); })()",
        {f"/n{n}": "1" for n in range(6)},
    ),
    scripted(
        "xhr",
        "const x = new XMLHttpRequest(); x.onload = () => add(); x.open('GET', '/x'); x.send();",
        {"/x": "1"},
    ),
    scripted("frame", "requestAnimationFrame(() => add())"),
    scripted(
        "thirty-frames",
        "let n = 0; const step = () => ++n < 30 ? requestAnimationFrame(step) : add(); step();",
    ),
    scripted("idle", "requestIdleCallback(() => add())"),
    scripted(
        "database",
        "const open = indexedDB.open('d', 1); open.onupgradeneeded = () => open.result.createObjectStore('s');"
        "open.onsuccess = () => { const put = open.result.transaction('s', 'readwrite').objectStore('s').put(1, 1);"
        "put.onsuccess = () => add(); };",
    ),
    scripted("worker", _WORKER, {"/worker.js": "onmessage = () => postMessage(1)"}),
    scripted(
        "polling",
        "let n = 0; const timer = setInterval(() => ++n === 5 && (clearInterval(timer), add()), 400)",
    ),
    scripted(
        "long-poll",
        "const poll = (n) => json('/poll' + n).then(() => n === 3 ? add() : poll(n + 1)); poll(1);",
        {"/poll1": "1", "/poll2": "1", "/poll3": "1"},
    ),
    scripted(
        "below-the-fold",
        "const low = document.createElement('p'); low.style.marginTop = '4000px'; low.textContent = 'low';"
        "document.body.append(low); new IntersectionObserver((seen) => seen[0].isIntersecting && add()).observe(low);",
    ),
    scripted(
        "import",
        "import('/module.js').then((module) => module.default())",
        {"/module.js": "export default () => globalThis.add()"},
        tag="script>globalThis.add = add;</script><script",
    ),
)

HARD: tuple[ScriptedPage, ...] = (
    scripted(
        "mutations",
        "new MutationObserver((_, me) => { me.disconnect(); wait(900).then(() => add()); })"
        ".observe(document.body, {childList: true}); setTimeout(() => document.body.append('x'), 500);",
    ),
    scripted(
        "message-channel",
        "const {port1, port2} = new MessageChannel(); port1.onmessage = () => add();port2.postMessage(1);",
    ),
    scripted(
        "custom-element",
        "customElements.define('x-late', class extends HTMLElement { connectedCallback() {"
        "wait(400).then(() => add()); } }); document.body.append(document.createElement('x-late'));",
    ),
    scripted(
        "shadow-root",
        "const host = document.createElement('div'); document.body.append(host);"
        "wait(300).then(() => { host.attachShadow({mode: 'closed'}).innerHTML = '<a href=/found>in the shadow</a>'; });",
    ),
    scripted(
        "worker-timer", _WORKER, {"/worker.js": "onmessage = () => setTimeout(() => postMessage(1), 800)"}
    ),
    scripted(
        "worker-fetch",
        _WORKER,
        {
            "/worker.js": "onmessage = () => fetch('/data').then((a) => a.json()).then(() => postMessage(1))",
            "/data": "1",
        },
    ),
    scripted(
        "web-animation",
        "const box = document.getElementById('root'); box.animate([{opacity: 0}, {opacity: 1}],"
        "600).finished.then(() => add());",
    ),
    scripted(
        "transition",
        "const box = document.getElementById('root'); box.style.transition = 'opacity 0.3s';"
        "box.ontransitionend = () => add(); box.textContent = 'x'; requestAnimationFrame(() => requestAnimationFrame("
        "() => { box.style.opacity = 0.5; }));",
    ),
    scripted(
        "sync-xhr",
        "const x = new XMLHttpRequest(); x.open('GET', '/x', false); x.send(); if (x.status === 200)add();",
        {"/x": "1"},
    ),
    scripted(
        "frame-message",
        "onmessage = () => add(); const f = document.createElement('iframe');"
        "f.srcdoc = '<script>parent.postMessage(1, \"*\")<\\/script>'; document.body.append(f);",
    ),
    scripted(
        "served-frame",
        "onmessage = () => add(); const f = document.createElement('iframe');"
        "f.src = '/frame.html'; document.body.append(f);",
        {"/frame.html": "<script>parent.postMessage(1, '*')</script>"},
    ),
    scripted(
        "document-write",
        "document.write('<a href=/found>written, and long enough to be counted as a text</a>')",
    ),
    scripted(
        "blob-script",
        "const s = document.createElement('script');"
        "s.src = URL.createObjectURL(new Blob(['add()'])); document.body.append(s);",
    ),
    scripted(
        "resize-observer",
        "new ResizeObserver((_, me) => { me.disconnect(); add(); })"
        ".observe(document.getElementById('root'));",
    ),
    scripted(
        "script-element",
        "const s = document.createElement('script'); s.src = '/late.js'; document.body.append(s);",
        {"/late.js": "setTimeout(add, 700, 'found')"},
    ),
    scripted("timer-4800", "setTimeout(add, 4800, 'found')"),
)

NEW: tuple[ScriptedPage, ...] = (
    scripted(
        "own-time-out",
        "Promise.race([json('/slow'), wait(1500).then(() => Promise.reject())])"
        ".then(() => add(), () => document.body.append('too late'))",
        {"/slow": "1"},
    ),
    scripted(
        "abort-signal",
        "fetch('/slow', {signal: AbortSignal.timeout(2000)}).then(() => add(), () =>"
        "document.body.append('too late'))",
        {"/slow": "1"},
    ),
    scripted(
        "fetch-again",
        "fetch('/missing').then((a) => a.ok ? 0 : wait(500)).catch(() => wait(500))"
        ".then(() => json('/there')).then(() => add())",
        {"/there": "1"},
    ),
    scripted(
        "worker-imports",
        _WORKER,
        {"/worker.js": "importScripts('/part.js')", "/part.js": "onmessage = () => postMessage(1)"},
    ),
    scripted(
        "module-worker",
        "const worker = new Worker('/worker.js', {type: 'module'});"
        "worker.onmessage = () => add(); worker.postMessage(1);",
        {"/worker.js": "import '/part.js'; onmessage = () => postMessage(1)", "/part.js": "1"},
    ),
    scripted(
        "stream",
        "fetch('/one').then(async (answer) => { const reader = answer.body.getReader();"
        "while (!(await reader.read()).done); add(); })",
        {"/one": "1"},
    ),
    scripted(
        "file-reader",
        "const reader = new FileReader(); reader.onload = () => add();reader.readAsText(new Blob(['x']));",
    ),
    scripted(
        "local-storage",
        "localStorage.setItem('a', '1'); setTimeout(() => localStorage.getItem('a') && add(), 600)",
    ),
    scripted(
        "router",
        "const show = () => location.pathname === '/list' && add(); history.pushState({}, '', '/list');"
        "json('/routes').then(show);",
        {"/routes": "[]"},
    ),
    scripted(
        "endless-scroll",
        "const end = document.createElement('p'); end.textContent = 'more';"
        "document.body.append(end); let n = 0; new IntersectionObserver((seen) => { if (seen[0].isIntersecting && n < 3)"
        "json('/page' + ++n).then(() => { const p = document.createElement('p'); p.textContent = 'row '.repeat(40);"
        "p.style.height = '3000px'; end.before(p); if (n === 3) add(); }); }).observe(end);",
        {f"/page{n}": "1" for n in (1, 2, 3)},
    ),
    scripted("top-level-await", "await json('/one'); await wait(300); add();", {"/one": "1"}, tag=_MODULE),
    scripted(
        "import-map",
        "import 'late';",
        {"/late-1.js": "setTimeout(add, 200, 'found')"},
        tag='script type=importmap>{"imports": {"late": "/late-1.js"}}</script><script>globalThis.add = add</script>'
        "<script type=module",
    ),
    scripted("load-event", "addEventListener('load', () => wait(800).then(() => add()))"),
    scripted(
        "if-visible",
        "if (document.visibilityState === 'visible' && navigator.onLine) wait(100).then(() => add())",
    ),
    scripted("media-query", "if (matchMedia('(min-width: 1000px)').matches) add();"),
    scripted(
        "wasm", "WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => add())"
    ),
    scripted("post-task", "scheduler.postTask(() => add(), {delay: 700, priority: 'background'})"),
    scripted(
        "broadcast",
        "const a = new BroadcastChannel('c'), b = new BroadcastChannel('c');"
        "a.onmessage = () => add(); b.postMessage(1);",
    ),
    scripted("crypto", "wait(200).then(() => crypto.randomUUID().length === 36 && add())"),
    scripted(
        "socket-first",
        "const s = new WebSocket('ws://' + location.host); s.onopen = () => {};"
        "s.onerror = () => document.body.append('no socket'); wait(1000).then(() => add());",
    ),
)

ALL = (*USUAL, *HARD, *NEW)
