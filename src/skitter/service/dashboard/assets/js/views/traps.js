// What the crawl stopped because its pages turned out alike, with the evidence; a verdict can be undone.

import { get, isOperator, post } from "../api.js";
import { confirm, doing, notify } from "../dialog.js";
import { el, empty, page, panel, Rows, table } from "../dom.js";
import { Live } from "../live.js";
import { hostPage, urlPage } from "../router.js";
import { ago, count, plain, plural, size } from "../words.js";

export function traps() {
  const list = el("div");
  const columns = ["Host and pattern", "Kind", "Fetched#", "New#", "Refused#", "Bytes#", "Found#"];
  const { element: shown, body } = table(...columns, ...(isOperator() ? [""] : []));
  const rows = new Rows(body, (trap) => row(trap, () => live.refresh()));
  const live = new Live(list, () => get("/v1/traps"), (found) => {
    rows.show(found.traps, (trap) => trap.id);
    return found.traps.length ? shown : empty("No trap was found so far.");
  });
  return {
    title: "Traps",
    element: page("Traps", null, panel(null, {}, list)),
    every: 10,
    refresh: () => live.refresh(),
  };
}

function row(trap, changed) {
  const number = (name, words) => el("td", { class: "number", "data-name": name }, words);
  return el(
    "tr",
    {},
    el("td", { class: "wide" }, pattern(trap)),
    el(
      "td",
      { class: "plain" },
      el("span", { class: trap.ended ? "pill" : "pill warn" }, plain(trap.ended || trap.kind)),
    ),
    number("Fetched", count(trap.fetched)),
    number("New", count(trap.novel)),
    number("Refused", count(trap.refused)),
    number("Bytes", size(trap.bytes)),
    number("Found", ago(trap.at)),
    isOperator() ? el("td", { class: "act" }, trap.ended ? null : undoButton(trap, changed)) : null,
  );
}

function pattern(trap) {
  const such = trap.examples.slice(0, 1).map((
    url,
  ) => ["Such as ", el("a", { class: "url", href: urlPage(url) }, url)]);
  return [
    el("a", { class: "url", href: hostPage(trap.host) }, trap.host),
    el("div", { class: "url" }, trap.skeleton),
    el("div", { class: "note" }, trap.why),
    el("div", { class: "note" }, such),
  ];
}

function undoButton(trap, changed) {
  const label = `Undo the verdict on ${trap.skeleton}`;
  const button = el("button", { type: "button", class: "small", "aria-label": label }, "Undo");
  const words = `What was refused (${plural(trap.refused, "URL")} of ${trap.host}) is queued again, and ` +
    `${trap.skeleton} is not judged any more.`;
  return doing(button, async () => {
    if (!(await confirm("Undo this verdict?", words, "Undo the verdict"))) return;
    const { released } = await post(`/v1/traps/${trap.id}/undo`);
    notify(`The verdict is undone, ${plural(released, "URL is", "URLs are")} queued again.`);
    changed();
  });
}
