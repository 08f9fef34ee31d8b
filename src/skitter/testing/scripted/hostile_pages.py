"""Pages that attack the browser which shows them: loops, floods, bombs and lies.

Each must get an ending within the hard limit, and the page after it must be rendered as if nothing had been.
"""

# ruff: noqa: E501
# A page is read more easily on one line.

from __future__ import annotations

from skitter.testing.scripted.page import ScriptedPage, scripted

_LIE = """
Object.defineProperty(document, 'documentElement', {get() { for (;;); }});
Object.defineProperty(Document.prototype, 'body', {get() { throw new Error('no'); }});
Object.defineProperty(Document.prototype, 'getElementsByTagName', {value: () => { for (;;); }});
Object.defineProperty(Document.prototype, 'querySelectorAll', {value: () => { for (;;); }});
Element.prototype.getHTML = () => 'a lie';
"""

_TOLD = {
    "loop": "for (;;);",
    "loop-later": "setTimeout(() => { for (;;); }, 200)",
    "loop-in-interval": "setInterval(() => { for (;;); }, 1)",
    "loop-of-promises": "const next = () => Promise.resolve().then(next); next();",
    "loop-of-messages": "const {port1, port2} = new MessageChannel(); port1.onmessage = () => port2.postMessage(1);"
    "port2.postMessage(1);",
    "loop-of-timers": "const again = () => { setTimeout(again, 0); setTimeout(again, 0); }; again();",
    "loop-of-fetches": "const again = () => fetch('/x' + Math.random()).catch(() => 0).then(again); again();",
    "frames-of-animation": "const again = () => { requestAnimationFrame(again); document.title = Math.random(); }; again();",
    "alerts": "for (;;) alert('again')",
    "confirms": "while (!confirm('stay?'));",
    "nodes-100000": "for (let n = 0; n < 100000; n++) document.body.append(document.createElement('p'));",
    "nodes-1000000": "const f = document.createDocumentFragment(); for (let n = 0; n < 1000000; n++)"
    "f.append(document.createElement('b')); document.body.append(f);",
    "deep": "let at = document.body; for (let n = 0; n < 100000; n++) { const d = document.createElement('div');"
    "at.append(d); at = d; }",
    "bomb-of-objects": "const all = []; for (;;) all.push({a: new Array(1000).fill(all.length)});",
    "bomb-of-buffers": "const all = []; for (;;) { const b = new Uint8Array(1 << 26); b.fill(1); all.push(b); }",
    "bomb-of-text": "let s = 'x'.repeat(1000); for (;;) { s += s; document.body.textContent = s; }",
    "bomb-of-canvas": "const all = []; for (;;) { const c = document.createElement('canvas'); c.width = c.height = 8000;"
    "c.getContext('2d').fillRect(0, 0, 9, 9); all.push(c); }",
    "bomb-of-wasm": "const all = []; for (;;) { const m = new WebAssembly.Memory({initial: 4000});"
    "new Uint8Array(m.buffer).fill(1); all.push(m); }",
    "frames-in-frames": 'const d = (n) => `<iframe srcdoc=\'${n ? d(n - 1).replaceAll("&", "&amp;")'
    '.replaceAll("\'", "&#39;") : "x"}\'></iframe>`; document.body.innerHTML = d(9).repeat(3);',
    "many-frames": "for (let n = 0; n < 300; n++) { const f = document.createElement('iframe'); f.srcdoc = n;"
    "document.body.append(f); }",
    "many-workers": "const u = URL.createObjectURL(new Blob(['for (;;);'])); for (let n = 0; n < 100; n++) new Worker(u);",
    "writes": "const again = () => { document.write('<p>again'.repeat(1000)); setTimeout(again, 0); }; again();",
    "reloads": "setInterval(() => location.reload(), 1)",
    "history": "for (let n = 0; ; n++) history.pushState({}, '', '/' + n);",
    "console": "for (;;) console.log('x'.repeat(10000));",
    "popups": "for (let n = 0; n < 100; n++) open('/popup' + n); const a = document.createElement('a'); a.href = '/p';"
    "a.target = '_blank'; document.body.append(a); for (let n = 0; n < 100; n++) a.click();",
    "lies": _LIE,
    "half-characters": "document.body.textContent = '\\ud800'.repeat(1000); document.title = '\\udfff';",
    "navigates": "setInterval(() => { location.href = '/' + Math.random(); }, 5)",
    "downloads": "setInterval(() => { const a = document.createElement('a'); a.download = 'x'; a.href ="
    "URL.createObjectURL(new Blob(['x'])); a.click(); }, 5)",
}

HOSTILE: tuple[ScriptedPage, ...] = tuple(
    scripted(name, script)._replace(finds=()) for name, script in _TOLD.items()
)
# Each in a second, and of every sort one: for a suite that runs often.
QUICK = ("lies", "half-characters", "reloads", "alerts", "downloads")
