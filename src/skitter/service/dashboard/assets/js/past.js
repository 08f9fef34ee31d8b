// The past as charts over a time that can be chosen; the choice is kept while other pages are looked at.

import { at, get } from "./api.js";
import { TimeChart } from "./chart.js";
import { el, empty, panel } from "./dom.js";
import { Live } from "./live.js";
import { now } from "./words.js";

const STEPS = 180;
const SHORTEST = 60; // seconds that a chart spans at least

// about: what a chart is made of, and `values(past, i)`: what each series has at a step. `choice` is { ranges, chosen }.
export function pastCharts(about, choice) {
  const charts = about.map((one) => new TimeChart(one));
  const state = el("div", { class: "span-12" });
  const live = new Live(state, () => history(choice.chosen), ({ past, from, until }) => {
    charts.forEach((chart, place) => chart.show([...points(past, about[place])], from, until));
    state.hidden = past.at.length > 0;
    return empty("No history yet: figures are kept every ten seconds.");
  });
  const refresh = async () => {
    await live.refresh();
    if (!live.hasContent) state.hidden = false;
  };
  const panels = charts.map((chart) => panel(chart.title, { span: 4 }, chart.element));
  return { elements: [panels, state], refresh, choice: rangeChoice(choice, refresh) };
}

async function history(range) {
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

function rangeChoice(choice, refresh) {
  const buttons = Object.entries(choice.ranges).map(([name, length]) =>
    el(
      "button",
      { type: "button", "aria-pressed": length === choice.chosen ? "true" : "false", onclick: choose },
      name,
    )
  );
  function choose(event) {
    choice.chosen = choice.ranges[event.target.textContent];
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.target));
    refresh();
  }
  return el("div", { class: "choice", role: "group", "aria-label": "Time shown" }, buttons);
}
