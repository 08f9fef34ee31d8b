// Failures as a table of hosts and kinds, each cell as dark as it is many. The numbers are in it: no colour is needed
// to read it.

import { el, empty } from "./dom.js";
import { hostPage, to } from "./router.js";
import { count, plain, short } from "./words.js";

const SHADES = 5;

// rows: [{ host, kinds: { kind: count } }]
export function heatMap(rows) {
  if (!rows.length) return empty("No failures lately.");
  const kinds = [...new Set(rows.flatMap((row) => Object.keys(row.kinds)))];
  const sum = (kind) => rows.reduce((total, row) => total + (row.kinds[kind] || 0), 0);
  kinds.sort((a, b) => sum(b) - sum(a));
  const most = Math.max(...rows.flatMap((row) => Object.values(row.kinds)));
  const shade = (value) =>
    value ? Math.max(1, Math.ceil((Math.log(value + 1) / Math.log(most + 1)) * SHADES)) : 0;
  const head = el(
    "tr",
    {},
    el("th", { scope: "col" }, "Host"),
    kinds.map((kind) =>
      el("th", { scope: "col", class: "kind" }, el("a", { href: to("urls", [], { why: kind }) }, plain(kind)))
    ),
    el("th", { scope: "col", class: "number" }, "All"),
  );
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", title: row.host }, el("a", { href: hostPage(row.host) }, row.host)),
      kinds.map((kind) => cell(row.host, kind, row.kinds[kind] || 0, shade)),
      el("td", { class: "sum" }, count(Object.values(row.kinds).reduce((total, one) => total + one, 0))),
    )
  );
  return el(
    "div",
    { class: "warm", tabindex: "0", role: "region", "aria-label": "Errors by host and kind" },
    el("table", { class: "heat" }, el("thead", {}, head), el("tbody", {}, body)),
  );
}

function cell(host, kind, value, shade) {
  return el(
    "td",
    { title: `${host}: ${count(value)} × ${plain(kind)}` },
    el("span", { class: `heat-${shade(value)}` }, value ? short(value) : "0"),
  );
}
