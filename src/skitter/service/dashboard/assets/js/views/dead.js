// Dead letters: URLs without hope, until somebody says otherwise. One, a host's, or all are queued again.

import { at, get, isOperator, post } from "../api.js";
import { confirm, doing, notify } from "../dialog.js";
import { el, empty, page, panel, Rows, table } from "../dom.js";
import { Live } from "../live.js";
import { amend, urlPage } from "../router.js";
import { ago, answer, count, plural } from "../words.js";

const LIMIT = 200;

export function dead(place) {
  const wanted = { host: place.query.get("host") || "" };
  const list = el("div");
  const { element: shown, body } = table("URL", "Why", "Attempts#", "Last#", ...(isOperator() ? [""] : []));
  const rows = new Rows(body, (letter) => row(letter, () => live.refresh()));
  const all = el("button", { type: "button", id: "requeue-all", disabled: true });
  const show = ({ dead_letters: found }) => {
    rows.show(found, (letter) => letter.url);
    all.disabled = !found.length;
    all.textContent = wanted.host ? "Requeue all of this host" : "Requeue all";
    return found.length ? [shown, many(found.length)] : none(wanted.host);
  };
  const ask = () => get(at("/v1/dead-letters", { host: wanted.host, limit: LIMIT }));
  const live = new Live(list, ask, show);
  doing(all, () => requeueAll(wanted.host, live));
  const filter = hostFilter(wanted, () => live.refresh());
  const element = page("Dead letters", isOperator() ? all : null, panel(null, {}, filter, list));
  return { title: "Dead letters", element, every: 5, refresh: () => live.refresh() };
}

function none(host) {
  return empty(host ? "This host has no dead letters." : "No dead letters. Nothing was given up.");
}

function many(number) {
  return el(
    "p",
    { class: "note" },
    number < LIMIT ? plural(number, "dead letter") : `The first ${count(LIMIT)}.`,
  );
}

function hostFilter(wanted, changed) {
  const field = el("input", {
    type: "search",
    id: "host",
    value: wanted.host,
    placeholder: "of one host: https://example.org",
    "aria-label": "Host",
    spellcheck: "false",
  });
  const apply = () => {
    wanted.host = field.value.trim();
    amend("dead", [], wanted);
    changed();
  };
  field.addEventListener("search", apply);
  return el(
    "form",
    {
      class: "row filter",
      onsubmit: (event) => {
        event.preventDefault();
        apply();
      },
    },
    field,
    el("button", { type: "submit" }, "Show"),
  );
}

function row(letter, changed) {
  const label = `Requeue ${letter.url}`;
  const again = el("button", { type: "button", class: "small", "aria-label": label }, "Requeue");
  const words = `${letter.url} is asked for again, with its attempts forgotten.`;
  doing(again, async () => {
    if (!(await confirm("Queue this URL again?", words, "Requeue"))) return;
    told(await post("/v1/dead-letters/requeue", { url: letter.url }));
    changed();
  });
  return el(
    "tr",
    {},
    el("td", { class: "wide" }, el("a", { class: "url", href: urlPage(letter.url) }, letter.url)),
    el("td", { class: "wide" }, answer({ ...letter, result: letter.kind, isBad: true })),
    el("td", { class: "number", "data-name": "Attempts" }, count(letter.attempts)),
    el("td", { class: "number", "data-name": "Last" }, ago(letter.at)),
    isOperator() ? el("td", { class: "act" }, again) : null,
  );
}

async function requeueAll(host, live) {
  const whose = host ? `All dead letters of ${host}` : "All dead letters of all hosts";
  const words = `${whose} are asked for again, with their attempts and their hosts' failures forgotten.`;
  if (!(await confirm("Queue them all again?", words, "Requeue all"))) return;
  told(await post("/v1/dead-letters/requeue", host ? { host } : { all: true }));
  live.refresh();
}

function told({ requeued }) {
  notify(`${plural(requeued, "URL is", "URLs are")} queued again.`);
}
