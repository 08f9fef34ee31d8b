// All hosts: the busiest first, by standing and by a part of their name. The filter is in the address.

import { at, get } from "../api.js";
import { el, empty, page, panel, Rows, table } from "../dom.js";
import { Live } from "../live.js";
import { amend, hostPage } from "../router.js";
import { count, pill, plain, plural, seconds, size, start } from "../words.js";

const LIMIT = 200;
const STANDINGS = ["active", "waiting", "idle", "backing_off", "given_up", "blocked"];
const COLUMNS = ["Host", "Standing", "Queued#", "Fetched#", "Failed#", "Received#", "Delay#", "Next start#"];

export function hosts(place) {
  const wanted = { search: place.query.get("search") || "", standing: place.query.get("standing") || "" };
  const list = el("div");
  const { element: shown, body } = table(...COLUMNS);
  const rows = new Rows(body, row);
  const live = new Live(list, () => get(at("/v1/hosts", { ...wanted, limit: LIMIT })), ({ hosts: found }) => {
    rows.show(found, (host) => host.host);
    return found.length ? [shown, many(found.length)] : none(wanted);
  });
  const change = (name, value) => {
    wanted[name] = value;
    amend("hosts", [], wanted);
    live.refresh();
  };
  const element = page("Hosts", null, panel(null, {}, filters(wanted, change), list));
  return { title: "Hosts", element, every: 10, refresh: () => live.refresh() };
}

function none({ search, standing }) {
  return empty(search || standing ? "No host matches this filter." : "No host is known yet.");
}

function many(number) {
  const words = number < LIMIT ? plural(number, "host") : `The busiest ${count(LIMIT)}; search for others.`;
  return el("p", { class: "note" }, words);
}

function filters(wanted, change) {
  const search = el("input", {
    type: "search",
    id: "search",
    value: wanted.search,
    placeholder: "part of a name",
    "aria-label": "Search hosts",
    spellcheck: "false",
  });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => change("search", search.value.trim()), 200);
  });
  const standing = el(
    "select",
    { id: "standing", "aria-label": "Standing" },
    el("option", { value: "" }, "any standing"),
    STANDINGS.map((name) => el("option", { value: name, selected: name === wanted.standing }, plain(name))),
  );
  standing.addEventListener("change", () => change("standing", standing.value));
  return el("form", { class: "row filter", onsubmit: (event) => event.preventDefault() }, search, standing);
}

function row(host) {
  const number = (name, value, isZero = false) =>
    el("td", { class: isZero ? "number zero" : "number", "data-name": name }, value);
  return el(
    "tr",
    {},
    el("td", { class: "wide" }, el("a", { class: "url", href: hostPage(host.host) }, host.host)),
    el("td", { class: "plain" }, pill(host.standing)),
    number("Queued", count(host.queued), !host.queued),
    number("Fetched", count(host.fetched), !host.fetched),
    number("Failed", count(host.failed), !host.failed),
    number("Received", size(host.bytes), !host.bytes),
    el("td", { class: "number", "data-name": "Delay", title: host.delay_why }, seconds(host.delay)),
    number("Next start", host.queued ? start(host.next_start) : "–", !host.queued),
  );
}
