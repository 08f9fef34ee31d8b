// The past as three charts: pages and failures, bytes, and what waits by tier, over a time that can be chosen.

import { at, get } from "../api.js";
import { TimeChart } from "../chart.js";
import { el, empty, panel } from "../dom.js";
import { Live } from "../live.js";
import { count, now, rate, round, short, size } from "../words.js";

const RANGES = { "15 min": 900, "1 h": 3600, "6 h": 21600, "24 h": 86400, "7 days": 604800 };
const STEPS = 180;
const SHORTEST = 60; // seconds that a chart spans at least
const TIERS = ["F0", "F1", "F2", "F3"];
let range = RANGES["15 min"]; // kept while other pages are looked at

// `values` says of a past and a step what each series has there.
const CHARTS = [
  {
    title: "Pages and failures",
    series: ["pages", "failures"],
    tints: ["series-1", "series-3"],
    words: rate,
    axis: round,
    values: (past, i) => [past.pages_per_second[i], failures(past, i) / past.step],
  },
  {
    title: "Bytes",
    series: ["received"],
    tints: ["series-1"],
    words: (value) => `${size(value)}/s`,
    axis: size,
    values: (past, i) => [past.bytes_per_second[i]],
  },
  {
    title: "Frontier by tier",
    series: ["F0, most urgent", "F1", "F2", "F3"],
    tints: ["series-1", "series-2", "series-3", "series-4"],
    words: count,
    axis: short,
    stacked: true,
    values: (past, i) => TIERS.map((tier) => past.queued[tier][i]),
  },
];

function failures(past, i) {
  return Object.values(past.errors).reduce((sum, counts) => sum + counts[i], 0);
}

export function trends() {
  const charts = CHARTS.map((about) => new TimeChart(about));
  const state = el("div", { class: "span-12" });
  const live = new Live(state, history, ({ past, from, until }) => {
    charts.forEach((chart, place) => chart.show([...points(past, CHARTS[place])], from, until));
    state.hidden = past.at.length > 0;
    return empty("No history yet: figures are kept every ten seconds.");
  });
  const refresh = async () => {
    await live.refresh();
    if (!live.hasContent) state.hidden = false;
  };
  const panels = charts.map((chart) => panel(chart.title, { span: 4 }, chart.element));
  return { elements: [panels, state], refresh, choice: rangeChoice(refresh) };
}

async function history() {
  const until = now();
  const from = until - range;
  const step = Math.ceil(range / STEPS);
  const past = await get(at("/v1/history", { from: from.toFixed(3), to: until.toFixed(3), step }));
  return { past, from: begin(past, from, until), until };
}

// A chart begins with the crawl: what was before it is not drawn as if nothing had happened then.
function begin(past, from, until) {
  const first = past.at.length ? past.at[0] : from;
  return Math.max(from, Math.min(first, until - SHORTEST));
}

// Steps in which nobody sampled are left out of the answer; a gap is put there, so that no line runs across.
function* points(past, { series, values }) {
  for (let i = 0; i < past.at.length; i += 1) {
    const before = past.at[i - 1];
    if (i && past.at[i] - before > 2.5 * past.step) {
      yield {
        at: before + past.step,
        values: series.map(() => null),
      };
    }
    yield { at: past.at[i], values: values(past, i) };
  }
}

function rangeChoice(refresh) {
  const buttons = Object.entries(RANGES).map(([name, length]) =>
    el("button", { type: "button", "aria-pressed": length === range ? "true" : "false", onclick: choose }, name)
  );
  function choose(event) {
    range = RANGES[event.target.textContent];
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.target));
    refresh();
  }
  return el("div", { class: "choice", role: "group", "aria-label": "Time shown" }, buttons);
}
