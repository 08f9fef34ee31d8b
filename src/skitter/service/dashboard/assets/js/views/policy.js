// The operator's word for one host. What was typed stays until it is saved; after that the form says what changed.

import { get, put } from "../api.js";
import { el, fault, fill, loading, panel } from "../dom.js";
import { count, plain, seconds } from "../words.js";

function field(name, words, hint, attributes) {
  const input = el("input", { id: `policy-${name}`, type: "number", min: "0", step: "any", ...attributes });
  return { input, label: el("label", {}, words, input, el("span", { class: "hint" }, hint)) };
}

export function policyForm(path, changed) {
  const delay = field("delay", "Seconds between requests", "empty: the crawl's own", {});
  const rps = field("rps", "or requests a second", "the same, said the other way", {});
  const parallel = field("parallel", "Requests in flight", "empty: 1", { min: "1", step: "1" });
  const budget = field("budget", "Pages at most", "empty: the crawl's own; 0: no limit", { step: "1" });
  const blocked = el("input", { id: "policy-blocked", type: "checkbox" });
  const tls = el(
    "select",
    { id: "policy-tls" },
    [["", "the crawl's own"], ["true", "check"], ["false", "do not check"]].map(([value, words]) =>
      el("option", { value }, words)
    ),
  );
  mirror(delay.input, rps.input);
  const answer = el("div", { role: "status" });
  const save = el("button", { type: "submit", class: "main" }, "Save policy");
  const form = el(
    "form",
    { id: "policy" },
    el(
      "div",
      { class: "fields" },
      delay.label,
      rps.label,
      parallel.label,
      budget.label,
      el("label", {}, "Certificate", tls),
      el("label", { class: "check" }, blocked, "Do not contact this host"),
    ),
    el("div", { class: "row" }, save),
    answer,
  );
  const place = el("div", {}, loading());
  const controls = {
    delay: delay.input,
    parallel: parallel.input,
    budget: budget.input,
    blocked,
    tls,
    rps: rps.input,
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    await keep(path, read(controls), answer);
    save.disabled = false;
    changed();
  });
  begin(path, place, form, controls);
  return panel("Policy", { span: 5 }, place);
}

// The form is filled once; refreshing the page around it never touches it again.
async function begin(path, place, form, controls) {
  try {
    const { policy } = (await get(explained(path))).view;
    write(controls, policy || {});
    fill(place, form);
  } catch (error) {
    fill(
      place,
      fault(error, () => {
        fill(place, loading());
        begin(path, place, form, controls);
      }),
    );
  }
}

function mirror(delay, rps) {
  const other = (value) => (Number(value) > 0 ? String(Math.round(1e6 / Number(value)) / 1e6) : "");
  delay.addEventListener("input", () => {
    rps.value = other(delay.value);
  });
  rps.addEventListener("input", () => {
    delay.value = other(rps.value);
  });
}

function write(controls, policy) {
  const words = (value) => (value === null || value === undefined ? "" : String(value));
  controls.delay.value = words(policy.delay);
  controls.delay.dispatchEvent(new Event("input"));
  controls.parallel.value = words(policy.parallel);
  controls.budget.value = words(policy.budget);
  controls.blocked.checked = Boolean(policy.blocked);
  controls.tls.value = words(policy.verify_tls);
}

function read(controls) {
  const number = (input) => (input.value === "" ? null : Number(input.value));
  return {
    delay: number(controls.delay),
    parallel: number(controls.parallel),
    budget: number(controls.budget),
    blocked: controls.blocked.checked,
    verify_tls: controls.tls.value === "" ? null : controls.tls.value === "true",
  };
}

async function keep(path, policy, answer) {
  try {
    const before = (await get(explained(path))).view;
    await put(`${path}/policy`, policy);
    const after = (await get(explained(path))).view;
    fill(answer, el("div", { class: "answer good" }, "Saved, and in force. ", effect(before, after)));
  } catch (error) {
    fill(answer, el("div", { class: "answer bad" }, `${error.message}. What you typed is still there.`));
  }
}

const explained = (path) => `${path}/explain?fetches=0`;

function effect(before, after) {
  const said = [];
  if (before.delay !== after.delay) {
    said.push(
      `Its delay was ${seconds(before.delay)} (${before.delay_why}) and is now ${
        seconds(after.delay)
      } (${after.delay_why}).`,
    );
  }
  if (before.standing !== after.standing) {
    said.push(`It was ${plain(before.standing)} and is now ${plain(after.standing)}.`);
  }
  if ((before.policy?.parallel || 1) !== (after.policy?.parallel || 1)) {
    said.push(`Requests in flight: ${count(after.policy?.parallel || 1)}.`);
  }
  return said.join(" ") || "Nothing that shows at once has changed.";
}
