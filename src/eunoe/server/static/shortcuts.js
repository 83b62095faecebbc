// Keyboard shortcuts, and the list of them that `?` shows.
import { button, h } from "./dom.js";

const known = [];
let prefix = "";

// A shortcut is one key, or two after each other ("g s"). It ends with its signal.
export function shortcut(keys, label, action, signal) {
  const entry = { keys, label, action };
  known.push(entry);
  signal?.addEventListener("abort", () => known.splice(known.indexOf(entry), 1));
}

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "Enter" && event.target.closest?.("button, a, summary")) return; // it presses them
    const keys = prefix ? `${prefix} ${event.key}` : event.key;
    prefix = !prefix && event.key === "g" ? "g" : "";
    const entry = known.findLast((each) => each.keys === keys);
    if (!entry || (document.querySelector("dialog[open]") && !entry.keys.startsWith("Escape"))) return;
    event.preventDefault();
    entry.action(event);
  });
}

const isTyping = (target) =>
  target instanceof HTMLElement &&
  (target.matches("textarea, select, [contenteditable]") ||
    (target.matches("input") && !["checkbox", "radio", "range", "button"].includes(target.type)));

export function showShortcuts() {
  const dialog = h(
    "dialog",
    { class: "window", "aria-labelledby": "shortcuts-title" },
    h(
      "header",
      {},
      h("h2", { id: "shortcuts-title" }, "Keyboard"),
      button("Close", () => dialog.close(), { class: "quiet" }),
    ),
    h(
      "dl",
      { class: "shortcuts" },
      [...known]
        .sort((a, b) => a.keys.startsWith("g ") - b.keys.startsWith("g "))
        .map(({ keys, label }) =>
          h(
            "div",
            {},
            h(
              "dt",
              {},
              keys.split(" ").map((key) => h("kbd", {}, key)),
            ),
            h("dd", {}, label),
          ),
        ),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
