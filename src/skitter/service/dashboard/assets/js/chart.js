// Charts over time, drawn as SVG: lines, or areas upon each other, with axes, a cursor that reads values, and a
// sentence for those who cannot see them. Redrawn when its width changes. A point of null is a gap.

import { el, fill } from "./dom.js";
import { count, now } from "./words.js";

const NS = "http://www.w3.org/2000/svg";
const LEFT = 46;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export class TimeChart {
  // series: names; tints: their colours; words(value) -> text with its unit; axis(value) -> the same, shorter
  // least: the highest mark at least, so that a half of what comes in whole numbers is one too
  constructor({ title, series, tints, words, axis = words, stacked = false, least = 0, height = 180 }) {
    Object.assign(this, { title, tints, words, axis, stacked, least, height });
    this.series = series.map((name, place) => ({ name, tint: tints[place] }));
    this.points = []; // { at, values: [..] }, in order of time
    this.picked = null;
    this.picture = svg("svg", { role: "img", tabindex: "0", height });
    this.readout = el("ul", { class: "legend readout" });
    this.element = el("figure", { class: "chart" }, this.picture, this.readout);
    this.picture.addEventListener("pointermove", (event) => this.pick(event.offsetX));
    this.picture.addEventListener("pointerleave", () => this.pick(null));
    this.picture.addEventListener("keydown", (event) => this.step(event));
    this.picture.addEventListener("blur", () => this.pick(null));
    // the legend may grow while it is drawn: only another width is a reason to draw again
    new ResizeObserver(() => this.element.clientWidth !== this.width && this.draw()).observe(this.element);
  }

  show(points, from, to) {
    Object.assign(this, { points, from, to });
    if (this.picked !== null) this.picked = Math.min(this.picked, points.length - 1);
    this.draw();
  }

  x(at) {
    return LEFT + ((at - this.from) / (this.to - this.from || 1)) * (this.width - LEFT - RIGHT);
  }
  y(value) {
    return this.height - BOTTOM - (value / this.top) * (this.height - TOP - BOTTOM);
  }

  draw() {
    this.width = Math.max(200, this.element.clientWidth);
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.picture.setAttribute("aria-label", this.sentence());
    const sums = this.points.map((point) =>
      this.stacked
        ? point.values.reduce((sum, value) => sum + (value ?? 0), 0)
        : Math.max(0, ...point.values.map((value) => value ?? 0))
    );
    const most = Math.max(0, ...sums);
    this.top = ceiling(Math.max(this.least, most));
    fill(this.picture, this.grid(), this.stacked ? this.areas() : this.lines(), this.cursor());
    this.legend();
  }

  grid() {
    const marks = [0, 0.5, 1].map((part) => part * this.top);
    const across = marks.map((value) => [
      svg("line", { class: "rule", x1: LEFT, x2: this.width - RIGHT, y1: this.y(value), y2: this.y(value) }),
      svg("text", { x: LEFT - 8, y: this.y(value) + 4, "text-anchor": "end" }, this.axis(value)),
    ]);
    return [across, this.times()];
  }

  times() {
    if (!this.points.length) return [];
    const step = pace((this.to - this.from) / Math.max(2, Math.floor(this.width / 130)));
    const offset = new Date(this.to * 1000).getTimezoneOffset() * 60; // marks at whole local hours
    const marks = [];
    for (let at = Math.ceil((this.from - offset) / step) * step + offset; at <= this.to; at += step) {
      const place = this.x(at);
      if (place > LEFT + 16 && place < this.width - 20) {
        marks.push(svg("text", { x: place, y: this.height - 6, "text-anchor": "middle" }, hour(at, step)));
      }
    }
    return marks;
  }

  // Runs of points without a gap between them.
  runs(place) {
    const runs = [[]];
    for (const point of this.points) {
      if (point.values[place] === null) runs.push([]);
      else runs.at(-1).push(point);
    }
    return runs.filter((run) => run.length);
  }

  lines() {
    return this.series.map((series, place) =>
      this.runs(place).map((run) => {
        const path = run.map((point) =>
          `${this.x(point.at).toFixed(1)},${this.y(point.values[place]).toFixed(1)}`
        );
        const feet = `${this.x(run.at(-1).at).toFixed(1)},${this.y(0)} ${this.x(run[0].at).toFixed(1)},${
          this.y(0)
        }`;
        return [
          svg("polygon", { class: `wash ${series.tint}`, points: `${path.join(" ")} ${feet}` }),
          svg("polyline", {
            class: `line ${series.tint}${run.length > 1 ? "" : " dot"}`,
            points: (run.length > 1 ? path : [path[0], path[0]]).join(" "),
          }),
        ];
      })
    );
  }

  areas() {
    return this.runs(0).map((run) => {
      const below = run.map(() => 0);
      return this.series.map((series, place) => {
        const feet = run.map((point, i) => `${this.x(point.at).toFixed(1)},${this.y(below[i]).toFixed(1)}`)
          .reverse();
        run.forEach((point, i) => {
          below[i] += point.values[place] ?? 0;
        });
        const heads = run.map((point, i) => `${this.x(point.at).toFixed(1)},${this.y(below[i]).toFixed(1)}`);
        const shape = { class: `area ${series.tint}`, points: [...heads, ...feet].join(" ") };
        return run.length > 1 ? svg("polygon", shape) : this.pillar(series, heads[0], feet[0]);
      });
    });
  }

  // A single point has no width: the first figures of a crawl are seen all the same.
  pillar(series, head, foot) {
    const [place, top] = head.split(",").map(Number);
    const height = Math.max(0, Number(foot.split(",")[1]) - top);
    return svg("rect", { class: `area ${series.tint}`, x: place - 2, y: top, width: 4, height });
  }

  cursor() {
    const point = this.points[this.picked];
    if (!point) return [];
    const place = this.x(point.at);
    return svg("line", { class: "cursor", x1: place, x2: place, y1: TOP, y2: this.height - BOTTOM });
  }

  legend() {
    const point = this.points[this.picked ?? this.points.length - 1];
    const when = this.picked !== null && point ? el("li", { class: "note" }, moment(point.at)) : null;
    fill(
      this.readout,
      this.series.map((series, place) => {
        const value = point ? point.values[place] : null;
        return el(
          "li",
          {},
          el("span", { class: `swatch ${series.tint}` }),
          series.name,
          el("b", {}, value === null || value === undefined ? "" : this.words(value)),
        );
      }),
      when,
    );
  }

  pick(x) {
    const at = x === null ? null : this.from + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (this.to - this.from);
    const picked = at === null || !this.points.length ? null : nearest(this.points, at);
    if (picked !== this.picked) {
      this.picked = picked;
      this.draw();
    }
  }

  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !this.points.length) return;
    event.preventDefault();
    this.picked = Math.min(this.points.length - 1, Math.max(0, (this.picked ?? this.points.length) + by));
    this.draw();
  }

  sentence() {
    const last = this.points.at(-1);
    if (!last) return `${this.title}: no figures yet`;
    const said = this.series.map((series, place) =>
      last.values[place] === null ? "" : `${series.name} ${this.words(last.values[place])}`
    );
    return `${this.title}, ${count(this.points.length)} points up to ${moment(last.at)}; now ${
      said.filter(Boolean).join(", ")
    }`;
  }
}

function nearest(points, at) {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].at < at) low = middle + 1;
    else high = middle;
  }
  return low > 0 && at - points[low - 1].at < points[low].at - at ? low - 1 : low;
}

// The next of 1, 2, 4, 5 times a power of ten: so that the half of it is a short number too.
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 6, 8, 10].find((step) => step * power >= value) * power;
}

function pace(seconds) {
  const steps = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  return steps.find((step) => step >= seconds) || steps.at(-1);
}

function hour(at, step) {
  const when = new Date(at * 1000);
  if (step >= 86400) return when.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return when.toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    second: step < 60 ? "2-digit" : undefined,
  });
}

function moment(at) {
  const isToday = now() - at < 86400;
  const when = new Date(at * 1000);
  return isToday
    ? when.toLocaleTimeString("en-GB")
    : when.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

// A bar split by share, with a legend of counts. parts: [{ name, value, tone, href }]
export function split(parts, label) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  const bar = el("div", { class: "split", role: "img", "aria-label": label });
  for (const part of parts.filter((one) => one.value)) {
    const piece = el("span", { class: `tone-${part.tone}`, title: `${part.name}: ${count(part.value)}` });
    piece.style.flexGrow = part.value / whole;
    bar.append(piece);
  }
  const legend = el(
    "ul",
    { class: "legend" },
    parts.map((part) =>
      el(
        "li",
        { class: part.value ? null : "zero" },
        el("span", { class: `swatch tone-${part.tone}` }),
        part.href ? el("a", { href: part.href }, part.name) : part.name,
        el("b", {}, count(part.value)),
      )
    ),
  );
  return [bar, legend];
}
