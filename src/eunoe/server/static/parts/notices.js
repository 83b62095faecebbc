// Errors, empty views and short notices.
import { announce, button, copyButton, h, replace } from "../dom.js";

const TITLES = { 403: "Your key does not allow this", 404: "Not found" };

export function errorBox(problem, retry) {
  if (problem.isMissing)
    return h(
      "div",
      { class: "empty" },
      h("h2", {}, "Not available on this server"),
      h("p", {}, "The server that runs here does not offer this. A newer one does."),
    );
  const title = TITLES[problem.status] ?? "That did not work";
  return h(
    "div",
    { class: "empty", role: "alert" },
    h("h2", {}, title),
    h("p", {}, sentences(problem)),
    retry && ![403, 404, 422].includes(problem.status) && button("Try again", retry),
  );
}

export function empty(title, text, ...actions) {
  return h(
    "div",
    { class: "empty" },
    h("h2", {}, title),
    h("p", {}, text),
    actions.length > 0 && h("div", { class: "actions" }, actions),
  );
}

export function command(text) {
  return h("div", { class: "command" }, h("code", {}, text), copyButton(text));
}

// Mark a part of the page as waiting for a promise; if it takes long, say why.
export async function waiting(node, promise, reason) {
  node.setAttribute("aria-busy", "true");
  const timer = setTimeout(() => replace(node, h("p", { class: "empty muted", role: "status" }, reason)), 1000);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    node.removeAttribute("aria-busy");
  }
}

// Fill a part of the page; what goes wrong is said there, and the rest stays.
export async function filled(node, promise) {
  try {
    await promise;
  } catch (problem) {
    if (problem.name !== "AbortError") replace(node, errorBox(problem));
  }
}

export const FIRST_READ =
  "A scope is read whole the first time, which takes a while if it is large. After that it takes milliseconds.";

const QUIET_AFTER = 8000;

// A short notice. It stays while it is pointed at or has the focus.
export function toast(text, { action, label = "Undo", kind = "", stay = QUIET_AFTER } = {}) {
  const end = () => own.remove();
  const own = h(
    "div",
    { class: `toast ${kind}` },
    h("span", {}, text),
    action &&
      button(
        label,
        () => {
          end();
          action();
        },
        { class: "link" },
      ),
    button("×", end, { class: "link", "aria-label": "Dismiss" }),
  );
  document.getElementById("toasts").append(own);
  announce(text);
  const wait = () => (own.matches(":hover, :focus-within") ? setTimeout(wait, 1000) : end());
  setTimeout(wait, stay);
  return end;
}

export const tell = (problem) => toast(sentences(problem), { kind: "bad" });

// What is wrong and what to do, each as a sentence.
export const sentences = ({ message, hint }) => [message, hint].filter(Boolean).map(sentence).join(" ");

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
