// The one way in which elements are made: strings become text nodes. Nothing here or elsewhere parses HTML, so
// what the web says (titles, URLs, error texts) can be shown and cannot act.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map(
      node,
    ),
  );
  return element;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (value === true) element.setAttribute(name, "");
  else element.setAttribute(name, String(value));
}

export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map(
      node,
    ),
  );
  return element;
}

// Changes what is shown without disturbing who looks at it: the focus and scrolled boxes stay where they were.
export function steadily(change) {
  const focused = document.activeElement;
  const boxes = () => [...document.querySelectorAll("main .warm, main pre.text")];
  const before = boxes().map((box) => [box.scrollTop, box.scrollLeft]);
  change();
  boxes().forEach((box, place) => {
    if (before[place]) [box.scrollTop, box.scrollLeft] = before[place];
  });
  if (focused && focused !== document.activeElement) successor(focused)?.focus({ preventScroll: true });
}

// The element itself, or the one that took its place.
function successor(element) {
  if (element.isConnected) return element;
  const isAlike = (one) => one.href === element.href && one.textContent === element.textContent;
  return [...document.querySelectorAll(`main ${element.tagName}`)].find(isAlike);
}

// A link out of the dashboard. Whatever is not plainly http or https stays text: no javascript: from a crawled page.
export function outside(url, words = url) {
  if (!/^https?:\/\//i.test(url)) return el("span", { class: "url" }, words);
  return el("a", { class: "url", href: url, rel: "noreferrer noopener", target: "_blank" }, words);
}

// Rows of a table that keep their elements, and the focus in them, as long as what they show stays the same.
export class Rows {
  constructor(body, build) {
    this.body = body;
    this.build = build;
    this.kept = new Map();
  }

  show(items, key) {
    const now = new Map();
    for (const item of items) {
      const name = key(item);
      const text = JSON.stringify(item);
      const old = this.kept.get(name);
      now.set(name, old && old.text === text ? old : { text, row: this.build(item) });
    }
    const wanted = [...now.values()].map((one) => one.row);
    const stay = new Set(wanted);
    for (const row of [...this.body.children]) if (!stay.has(row)) row.remove();
    wanted.forEach((row, place) => {
      if (this.body.children[place] !== row) this.body.insertBefore(row, this.body.children[place] || null);
    });
    this.kept = now;
  }
}

// What every page begins with: its name, and what can be done there.
export function page(title, acts, ...parts) {
  const heading = el("div", { class: "heading" }, el("h1", { class: "grow" }, title), acts);
  return el("div", {}, heading, parts);
}

// Columns by name; one of numbers ends with a #.
export function table(...columns) {
  const heads = columns.map((name) => {
    const isNumber = name.endsWith("#");
    return el("th", { scope: "col", class: isNumber ? "number" : null }, isNumber ? name.slice(0, -1) : name);
  });
  const body = el("tbody");
  const element = el("table", { class: "stack" }, el("thead", {}, el("tr", {}, heads)), body);
  return { element, body };
}

export function panel(title, attributes = {}, ...children) {
  const { span = 12, note = null, isShort = false, ...rest } = attributes;
  const head = title
    ? el(
      "header",
      {},
      el("h2", {}, title),
      note && (note instanceof Node ? note : el("span", { class: "note" }, note)),
    )
    : null;
  return el("section", { class: `panel span-${span}${isShort ? " short" : ""}`, ...rest }, head, children);
}

export function facts(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs.filter((pair) => pair && pair[1] !== "" && pair[1] !== null && pair[1] !== undefined)
      .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

export function empty(words) {
  return el("p", { class: "empty" }, words);
}
export function loading(words = "loading") {
  return el("p", { class: "loading", role: "status" }, words);
}
export function fault(error, again) {
  return el(
    "div",
    { class: "fault", role: "alert" },
    el("p", {}, error.message || String(error)),
    again && el("button", { type: "button", class: "small", onclick: again }, "Try again"),
  );
}
