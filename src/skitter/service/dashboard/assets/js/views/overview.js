// The crawl at a glance: how fast, how much waits, who works, what fails, and whether everybody was treated well.

import { get, isOperator, post } from "../api.js";
import { split } from "../chart.js";
import { doing } from "../dialog.js";
import { el, empty, fill, page, panel } from "../dom.js";
import { heatMap } from "../heat.js";
import { Live } from "../live.js";
import { beatNow, onBeat, pulse, speed } from "../pulse.js";
import { to } from "../router.js";
import { lastFetches, workers } from "./activity.js";
import { glance } from "./glance.js";
import { seedsForm } from "./seeds.js";
import { trends } from "./trends.js";
import { ago, count, now, percent, plain, plural, round, seconds, short, size, sized, tone } from "../words.js";

export function overview() {
  const top = glance();
  const drawn = trends();
  const pause = pauseButton(top);
  const parts = [top, figures(), renderings(), drawn, standings(), errors(), workers(), lastFetches(), pause];
  const grid = el(
    "div",
    { class: "grid" },
    parts.map((part) => part.elements),
    isOperator() ? seedsForm() : null,
  );
  const element = page("Overview", [drawn.choice, isOperator() ? pause.button : null], grid);
  const leave = onBeat(({ isUp, found }) => {
    if (isUp && found) parts.forEach((part) => part.beat?.(found));
  });
  if (pulse.last) parts.forEach((part) => part.beat?.(pulse.last));
  return {
    title: "Overview",
    element,
    every: 5,
    leave,
    refresh: () => Promise.all(parts.map((part) => part.refresh?.())),
  };
}

function pauseButton(top) {
  const button = el("button", { type: "button", id: "pause" }, "Pause the crawl");
  doing(button, async () => {
    await post(pulse.last?.paused ? "/v1/crawl/resume" : "/v1/crawl/pause");
    beatNow();
    top.refresh();
  });
  const beat = ({ paused }) => {
    button.textContent = paused ? "Resume the crawl" : "Pause the crawl";
    button.classList.toggle("main", paused);
  };
  return { elements: [], button, beat };
}

// -- figures

function figure(name) {
  const value = el("div", { class: "value" }, "–");
  const note = el("div", { class: "note" });
  return {
    element: el("section", { class: "panel figure span-3" }, el("div", { class: "name" }, name), value, note),
    value,
    note,
  };
}

// Shown where pages are rendered: how many were, what waits, what they brought and what they cost.
function renderings() {
  const words = el("ul", { class: "about" });
  const element = panel("Renderings", { id: "renderings", class: "panel span-12", hidden: true }, words);
  const beat = ({ stats: { renderings: found } }) => {
    element.hidden = !found;
    if (!found) return;
    const facts = [
      `${plural(found.done, "page")} rendered, ${count(found.changed)} of them brought more`,
      `${plural(found.gained, "URL")} gained`,
      `${count(found.queued)} wait for a browser, ${count(found.leased)} are in one`,
      `${count(found.awaiting)} wait for answers`,
      `${count(found.skipped)} passed over`,
      found.failed ? `${count(found.failed)} failed` : null,
      found.done ? `${round(found.seconds / found.done)} s a page in the browser` : null,
    ];
    fill(words, facts.filter(Boolean).map((fact) => el("li", {}, fact)));
  };
  return { elements: [element], beat };
}

function figures() {
  const [pages, bytes, queue, polite] = ["Pages", "Received", "Queue", "Politeness"].map(figure);
  polite.element.id = "politeness";
  const beat = ({ stats }) => {
    const pace = speed("pages");
    fill(pages.value, pace === null ? "–" : round(pace), unit("pages/s"));
    const harvest = stats.scored ? `, ${percent(stats.on_topic / stats.scored)} about the topic` : "";
    fill(pages.note, `${plural(stats.pages, "page")} from ${plural(stats.fetches, "request")}${harvest}`);
    const flow = speed("bytes");
    fill(bytes.value, flow === null ? "–" : sized(flow)[0], unit(`${flow === null ? "B" : sized(flow)[1]}/s`));
    fill(bytes.note, `${size(stats.bytes)} in all`);
    fill(queue.value, short(stats.tiers.reduce((sum, tier) => sum + tier, 0)), unit("URLs"));
    fill(
      queue.note,
      stats.next_at === null
        ? "nothing waits"
        : stats.next_at > now()
        ? ["next start ", ago(stats.next_at)]
        : "the next is ready",
    );
    politeness(polite, stats.politeness);
  };
  return { elements: [pages, bytes, queue, polite].map((one) => one.element), beat };
}

function politeness(shown, ledger) {
  shown.element.classList.toggle("bad", ledger.violations > 0);
  shown.element.classList.toggle("good", ledger.violations === 0);
  fill(shown.value, count(ledger.violations), unit(ledger.violations === 1 ? "breach" : "breaches"));
  const closest = ledger.smallest_gap === null
    ? ""
    : `, closest ${seconds(ledger.smallest_gap)} of ${seconds(ledger.required)}`;
  fill(shown.note, ledger.gaps ? `in ${plural(ledger.gaps, "gap")}${closest}` : "no gap between requests yet");
}

function unit(words) {
  return el("span", { class: "unit" }, words);
}

// -- who stands where

const HOSTS = ["active", "waiting", "idle", "backing_off", "given_up", "blocked"];
const URLS = ["queued", "in_progress", "completed", "failed", "dead_letter", "denied", "gone", "refused"];

function standings() {
  const ofHosts = el("div");
  const ofUrls = el("div");
  const beat = ({ stats }) => {
    fill(
      ofHosts,
      total(stats.hosts)
        ? split(
          HOSTS.map((name) => part(name, stats.hosts[name], to("hosts", [], { standing: name }))),
          "Hosts by standing",
        )
        : empty("No host is known yet. Give the crawl a seed."),
    );
    fill(
      ofUrls,
      total(stats.urls)
        ? split(
          URLS.map((name) => part(name, stats.urls[name], listOf(name))),
          "URLs by state",
        )
        : empty("No URL is known yet. Give the crawl a seed."),
    );
  };
  return {
    elements: [panel("Hosts by standing", { span: 6 }, ofHosts), panel("URLs by state", { span: 6 }, ofUrls)],
    beat,
  };
}

function part(name, value, href) {
  return { name: plain(name), value: value || 0, tone: tone(name), href };
}
function listOf(state) {
  return state === "dead_letter" ? to("dead") : to("urls", [], { state });
}
function total(counts) {
  return Object.values(counts).reduce((sum, one) => sum + one, 0);
}

// -- errors

function errors() {
  const place = el("div");
  const live = new Live(place, () => get("/v1/errors"), ({ hosts }) => heatMap(hosts));
  return {
    elements: panel("Errors by host and kind", { span: 7, id: "errors", isShort: true }, place),
    refresh: () => live.refresh(),
  };
}
