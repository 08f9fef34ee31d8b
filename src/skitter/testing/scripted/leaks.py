"""One page that tries every way out of a browser that we know of, towards an address that listens.

For tests of whatever must not let a page out. Loads nothing itself: whoever shows it serves it.
"""
# ruff: noqa: E501
# A way out, or a page, is read more easily on one line.

from __future__ import annotations

from collections.abc import Sequence

DONE = "every way was tried"

_ELEMENTS = """
<link rel=preconnect href="http://ADDRESS/"><link rel=dns-prefetch href="http://ADDRESS/">
<link rel=prefetch href="http://ADDRESS/prefetch"><link rel=preload as=script href="http://ADDRESS/preload">
<link rel=modulepreload href="http://ADDRESS/modulepreload"><link rel=prerender href="http://ADDRESS/prerender">
<link rel=stylesheet href="http://ADDRESS/style"><link rel=icon href="http://ADDRESS/icon">
<link rel=manifest href="http://ADDRESS/manifest"><link rel=next href="http://ADDRESS/next">
<link rel=search type="application/opensearchdescription+xml" href="http://ADDRESS/search">
<meta http-equiv=Content-Security-Policy-Report-Only content="img-src 'none'; report-uri http://ADDRESS/csp">
<script type=speculationrules>{"prefetch":[{"source":"list","urls":["http://ADDRESS/spec"],"eagerness":"immediate"}],
"prerender":[{"source":"list","urls":["http://ADDRESS/specrender"],"eagerness":"immediate"}]}</script>
<style>@import url("http://ADDRESS/import"); @font-face { font-family: f; src: url("http://ADDRESS/font"); }
body { font-family: f; background: url("http://ADDRESS/background"); cursor: url("http://ADDRESS/cursor"), auto; }
li { list-style-image: url("http://ADDRESS/list"); } b { content: url("http://ADDRESS/content"); }</style>
<img src="http://ADDRESS/img" srcset="http://ADDRESS/srcset 2x"><picture><source srcset="http://ADDRESS/source"><img>
</picture><video src="http://ADDRESS/video" poster="http://ADDRESS/poster" autoplay muted></video>
<audio src="http://ADDRESS/audio" autoplay></audio><video><track default src="http://ADDRESS/track"></video>
<iframe src="http://ADDRESS/frame"></iframe><iframe src="file:///etc/passwd"></iframe>
<iframe srcdoc="<img src='http://ADDRESS/srcdoc'>"></iframe><object data="http://ADDRESS/object"></object>
<embed src="http://ADDRESS/embed"><svg><image href="http://ADDRESS/svg"/><use href="http://ADDRESS/use#x"/></svg>
<input type=image src="http://ADDRESS/input"><body background="http://ADDRESS/body"><ul><li>x</ul><b>x</b>
<a id=ping href="http://ADDRESS/click" ping="http://ADDRESS/ping" target=_blank>x</a>
<a id=download href="http://ADDRESS/download" download>x</a>
<form id=form action="http://ADDRESS/form" method=post target=hole><input name=a></form><iframe name=hole></iframe>
<script src="http://ADDRESS/script"></script><script type=module src="http://ADDRESS/module"></script>
"""

_WAYS = (
    'fetch("http://ADDRESS/fetch", {mode: "no-cors"})',
    'fetch("http://ADDRESS/keepalive", {method: "POST", body: "x", keepalive: true, mode: "no-cors"})',
    'fetchLater("http://ADDRESS/later", {activateAfter: 0})',
    '{ const x = new XMLHttpRequest(); x.open("GET", "http://ADDRESS/xhr"); x.send(); }',
    '{ const x = new XMLHttpRequest(); x.open("GET", "http://ADDRESS/sync", false); x.send(); }',
    'navigator.sendBeacon("http://ADDRESS/beacon", "x")',
    'new WebSocket("ws://ADDRESS/ws")',
    'new WebSocket("wss://ADDRESS/wss")',
    'new WebSocketStream("ws://ADDRESS/stream")',
    'new WebTransport("https://ADDRESS/transport")',
    'new EventSource("http://ADDRESS/events")',
    '{ const p = new RTCPeerConnection({iceServers: [{urls: "stun:ADDRESS"}]}); p.createDataChannel("x");'
    " p.createOffer().then((o) => p.setLocalDescription(o)); }",
    '{ const p = new RTCPeerConnection({iceServers: [{urls: "turn:ADDRESS?transport=tcp", username: "a", credential:'
    ' "b"}, {urls: "turn:ADDRESS", username: "a", credential: "b"}]}); p.createDataChannel("x");'
    " p.createOffer().then((o) => p.setLocalDescription(o)); }",
    'new Worker("http://ADDRESS/worker")',
    'new Worker(URL.createObjectURL(new Blob([\'fetch("http://ADDRESS/inworker", {mode: "no-cors"});'
    'new WebSocket("ws://ADDRESS/workerws")\'])))',
    "new Worker(URL.createObjectURL(new Blob(['importScripts(\"http://ADDRESS/importscripts\")'])))",
    'new SharedWorker("/shared.js")',
    'navigator.serviceWorker.register("/service.js")',
    'CSS.paintWorklet.addModule("http://ADDRESS/paint")',
    'new AudioContext().audioWorklet.addModule("http://ADDRESS/audioworklet")',
    'import("http://ADDRESS/dynamic")',
    'open("http://ADDRESS/popup")',
    'document.getElementById("ping").click()',
    'document.getElementById("form").submit()',
    '{ const i = new Image(); i.src = "http://ADDRESS/newimage"; }',
    '{ const f = document.createElement("iframe"); document.body.append(f);'
    ' f.contentWindow.eval("fetch(\\"http://ADDRESS/blank\\", {mode: \\"no-cors\\"})"); }',
    '{ const f = document.createElement("iframe"); f.srcdoc = "<script>new WebSocket(\'ws://ADDRESS/framews\')<\\/script>";'
    " document.body.append(f); }",
    'navigator.credentials.get({identity: {providers: [{configURL: "http://ADDRESS/fedcm", clientId: "x"}]}})',
    'new PaymentRequest([{supportedMethods: "http://ADDRESS/pay"}], {total: {label: "x", amount: {currency: "EUR",'
    ' value: "1"}}}).canMakePayment()',
    '{ const f = new FontFace("g", "url(http://ADDRESS/fontface)"); f.load(); }',
    'fetch("http://ADDRESS/attribution", {mode: "no-cors", attributionReporting: {eventSourceEligible: true,'
    " triggerEligible: false}})",
    'navigator.registerProtocolHandler("web+x", location.origin + "/%s")',
    'new Request("http://ADDRESS/request") && fetch(new Request("http://ADDRESS/request", {mode: "no-cors"}))',
    'document.body.insertAdjacentHTML("beforeend", \'<img src="http://ADDRESS/inserted">\')',
    'history.pushState({}, "", "/elsewhere")',
)


def leak_page(addresses: Sequence[str]) -> str:
    """For each address: elements first, then scripts, each way on its own."""
    parts = ["<!DOCTYPE html><title>ways out</title>"]
    for address in addresses:
        parts.append(_ELEMENTS.replace("ADDRESS", address))
        for way in _WAYS:
            said = way.replace("ADDRESS", address)
            run = said if said.startswith("{") else f"Promise.resolve({said}).catch(() => {{}})"
            parts.append(f"<script>try {{ {run} }} catch {{}}</script>")
    leave = f"document.getElementById('download').click(); location.href = 'http://{addresses[0]}/navigated';"
    # Last: to leave a page ends the reading of the rest of it.
    parts.append(f"<script>document.body.append('{DONE}'); setTimeout(() => {{ {leave} }}, 500)</script>")
    return "".join(parts)


def ways(addresses: Sequence[str]) -> int:
    """How many there are, of one address."""
    return _ELEMENTS.count("ADDRESS") + sum(way.count("ADDRESS") > 0 for way in _WAYS) + bool(addresses)
