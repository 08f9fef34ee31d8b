// How fresh our copies are: expected and audited, by tier and host, and what it costs; now and over time.

import { get } from "../api.js";
import { el, empty, fill, page, panel, Rows, table } from "../dom.js";
import { Live } from "../live.js";
import { pastCharts } from "../past.js";
import { hostPage } from "../router.js";
import { ago, count, percent, plural, round, seconds, short } from "../words.js";

const DAY = 86400;
const RANGES = { "1 h": 3600, "6 h": 21600, "24 h": DAY, "7 days": 7 * DAY, "30 days": 30 * DAY };
const CHOICE = { ranges: RANGES, chosen: RANGES["24 h"] };
const days = (value) => seconds(value * DAY);

// What each chart shows of a step; the price spans powers of ten, so its words have two digits whatever its size.
const CHARTS = [
  chart("Current copies", ["by importance", "audited", "plain"], percent, (past, i) => [
    past.fresh[i],
    past.audited[i],
    past.fresh_plain[i],
  ], whole),
  chart("Age of copies", ["mean"], days, (past, i) => [past.age[i]]),
  chart("Visits a day", ["made", "budget"], count, (past, i, step) => [
    mean(past.visits, i, step) * DAY,
    past.budget[i] === null ? null : past.budget[i] * DAY,
  ], short),
  chart("Changes seen a day", ["changes"], count, (past, i, step) => [mean(past.changed, i, step) * DAY], short),
  chart("Visits wasted", ["found no change"], percent, (past, i, step) => [
    mean(past.visits, i, step) ? 1 - mean(past.changed, i, step) / mean(past.visits, i, step) : null,
  ], whole),
  chart("Price of a visit", ["days of freshness"], precise, (past, i) => [past.price[i]]),
];

// Visits are few and far between: what is counted is drawn as a mean over some steps, a twelfth of the chart.
const STEPS = 15;

function mean(counts, i, step) {
  const some = counts.slice(Math.max(0, i - STEPS + 1), i + 1);
  return some.reduce((sum, one) => sum + one, 0) / (some.length * step);
}

function chart(title, series, words, values, axis = words) {
  const tints = ["series-1", "series-3", "series-5"];
  const known = (past, i) => past.revisits ? values(past.revisits, i, past.step) : series.map(() => null);
  return { title, series, tints, words, axis, values: known };
}

function whole(share) {
  return `${Math.round(100 * share)} %`;
}

function precise(value) {
  return value ? Number(value.toPrecision(2)).toString() : "0";
}

export function freshness() {
  const drawn = pastCharts(CHARTS, CHOICE);
  const shown = [figures(), drawn, tiers(), hosts()];
  const grid = el("div", { class: "grid" }, shown.map((part) => part.elements));
  const state = el("div", { id: "freshness-state" });
  const live = new Live(state, () => get("/v1/freshness"), (found) => {
    grid.hidden = found.revisits === null;
    if (found.revisits === null) return panel(null, {}, empty(NOT_KEPT));
    shown.forEach((part) => part.show?.(found));
    return [];
  });
  return {
    title: "Freshness",
    element: page("Freshness", drawn.choice, state, grid),
    every: 10,
    refresh: () => Promise.all([live.refresh(), drawn.refresh()]),
  };
}

const NOT_KEPT = "This crawl is not kept fresh: no page is visited again. Start it with --keep-fresh to change that.";

// -- figures

function figure(name) {
  const value = el("div", { class: "value" }, "–");
  const note = el("div", { class: "note" });
  const element = el("section", { class: "panel figure span-3" }, el("div", { class: "name" }, name), value, note);
  return { element, value, note };
}

function figures() {
  const [fresh, age, changes, wasted] = ["Current copies", "Age of copies", "Changes a day", "Visits wasted"].map(figure);
  const show = ({ revisits, expected, expected_at }) => {
    const isKnown = expected !== null && expected.expected !== null;
    fill(fresh.value, isKnown ? percent(expected.expected) : "–");
    fill(fresh.note, isKnown ? audit(expected.audited, expected.audit_error, expected.audits) : "no page is watched yet");
    fill(age.value, isKnown ? days(expected.age) : "–");
    fill(age.note, `${plural(revisits.watched, "page")} watched`, isKnown ? [", looked through ", ago(expected_at)] : null);
    fill(changes.value, isKnown ? short(expected.changes_a_day) : "–", el("span", { class: "unit" }, "expected"));
    fill(changes.note, `${plural(revisits.changed, "change")} seen so far`);
    const share = revisits.visits ? percent(1 - revisits.changed / revisits.visits) : "–";
    fill(wasted.value, share);
    fill(wasted.note, `of ${plural(revisits.visits, "visit")}; ${late(revisits)}`);
  };
  return { elements: [fresh, age, changes, wasted].map((one) => one.element), show };
}

function audit(fresh, error, audits) {
  if (fresh === null || fresh === undefined) return "expected by importance; no audit yet";
  return `by importance; audited ${percent(fresh)} ± ${round(100 * error)} (${plural(audits, "visit")})`;
}

function late({ late, queued }) {
  return late > 3600 ? `the first is late by ${seconds(late)}` : `${count(queued)} queued`;
}

// -- by tier and host

function audited(found) {
  return found ? `${percent(found.fresh)} ± ${round(100 * found.error)}` : el("span", { class: "zero" }, "no audit yet");
}

function number(name, words) {
  return el("td", { class: "number", "data-name": name }, words);
}

function tiers() {
  const { element, body } = table("Tier", "Expected#", "Audited#", "Audits#");
  const rows = new Rows(body, ({ tier, expected, found }) =>
    el(
      "tr",
      {},
      el("td", { class: "wide" }, tier),
      number("Expected", percent(expected)),
      number("Audited", audited(found)),
      number("Audits", count(found?.audits ?? 0)),
    ));
  const place = panel("By tier", { span: 5, id: "tiers" }, element);
  const show = ({ expected }) =>
    rows.show(
      Object.entries(expected?.by_tier ?? {}).map(([tier, share]) => ({
        tier,
        expected: share,
        found: expected.audited_by_tier[tier] ?? null,
      })),
      (row) => row.tier,
    );
  return { elements: place, show };
}

function hosts() {
  const { element, body } = table("Host", "Pages#", "Expected#", "Audited#");
  const rows = new Rows(body, (host) =>
    el(
      "tr",
      {},
      el("td", { class: "wide" }, el("a", { class: "url", href: hostPage(host.host) }, host.host)),
      number("Pages", count(host.pages)),
      number("Expected", percent(host.expected)),
      number("Audited", audited(host.audited)),
    ));
  const place = panel("Hosts where most is missing", { span: 7, id: "stalest" }, element);
  return { elements: place, show: ({ expected }) => rows.show(expected?.hosts ?? [], (host) => host.host) };
}
