// Numbers with units, times, names of states: how the dashboard speaks. Pure but for the server's clock.

import { el } from "./dom.js";

const LOCALE = "en-GB";
let ahead = 0; // seconds by which the server's clock is ahead of this one

export function tellNow(now) {
  ahead = now - Date.now() / 1000;
}

export function now() {
  return Date.now() / 1000 + ahead;
}

export function count(value) {
  return Math.round(value).toLocaleString(LOCALE);
}

export function short(value) {
  if (value < 10000) return count(value);
  const [unit, by] = value < 1e6 ? ["k", 1e3] : value < 1e9 ? ["M", 1e6] : ["G", 1e9];
  return `${round(value / by)}${unit}`;
}

export function round(value) {
  if (value === 0) return "0";
  const digits = value < 10 ? 1 : 0;
  return value < 0.05
    ? "<0.1"
    : value.toLocaleString(LOCALE, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// ["1.2", "MB"]: the number and its unit apart, for figures that are set in two sizes
export function sized(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (bytes >= 1000 && place < units.length - 1) {
    bytes /= 1000;
    place += 1;
  }
  return [place === 0 ? count(bytes) : round(bytes), units[place]];
}

export function size(bytes) {
  return sized(bytes).join(" ");
}

export function rate(value) {
  return `${round(value)}/s`;
}

export function share(part, whole) {
  return whole ? `${round((100 * part) / whole)} %` : "0 %";
}

export function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

export function seconds(value) {
  if (value > 0 && value < 0.0005) return "<1 ms";
  if (value < 1 && value !== 0) return `${count(value * 1000)} ms`;
  if (value < 120) return `${value < 10 ? String(Math.round(value * 10) / 10) : count(value)} s`;
  if (value < 7200) return `${count(value / 60)} min`;
  return value < 172800 ? `${round(value / 3600)} h` : `${round(value / 86400)} days`;
}

function relative(at) {
  const gap = at - now();
  const words = seconds(Math.round(Math.abs(gap)));
  if (Math.abs(gap) < 1) return "now";
  return gap > 0 ? `in ${words}` : `${words} ago`;
}

export function absolute(at) {
  const when = new Date(at * 1000);
  return `${when.toLocaleString(LOCALE, { dateStyle: "medium", timeStyle: "medium" })} (${when.toISOString()})`;
}

// A time, relative, with the absolute one in its title; `tick` keeps it true.
export function ago(at) {
  if (!at) return el("span", { class: "zero" }, "never");
  return el(
    "time",
    { datetime: new Date(at * 1000).toISOString(), title: absolute(at), "data-at": at },
    relative(at),
  );
}

// When something may begin; what could have begun already is simply ready.
export function start(at) {
  return at > now() ? ago(at) : el("span", { title: absolute(at) }, "ready");
}

export function tick() {
  for (const element of document.querySelectorAll("time[data-at]")) {
    const words = relative(Number(element.dataset.at));
    if (element.textContent !== words) element.textContent = words;
  }
}

export function plain(name) {
  return String(name).replaceAll("_", " ");
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// Every state has a tone: colour and sign (css/parts.css) say the same.
const TONES = {
  active: "busy",
  waiting: "good",
  idle: "calm",
  backing_off: "warn",
  blocked: "odd",
  given_up: "bad",
  queued: "calm",
  in_progress: "busy",
  completed: "good",
  failed: "warn",
  dead_letter: "bad",
  denied: "odd",
  gone: "faint",
  refused: "odd",
  unknown: "calm",
};

export function tone(state) {
  return TONES[state] || "calm";
}

export function pill(state) {
  return el("span", { class: `pill ${tone(state)}` }, plain(state));
}

const RESULTS = { robotsread: "robots.txt", notmodified: "not modified" };

// What a request came to: a word or two with its status, and the details beside it.
export function answer({ result, status, detail, isBad = result === "failed" || status >= 500 }) {
  const kind = isBad ? "bad" : status >= 400 ? "warn" : "good";
  const named = RESULTS[result] || plain(result);
  const words = status ? `${named} ${status}` : named;
  return [
    el("span", { class: `pill ${kind}` }, words),
    detail ? el("span", { class: "note" }, ` ${detail}`) : null,
  ];
}
