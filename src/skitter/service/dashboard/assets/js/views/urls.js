// One URL: how it was found, who decided what, every request for it, what comes next, and its archived copy.

import { at, get, text } from "../api.js";
import { el, empty, facts, outside, page, panel, table } from "../dom.js";
import { Live } from "../live.js";
import { hostPage, urlPage } from "../router.js";
import { ago, answer, count, pill, plural, seconds, size } from "../words.js";
import { title, urlList } from "./urllist.js";

const WHAT = "How it was found, what was decided and why, every request for it, and when it is due.";

const LISTED = ["state", "why", "host", "after"];

export function urls(place) {
  const wanted = Object.fromEntries(LISTED.map((name) => [name, place.query.get(name) || ""]));
  if (Object.values(wanted).some(Boolean)) return listed(wanted);
  const asked = place.query.get("url") || "";
  const shown = el("div", {}, empty(`Give a URL. ${WHAT}`));
  const element = page("Why is a URL where it is?", null, panel(null, {}, question(asked)), shown);
  if (!asked) return { title: "URLs", element };
  const live = new Live(shown, () => get(at("/v1/explain", { url: asked })), draw());
  return { title: asked, element, every: 5, refresh: () => live.refresh() };
}

function listed(wanted) {
  const list = urlList(wanted);
  const element = page(title(wanted), null, panel(null, {}, question("")), el("div", { class: "after" }, list.element));
  return { title: title(wanted), element, every: 10, refresh: list.refresh };
}

function question(asked) {
  const field = el("input", {
    type: "text",
    id: "asked",
    value: asked,
    required: true,
    spellcheck: "false",
    inputmode: "url",
    placeholder: "https://example.org/page",
    "aria-label": "URL",
  });
  const go = (event) => {
    event.preventDefault();
    location.hash = urlPage(field.value.trim());
  };
  return el(
    "form",
    { class: "row", onsubmit: go },
    field,
    el("button", { type: "submit", class: "main" }, "Explain"),
  );
}

// The copy is fetched once, and kept while the facts around it are refreshed.
function draw() {
  let copies = null;
  return (found) => {
    copies ||= found.known && found.fetches.some((one) => one.record) ? copy(found) : null;
    return el("div", { class: "grid after" }, decision(found), path(found), requests(found), copies);
  };
}

function decision(found) {
  return panel(
    "What was decided",
    { span: 7, id: "decision" },
    facts([
      ["URL", outside(found.url || found.asked)],
      ["State", [pill(found.state), found.reason ? el("span", { class: "note" }, found.reason) : null]],
      ["Waits", found.waits],
      ["Next", found.next_at === null ? "" : ago(found.next_at)],
      ["Admitted", found.admitted],
      ["robots.txt", found.robots],
      ["Title", found.title],
      ["Type", found.content_type],
      ["Priority", found.known ? `${count(found.priority)}, tier ${found.tier}` : ""],
      ["Attempts", found.attempts ? count(found.attempts) : ""],
      [
        "Resembles",
        found.resembles
          ? [
            el("a", { class: "url", href: urlPage(found.resembles) }, found.resembles),
            el("span", { class: "note" }, `${plural(found.distance, "bit")} of 64 differ`),
          ]
          : "",
      ],
      ["Resembling it", found.resembling ? plural(found.resembling, "page") : ""],
      ["Host", found.host ? el("a", { class: "url", href: hostPage(found.host) }, found.host) : ""],
      ["Key", found.key ? el("code", {}, found.key) : ""],
    ]),
  );
}

function path(found) {
  const steps = [...found.trail].reverse().map((url) =>
    el("li", {}, el("a", { class: "url", href: urlPage(url) }, url))
  );
  return panel(
    "How it was found",
    { span: 5, id: "trail", note: found.known ? found.found : null },
    found.known
      ? el("ol", { class: "trail" }, steps, el("li", {}, el("span", { class: "url" }, found.url)))
      : empty("No seed and no page named it so far."),
  );
}

function requests(found) {
  if (!found.known) return null;
  const { element, body } = table("When", "Answer", "Took#", "Size#", "From", "Record");
  body.append(
    ...[...found.fetches].reverse().map((one) =>
      el(
        "tr",
        {},
        el("td", { "data-name": "When" }, ago(one.at)),
        el("td", { class: "wide" }, answer(one)),
        el("td", { class: "number", "data-name": "Took" }, seconds(one.seconds)),
        el("td", { class: "number", "data-name": "Size" }, size(one.size)),
        el("td", { "data-name": "From" }, one.address || "–"),
        el("td", { class: "wide", "data-name": "Record" }, one.record ? el("code", {}, one.record) : "–"),
      )
    ),
  );
  return panel(
    "Every request for it",
    { span: 12, id: "requests" },
    found.fetches.length ? element : empty("It was not requested yet."),
  );
}

function copy(found) {
  const parts = [["Headers", "headers"], ["Text", "text"]].map(([title, name]) => {
    const place = el("div");
    const shown = el("pre", { class: "text", tabindex: "0", "aria-label": title });
    const live = new Live(place, () => text(`/v1/urls/${found.key}/${name}`), (words) => {
      shown.textContent = words;
      return words.trim() ? shown : empty("There is no text in it.");
    });
    live.refresh();
    return panel(title, { span: 6, id: `copy-${name}`, isShort: true }, place);
  });
  return parts;
}
