"""What is run in the browser beside the page: one script before the page's own, and two questions. Pure text.

The first script makes a page quiet and the same each time: no sockets that never open, no dialogs, the same
random numbers, the same time of day. It is for quiet and not for safety: a page may undo it. The questions are
asked in an isolated world, which the page cannot reach.
"""

from __future__ import annotations

import json

# Shadow roots are made serializable, or links inside of them would not be in the HTML.
_QUIET = """
(() => {
  const world = globalThis;
  const put = (object, name, value) => {
    try { Object.defineProperty(object, name, {value, writable: true, configurable: true}); } catch {}
  };
  class Unopened extends EventTarget {
    constructor(url) { super(); this.url = String(url); }
    close() {}
    send() {}
    get readyState() { return 0; }
    get bufferedAmount() { return 0; }
  }
  for (const [name, value] of [["CONNECTING", 0], ["OPEN", 1], ["CLOSING", 2], ["CLOSED", 3]]) {
    put(Unopened, name, value);
    put(Unopened.prototype, name, value);
  }
  for (const name of ["WebSocket", "EventSource"]) if (name in world) put(world, name, class extends Unopened {});
  for (const name of ["WebSocketStream", "WebTransport", "RTCPeerConnection", "webkitRTCPeerConnection",
      "RTCDataChannel", "SharedWorker", "PaymentRequest", "Notification", "fetchLater", "caches"])
    try { delete world[name]; } catch {}
  for (const name of ["alert", "print", "stop", "close", "focus", "blur", "moveTo", "resizeTo"])
    if (name in world) put(world, name, () => undefined);
  // A hundred popups, each of which stops the page for a while.
  if (world.document) world.addEventListener("click", (event) => {
    const link = event.target?.closest?.("a[target], area[target]");
    if (link && link.target !== "_self") event.preventDefault();
  }, true);
  // Every line goes to the browser's own process, which a flood of them kills.
  for (const name of Object.keys(console))
    if (typeof console[name] === "function") put(console, name, () => undefined);
  if ("confirm" in world) { put(world, "confirm", () => false); put(world, "prompt", () => null); }
  if ("open" in world) put(world, "open", () => null);
  if (world.Navigator) {
    for (const name of ["serviceWorker", "credentials", "geolocation", "bluetooth", "usb", "serial", "hid"])
      try { delete Navigator.prototype[name]; } catch {}
    put(Navigator.prototype, "sendBeacon", () => true);
  }
  if (world.Element && Element.prototype.attachShadow) {
    const attach = Element.prototype.attachShadow;
    put(Element.prototype, "attachShadow", function attachShadow(init) {
      return attach.call(this, {...init, serializable: true});
    });
  }
  let state = 0x9e3779b9;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  put(Math, "random", random);
  if (world.Crypto) {
    const fill = (array) => {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let at = 0; at < bytes.length; at++) bytes[at] = random() * 256;
      return array;
    };
    put(Crypto.prototype, "getRandomValues", fill);
    put(Crypto.prototype, "randomUUID", () => {
      const hex = [...fill(new Uint8Array(16))].map((byte, at) =>
        (at === 6 ? (byte & 15) | 64 : at === 8 ? (byte & 63) | 128 : byte)
          .toString(16).padStart(2, "0")).join("");
      return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
    });
  }
  const Real = Date, clock = performance.now.bind(performance), begun = clock();
  const elapsed = () => clock() - begun;
  let asked = 0;
  // Whole seconds, or two renderings of a page would ask for different URLs. A loop that waits sees it go on.
  const now = () => FETCHED_AT + Math.floor(elapsed() / 1000) * 1000 + (asked++ >> 12);
  function Frozen(...given) {
    if (!new.target) return new Real(now()).toString();
    return Reflect.construct(Real, given.length ? given : [now()], new.target);
  }
  Frozen.prototype = Real.prototype;
  Object.setPrototypeOf(Frozen, Real);
  put(Frozen, "name", "Date");
  put(Frozen, "length", 7);
  put(Frozen, "now", now);
  put(Real.prototype, "constructor", Frozen);
  put(world, "Date", Frozen);
})();
"""

WORLD = "skitter"

# Links and text, in shadow roots too; how much of it, not what. At most so many elements are looked at.
CHANGED = """
(() => {
  const seen = [0, 0];
  const look = (root) => {
    const all = root.querySelectorAll("*");
    seen[0] += root.querySelectorAll("a").length;
    seen[1] += (root.body || root).textContent.length;
    for (let at = 0; at < all.length && at < 20000; at++) if (all[at].shadowRoot) look(all[at].shadowRoot);
  };
  look(document);
  const moves = document.getAnimations ? document.getAnimations().some((each) =>
    each.playState === "running" &&
    Number.isFinite(each.effect?.getComputedTiming().endTime ?? Infinity)) : false;
  return [seen[0], seen[1] >> 6, moves ? 1 : 0];
})()
"""

PAGE_HEIGHT = (
    "Math.max(document.documentElement.scrollHeight, document.body ? document.body.scrollHeight : 0)"
)

_TAKEN = """
(() => {
  const most = MOST;
  const roots = [];
  const look = (root) => {
    for (const element of root.querySelectorAll("*"))
      if (element.shadowRoot) { roots.push(element.shadowRoot); look(element.shadowRoot); }
  };
  look(document);
  const top = document.documentElement;
  if (!top) return {html: "", cut: false, text: ""};
  const named = [...top.attributes].map((each) =>
    " " + each.name + '="' + each.value.replaceAll("&", "&amp;").replaceAll('"', "&quot;") + '"').join("");
  const name = top.localName;
  let html = "<!DOCTYPE html>\\n<" + name + named + ">" +
    top.getHTML({serializableShadowRoots: true, shadowRoots: roots}) + "</" + name + ">";
  const cut = html.length > most;
  if (cut) html = html.slice(0, most);
  const inside = roots.flatMap((root) => [...root.children].map((each) => each.innerText || ""));
  const shown = [(document.body || top).innerText || "", ...inside].filter(Boolean).join("\\n");
  return {html: html.toWellFormed(), cut, text: shown.slice(0, most).toWellFormed()};
})()
"""


def quiet(fetched_at: float) -> str:
    return _QUIET.replace("FETCHED_AT", json.dumps(int(fetched_at) * 1000))


def taken(most: int) -> str:
    return _TAKEN.replace("MOST", str(most))
