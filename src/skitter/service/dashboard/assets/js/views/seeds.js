// Seeds in: one URL a line. Says what became of each, with the reason for every one that was refused.

import { post } from "../api.js";
import { el, fill, panel } from "../dom.js";
import { beatNow } from "../pulse.js";
import { count, plural } from "../words.js";

const DRAFT = "skitter.seeds"; // survives a reload of the page too
const MOST_SHOWN = 50;

export function seedsForm() {
  const field = el("textarea", {
    id: "seeds",
    rows: "4",
    required: true,
    spellcheck: "false",
    placeholder: "https://example.org/",
  });
  field.value = sessionStorage.getItem(DRAFT) || "";
  field.addEventListener("input", () => sessionStorage.setItem(DRAFT, field.value));
  const priority = el(
    "select",
    { id: "priority" },
    ["high", "normal", "low"].map((name) => el("option", { value: name, selected: name === "normal" }, name)),
  );
  const answer = el("div", { role: "status" });
  const send = el("button", { type: "submit", class: "main" }, "Add seeds");
  const form = el(
    "form",
    { id: "seeding" },
    el("label", {}, "URLs, one a line", field),
    el("div", { class: "row" }, el("label", { class: "check" }, "Priority", priority), send),
    answer,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    await offer(field, priority.value, answer);
    send.disabled = false;
  });
  return panel("Seeds", { span: 12 }, form);
}

async function offer(field, priority, answer) {
  const urls = field.value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!urls.length) return;
  try {
    const said = await post("/v1/seeds", { urls, priority });
    fill(answer, verdict(said));
    field.value = said.refused.map((one) => one.url).join("\n"); // what was refused stays, to be mended
    sessionStorage.setItem(DRAFT, field.value);
    beatNow();
  } catch (error) {
    fill(
      answer,
      el("div", { class: "answer bad" }, `${error.message}. Nothing was lost: what you typed is still there.`),
    );
  }
}

function verdict({ accepted, duplicates_skipped: known, refused }) {
  const more = refused.length - MOST_SHOWN;
  return el(
    "div",
    { class: `answer ${refused.length ? "bad" : "good"}` },
    `${plural(accepted, "URL")} accepted, ${count(known)} known already, ${count(refused.length)} refused.`,
    refused.length
      ? el(
        "ul",
        {},
        refused.slice(0, MOST_SHOWN).map((one) =>
          el("li", {}, el("span", { class: "url" }, one.url), `: ${one.reason}`)
        ),
        more > 0 ? el("li", {}, `and ${plural(more, "more", "more")}`) : null,
      )
      : null,
  );
}
