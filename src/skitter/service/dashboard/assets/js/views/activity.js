// Who works and who is idle, which hosts they hold, and what was fetched last.

import { at, get } from "../api.js";
import { el, empty, panel, Rows, table } from "../dom.js";
import { Live } from "../live.js";
import { hostPage, urlPage } from "../router.js";
import { ago, answer, count, plural, seconds, size } from "../words.js";

const MOST_LEASES = 10;
const LAST = 12;
const DOING = { working: "busy", idle: "calm", silent: "bad" };

const number = (name, words) => el("td", { class: "number", "data-name": name }, words);
const link = (href, words) => el("td", { class: "wide" }, el("a", { class: "url", href }, words));

export function workers() {
  const place = el("div");
  const { element: who, body: whose } = table("Worker", "Doing", "Hosts#", "Tasks#", "In flight#", "Heard of#");
  const { element: held, body: what } = table("Host", "Worker", "Tasks#", "Ends#");
  const workerRows = new Rows(whose, workerRow);
  const leaseRows = new Rows(what, leaseRow);
  const load = async () => ({
    ...(await get("/v1/workers")),
    ...(await get(at("/v1/leases", { limit: 1000 }))),
  });
  const live = new Live(place, load, ({ workers: found, leases }) => {
    workerRows.show(found, (worker) => worker.worker);
    leaseRows.show(leases.slice(0, MOST_LEASES), (lease) => lease.host);
    return [
      found.length ? who : null,
      leases.length
        ? [el("p", { class: "note under-table" }, leaseWords(leases.length)), held]
        : empty("No lease is out: nobody works, or nothing is ready."),
    ];
  });
  return {
    elements: panel("Workers and leases", { span: 5, id: "workers", isShort: true }, place),
    refresh: () => live.refresh(),
  };
}

function leaseWords(all) {
  return all > MOST_LEASES
    ? `${plural(all, "lease")}; the ${count(MOST_LEASES)} that end first:`
    : `${plural(all, "lease")}:`;
}

function workerRow(worker) {
  return el(
    "tr",
    {},
    el("td", { class: "wide" }, worker.worker),
    el("td", { class: "plain" }, el("span", { class: `pill ${DOING[worker.doing] || "calm"}` }, worker.doing)),
    number("Hosts", count(worker.hosts)),
    number("Tasks", count(worker.tasks)),
    number("In flight", worker.in_flight === null ? "–" : count(worker.in_flight)),
    number("Heard of", ago(worker.heard_at)),
  );
}

function leaseRow(lease) {
  return el(
    "tr",
    {},
    link(hostPage(lease.host), lease.host),
    el("td", { class: "wide" }, lease.worker),
    number("Tasks", count(lease.tasks)),
    number("Ends", ago(lease.deadline)),
  );
}

export function lastFetches() {
  const place = el("div");
  const { element, body } = table("URL", "Answer", "When#", "Took#", "Size#");
  const rows = new Rows(body, (one) =>
    el(
      "tr",
      {},
      link(urlPage(one.url), one.url),
      el("td", { class: "wide" }, became(one)),
      number("When", ago(one.at)),
      number("Took", seconds(one.seconds)),
      number("Size", size(one.size)),
    ));
  const live = new Live(place, () => get(at("/v1/fetches", { limit: LAST })), ({ fetches }) => {
    rows.show(fetches, (one) => `${one.at} ${one.url}`);
    return fetches.length ? element : empty("Nothing was fetched since the server began.");
  });
  return {
    elements: panel("Last fetched", { span: 12, id: "last" }, place),
    refresh: () => live.refresh(),
  };
}

function became({ status, failure, detail }) {
  const more = detail === `status ${status}` ? "" : detail;
  return answer({ result: failure || "answered", status, detail: more, isBad: Boolean(failure) });
}
