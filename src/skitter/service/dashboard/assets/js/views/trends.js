// The past as three charts: pages and failures, bytes, and what waits by tier, over a time that can be chosen.

import { pastCharts } from "../past.js";
import { count, rate, round, short, size } from "../words.js";

const RANGES = { "15 min": 900, "1 h": 3600, "6 h": 21600, "24 h": 86400, "7 days": 604800 };
const TIERS = ["F0", "F1", "F2", "F3"];
const CHOICE = { ranges: RANGES, chosen: RANGES["15 min"] };

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
    least: 2,
    values: (past, i) => [past.bytes_per_second[i]],
  },
  {
    title: "Frontier by tier",
    series: ["F0, most urgent", "F1", "F2", "F3"],
    tints: ["series-1", "series-2", "series-3", "series-4"],
    words: count,
    axis: short,
    stacked: true,
    least: 2,
    values: (past, i) => TIERS.map((tier) => past.queued[tier][i]),
  },
];

function failures(past, i) {
  return Object.values(past.errors).reduce((sum, counts) => sum + counts[i], 0);
}

export function trends() {
  return pastCharts(CHARTS, CHOICE);
}
