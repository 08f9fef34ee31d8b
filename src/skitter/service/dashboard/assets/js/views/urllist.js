// URLs in a state, or of a kind of failure or refusal: what the figures of the overview lead to.

import { at, get } from "../api.js";
import { el, empty, panel, table } from "../dom.js";
import { Live } from "../live.js";
import { to, urlPage } from "../router.js";
import { ago, answer, pill, plain, plural } from "../words.js";

const LIMIT = 100;

export function urlList(wanted) {
  const place = el("div");
  const show = (found) => {
    const { element, body } = table("URL", "State", "Why", "Last answer#");
    body.append(...found.urls.map(row));
    return [
      found.urls.length ? element : empty(none(found)),
      el("p", { class: "note under-table" }, found.urls.length ? plural(found.urls.length, "URL") : null, more(found)),
    ];
  };
  const live = new Live(place, () => get(at("/v1/urls", { ...wanted, limit: LIMIT })), show);
  const more = ({ after }) =>
    after ? [" ", el("a", { href: to("urls", [], { ...wanted, after }) }, "further on")] : null;
  return { element: panel(null, { id: "list" }, place), refresh: () => live.refresh() };
}

function none({ after }) {
  return after ? "None among those that were looked at so far." : "There are none.";
}

export function title({ state, why, host }) {
  const parts = [state ? plain(state) : "", why ? `because of ${plain(why)}` : "", host ? `of ${host}` : ""];
  return `URLs ${parts.filter(Boolean).join(" ")}`;
}

function row(one) {
  return el(
    "tr",
    {},
    el("td", { class: "wide" }, [
      el("a", { class: "url", href: urlPage(one.url) }, one.url),
      one.title ? el("div", { class: "note" }, one.title) : null,
    ]),
    el("td", { class: "plain" }, pill(one.state)),
    el("td", { class: "wide" }, one.why ? answer({ result: one.why, status: one.status, detail: one.detail }) : "–"),
    el("td", { class: "number", "data-name": "Last answer" }, ago(one.at)),
  );
}
