// One host: how it is treated and why, what its robots.txt says, what it answered, and the operator's policy.

import { at, get, isOperator, post } from "../api.js";
import { TimeChart } from "../chart.js";
import { doing, notify } from "../dialog.js";
import { el, empty, facts, fill, loading, outside, panel, Rows, table } from "../dom.js";
import { Live } from "../live.js";
import { to, urlPage } from "../router.js";
import { policyForm } from "./policy.js";
import { ago, answer, count, pill, plain, plural, seconds, size, start } from "../words.js";

const MOST_SHOWN = 65536; // bytes of a robots.txt that the server tells

export function host(place) {
  const name = place.parts[0];
  const path = `/v1/hosts/${encodeURIComponent(name)}`;
  const treated = el("div");
  const robots = el("div", {}, loading());
  const requests = fetches();
  const show = (found) => {
    fill(robots, rules(found));
    requests.show(found.fetches);
    pace.show(found);
    return standing(found);
  };
  const without = () =>
    [robots, requests.element].forEach((part) => fill(part, empty("Nothing is known of it.")));
  const live = new Live(treated, () => get(at(`${path}/explain`, { fetches: 50 })), show, without);
  const policy = isOperator() ? policyForm(path, () => live.refresh()) : null;
  const pace = paceChart();
  const panels = [
    panel("How it is treated", { span: policy ? 7 : 12, id: "standing" }, treated),
    policy,
    panel("Its pace", { id: "pace" }, pace.element),
    panel("robots.txt", { id: "robots" }, robots),
    panel("Latest requests", { id: "fetches" }, requests.element),
  ];
  const again = isOperator() ? retryButton(path, () => live.refresh()) : null;
  const element = el("div", {}, heading(name, again), el("div", { class: "grid" }, panels));
  return { title: name, element, every: 5, refresh: () => live.refresh() };
}

function retryButton(path, changed) {
  const button = el("button", { type: "button", id: "retry" }, "Ask it again now");
  return doing(button, async () => {
    const { hosts } = await post(`${path}/retry`);
    notify(hosts.map((one) => retried(one)).join(" "));
    changed();
  });
}

function retried({ host, standing, queued, retries }) {
  if (standing === "blocked") return `${host} is blocked: clear its policy first.`;
  const back = retries ? `, ${plural(retries, "retry", "retries")} among them` : "";
  return `${host} waits for nothing but its delay: ${plural(queued, "URL")} queued${back}.`;
}

// Why it is asked as often as it is: in a sentence, and as its latest requests show it.
function paceChart() {
  const words = el("p", { class: "sentence-small" });
  const chart = new TimeChart({
    title: "Latest requests",
    series: ["from one request to the next", "answered in"],
    tints: ["series-1", "series-3"],
    words: seconds,
    height: 130,
  });
  const element = el("div", {}, words, chart.element);
  const show = ({ pace, fetches }) => {
    words.textContent = pace;
    const points = gaps(fetches);
    chart.element.hidden = points.length < 2;
    if (points.length > 1) chart.show(points, points[0].at, points.at(-1).at);
  };
  return { element, show };
}

// `fetches` are newest first; a point has the time since the request before, and how long the answer took.
function gaps(fetches) {
  const inOrder = [...fetches].reverse();
  return inOrder.slice(1).map((one, i) => ({ at: one.at, values: [one.at - inOrder[i].at, one.seconds] }));
}

function heading(name, again) {
  const letters = el("a", { href: to("dead", [], { host: name }) }, "its dead letters");
  const all = el("a", { href: to("urls", [], { host: name }) }, "its URLs");
  const under = el("p", { class: "under" }, outside(`${name}/`, "open the site"), " · ", all, " · ", letters);
  const title = el("div", { class: "grow" }, el("h1", { class: "url" }, name), under);
  return el("div", { class: "heading" }, title, again);
}

function standing({ view, worker, lease_until: until, last_failure: failure }) {
  return facts([
    ["Standing", [pill(view.standing), worker ? [` leased by ${worker} until `, ago(until)] : null]],
    ["Delay", [el("span", { id: "delay" }, seconds(view.delay)), el("span", { class: "note" }, view.delay_why)]],
    ["Next start", view.queued || worker ? start(view.next_start) : "when something is queued"],
    ["Queue", plural(view.queued, "URL")],
    ["Fetched", `${plural(view.fetched, "request")}, ${size(view.bytes)}`],
    ["Failed", [
      count(view.failed),
      view.failures_in_a_row
        ? el("span", { class: "note" }, `${view.failures_in_a_row} in a row, last ${plain(failure)}`)
        : null,
    ]],
    ["Denied", view.denied ? `${plural(view.denied, "URL")} by robots.txt` : ""],
    ["Answers in", view.response_ms ? `${count(view.response_ms)} ms, smoothed` : ""],
    ["Smallest gap", view.smallest_gap === null ? "" : seconds(view.smallest_gap)],
    ["Address", view.address],
    ["Policy", el("span", { id: "in-force" }, policyWords(view.policy))],
  ]);
}

export function policyWords(policy) {
  if (!policy) return "none: the crawl's settings hold";
  const set = [
    policy.delay === null || policy.delay === undefined ? "" : `a request every ${seconds(policy.delay)}`,
    policy.parallel ? `${count(policy.parallel)} in flight` : "",
    policy.budget === null || policy.budget === undefined
      ? ""
      : policy.budget
      ? `at most ${plural(policy.budget, "page")}`
      : "no page limit",
    policy.blocked ? "blocked" : "",
    policy.verify_tls === false ? "certificate not checked" : "",
  ];
  return set.filter(Boolean).join(", ") || "none: the crawl's settings hold";
}

function rules({ view, robots_text: words, robots_size: length, robots_at: read, robots_until: until }) {
  const about = el(
    "p",
    { class: "note" },
    view.robots,
    read ? [" · fetched ", ago(read), " · asked for again ", ago(until)] : null,
    length > MOST_SHOWN ? ` · the beginning of ${size(length)}` : null,
  );
  return words ? [about, el("pre", { class: "text", tabindex: "0", "aria-label": "robots.txt" }, words)] : about;
}

function fetches() {
  const place = el("div", {}, loading());
  const { element, body } = table("URL", "Answer", "When#", "Took#", "Size#");
  const rows = new Rows(
    body,
    (one) =>
      el(
        "tr",
        {},
        el(
          "td",
          { class: "wide" },
          one.url ? el("a", { class: "url", href: urlPage(one.url) }, one.url) : "unknown",
        ),
        el("td", { class: "wide" }, answer(one)),
        el("td", { class: "number", "data-name": "When" }, ago(one.at)),
        el("td", { class: "number", "data-name": "Took" }, seconds(one.seconds)),
        el("td", { class: "number", "data-name": "Size" }, size(one.size)),
      ),
  );
  const show = (found) => {
    rows.show(found, (one) => `${one.at} ${one.url}`);
    fill(place, found.length ? element : empty("It was not asked for anything yet."));
  };
  return { element: place, show };
}
