// The top of the overview: how the crawl does in one sentence, which the server words, and what crawl this is.

import { get } from "../api.js";
import { el, panel } from "../dom.js";
import { Live } from "../live.js";
import { plural, seconds, size } from "../words.js";

// What a crawl does, and the tone in which that is said.
const TONES = {
  crawling: "good",
  waiting: "warn",
  paused: "warn",
  closing: "warn",
  idle: "bad",
  stopped: "bad",
  complete: "good",
  limit: "calm",
  empty: "calm",
};

export function glance() {
  const place = el("div");
  const live = new Live(place, () => get("/v1/crawl"), (found) => [sentence(found.headline), about(found)]);
  const element = panel(null, { id: "headline", class: "panel span-12 headline" }, place);
  return { elements: element, refresh: () => live.refresh() };
}

function sentence({ doing, sentence: words }) {
  return el("p", { class: `sentence ${TONES[doing] || "calm"}`, role: "status" }, words);
}

function about(found) {
  const facts = [
    el("b", {}, found.name),
    seeds(found),
    `running for ${seconds(Math.max(0, found.now - found.started_at))}`,
    left(found),
    `${size(found.disk_used)} on the disk, ${size(found.disk_free)} free`,
    found.max_pages ? `at most ${plural(found.max_pages, "page")}` : null,
    `skitter ${found.version}`,
  ];
  return el("ul", { class: "about" }, facts.filter(Boolean).map((fact) => el("li", {}, fact)));
}

function left({ left: band }) {
  if (!band) return null;
  const [low, likely, high] = band.map((value) => seconds(Math.round(value)));
  return `about ${likely} left (${low} to ${high})`;
}

function seeds({ anchors, anchor_count: all }) {
  if (!anchors.length) return "no seeds";
  const more = all - anchors.length;
  return `seeds: ${anchors.join(", ")}${more > 0 ? ` and ${plural(more, "more", "more")}` : ""}`;
}
