// The shell: shows the page that the address names, keeps the bar true, and refreshes what is shown.

import { access, get, keepToken, token, Unreachable } from "./api.js";
import { askToken } from "./dialog.js";
import { el, fault, fill, loading } from "./dom.js";
import { beatNow, onBeat, pulse } from "./pulse.js";
import { here, hostPage } from "./router.js";
import { count, plural, seconds, tick } from "./words.js";
import { overview } from "./views/overview.js";
import { hosts } from "./views/hosts.js";
import { host } from "./views/host.js";
import { urls } from "./views/urls.js";
import { dead } from "./views/dead.js";
import { traps } from "./views/traps.js";
import { freshness } from "./views/freshness.js";

// A view builds its elements once and returns { title, element, refresh, every, leave }.
const VIEWS = { overview, hosts: (place) => (place.parts[0] ? host : hosts)(place), urls, dead, traps, freshness };
const main = document.getElementById("main");
let view = null;
let timer = 0;
const PATIENCE = 10;

function show() {
  const place = here();
  clearTimeout(timer);
  view?.leave?.();
  const build = VIEWS[place.name];
  view = build ? build(place) : {
    title: "Nothing here",
    element: el("p", { class: "empty" }, "There is no such page. ", el("a", { href: "#/" }, "To the overview")),
  };
  document.title = `${view.title} · skitter`;
  fill(main, view.element);
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.view === place.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view.refresh) refresh();
}

// Asks again when the answer has been there for a while: what takes the server long is asked for more rarely.
async function refresh() {
  clearTimeout(timer);
  const shown = view;
  const began = performance.now();
  await shown.refresh?.();
  if (view !== shown) return;
  clearTimeout(timer);
  timer = setTimeout(again, Math.max((shown.every || 5) * 1000, PATIENCE * (performance.now() - began)));
}

function again() {
  if (pulse.isUp && !document.hidden) refresh();
  else timer = setTimeout(again, 1000);
}

// -- the bar

const link = document.getElementById("link");

onBeat(({ isUp, isBack, found }) => {
  const [words, kind] = !isUp ? ["reconnecting", "bad"] : found?.paused ? ["paused", "warn"] : ["live", "good"];
  link.textContent = words;
  link.className = `pill ${kind}`;
  showAge(isUp);
  if (isBack) whoAmI().then(refresh, () => {});
  if (found) alarm(found.stats.politeness);
});

// Figures that nobody confirms any more are greyed, and say how old they are.
const age = document.getElementById("age");
let confirmed = 0;

function showAge(isUp) {
  if (isUp) confirmed = Date.now();
  document.documentElement.toggleAttribute("data-stale", !isUp);
  age.hidden = isUp || !confirmed;
  age.textContent = isUp ? "" : `figures are ${seconds(Math.round((Date.now() - confirmed) / 1000))} old`;
}

setInterval(() => pulse.isUp === false && showAge(false), 1000);

function alarm(ledger) {
  const alarms = document.getElementById("alarms");
  if (!ledger.violations) {
    if (alarms.firstChild) fill(alarms);
    alarms.dataset.said = "";
    return;
  }
  if (alarms.dataset.said === String(ledger.violations)) return; // said once, not every two seconds
  alarms.dataset.said = String(ledger.violations);
  fill(
    alarms,
    el(
      "div",
      { class: "alarm" },
      el("strong", {}, `${plural(ledger.violations, "breach", "breaches")} of politeness`),
      el(
        "span",
        {},
        `of ${count(ledger.gaps)} gaps between requests. Pause the crawl and look at `,
        el("a", { href: hostPage(ledger.host) }, ledger.host || "the log"),
        ".",
      ),
    ),
  );
}

const themeButton = document.getElementById("theme");
const nameTheme = (choice) => {
  themeButton.textContent = `Theme: ${choice}`;
};
nameTheme(globalThis.skitterTheme.kept());
themeButton.addEventListener("click", () => nameTheme(globalThis.skitterTheme.next()));

const tokenButton = document.getElementById("token");
tokenButton.addEventListener("click", () => {
  keepToken("");
  location.reload();
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

// -- who we are

let asking = null;
access.ask = (wasWrong) => {
  asking ||= askToken(wasWrong, keepToken).finally(() => {
    asking = null;
  });
  return asking;
};

async function whoAmI() {
  const before = access.role;
  access.role = (await get("/v1/whoami")).role;
  tokenButton.hidden = !token();
  document.documentElement.dataset.role = access.role;
  if (before !== null && before !== access.role) show(); // other buttons are ours to press now
}

async function start() {
  fill(main, loading("asking the server"));
  try {
    await whoAmI();
  } catch (error) {
    if (!(error instanceof Unreachable)) {
      fill(main, fault(error, start));
      return;
    }
    link.textContent = "reconnecting";
    link.className = "pill bad";
    setTimeout(start, 1000);
    return;
  }
  show();
  beatNow();
  addEventListener("hashchange", () => {
    show();
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  });
  setInterval(tick, 1000);
}

start();
