// Questions that must be answered, and words that pass by. Native dialogs: Esc closes, focus returns where it was.

import { el, fill } from "./dom.js";

export function confirm(title, words, verb) {
  return new Promise((resolve) => {
    const yes = el("button", { type: "submit", class: "main", value: "yes" }, verb);
    const no = el("button", { type: "submit", value: "no", autofocus: true }, "Cancel");
    const dialog = el(
      "dialog",
      { "aria-labelledby": "question" },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: "question" }, title),
        el("p", {}, words),
        el("div", { class: "row" }, no, yes),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// The token is asked for over the page, not instead of it: what was typed below stays.
export function askToken(wasWrong, keep) {
  return new Promise((resolve) => {
    const field = el("input", {
      type: "password",
      id: "secret",
      required: true,
      autocomplete: "off",
      autofocus: true,
    });
    const wrong = el("p", { class: "answer bad", hidden: !wasWrong }, "The server does not know this token.");
    const dialog = el(
      "dialog",
      { "aria-labelledby": "asking" },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: "asking" }, "This server asks for a token"),
        el(
          "label",
          {},
          "Token",
          field,
          el(
            "span",
            { class: "hint" },
            "Kept in this tab only. Whoever runs the server has it, with the role it gives.",
          ),
        ),
        wrong,
        el("div", { class: "row" }, el("button", { type: "submit", class: "main" }, "Sign in")),
      ),
    );
    dialog.addEventListener("cancel", (event) => event.preventDefault()); // without a token there is nothing to go back to
    dialog.addEventListener("close", () => {
      keep(field.value.trim());
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

const LONG_ENOUGH = 6000;

export function notify(words, kind = "") {
  const notice = el(
    "div",
    { class: `notice ${kind}` },
    el("p", {}, words),
    el("button", { type: "button", "aria-label": "Dismiss", onclick: () => notice.remove() }, "✕"),
  );
  const notices = document.getElementById("notices");
  while (notices.children.length > 3) notices.firstElementChild.remove();
  notices.append(notice);
  if (kind !== "bad") setTimeout(() => notice.remove(), LONG_ENOUGH);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) fill(document.getElementById("notices"));
});

// A button that does something on the server: once at a time, and what went wrong is said.
export function doing(button, act) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      notify(error.message, "bad");
    } finally {
      button.disabled = false;
    }
  });
  return button;
}
