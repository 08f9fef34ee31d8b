// The heartbeat: asks for the crawl's figures every two seconds, tells whoever listens, and notices when the server
// goes away and when it is back. Stops while nobody looks at the page.

import { at, get, Unreachable } from "./api.js";
import { tellNow } from "./words.js";

const EVERY = 2000;
const LONGEST = 5000;
const KEPT = 90; // three minutes of samples: the live end of the charts until the history has it

export const pulse = {
  isUp: null,
  last: null,
  samples: [],
  listeners: new Set(),
  timer: 0,
  misses: 0,
};

export function onBeat(listener) {
  pulse.listeners.add(listener);
  return () => pulse.listeners.delete(listener);
}

export function beatNow() {
  clearTimeout(pulse.timer);
  beat();
}

async function beat() {
  let wait = EVERY;
  try {
    const found = await get(at("/v1/stats"));
    pulse.misses = 0;
    tellNow(found.now);
    keep(found);
    tell(true, found);
  } catch (error) {
    pulse.misses += 1;
    wait = Math.min(LONGEST, 500 * 2 ** Math.min(pulse.misses, 4));
    if (error instanceof Unreachable) tell(false, pulse.last);
    else tell(pulse.isUp, pulse.last, error);
  }
  clearTimeout(pulse.timer);
  if (!document.hidden) pulse.timer = setTimeout(beat, wait);
}

function keep(found) {
  const { now, stats } = found;
  const before = pulse.samples.at(-1);
  // a server that was restarted on another folder, or counts that went back: what was sampled is of another crawl
  if (before && (stats.fetches < before.fetches || now < before.now)) pulse.samples = [];
  pulse.samples.push({ now, pages: stats.pages, fetches: stats.fetches, bytes: stats.bytes, tiers: stats.tiers });
  if (pulse.samples.length > KEPT) pulse.samples.shift();
}

function tell(isUp, found, error = null) {
  const isBack = isUp && pulse.isUp === false;
  pulse.isUp = isUp;
  pulse.last = found;
  for (const listener of [...pulse.listeners]) listener({ isUp, isBack, found, error });
}

// What was done a second, over the last ten or so.
export function speed(name) {
  const newest = pulse.samples.at(-1);
  const from = pulse.samples.find((sample) => newest.now - sample.now <= 11);
  if (!newest || !from || newest.now <= from.now) return null;
  return (newest[name] - from[name]) / (newest.now - from.now);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) beatNow();
});
