// The form for those who came without the printed link.
import { post } from "./api.js";
import { h, replace } from "./dom.js";

export function showLogin(root, said, onDone) {
  const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const error = h("p", { class: "error-text", role: "alert" }, said);
  const form = h(
    "form",
    {
      on: {
        submit: (event) => {
          event.preventDefault();
          signIn(field, error, onDone);
        },
      },
    },
    h("label", { for: "token" }, "Token or key"),
    field,
    error,
    h("button", { class: "primary" }, "Open"),
  );
  replace(
    root,
    h(
      "main",
      { class: "login" },
      h(
        "div",
        { class: "login-card" },
        h("h1", {}, h("span", { class: "brand-mark", "aria-hidden": "true" }), "Eunoe"),
        h("p", {}, "This memory is yours alone, so the page asks who you are."),
        form,
        h(
          "p",
          { class: "muted" },
          h("code", {}, "eunoe serve"),
          " prints a link that signs you in. Its token is also in the file ",
          h("code", {}, "memory.token"),
          " beside the store. A key made by ",
          h("code", {}, "eunoe key create"),
          " works as well.",
        ),
      ),
    ),
  );
  field.focus();
}

async function signIn(field, error, onDone) {
  try {
    await post("/session", { token: field.value.trim() });
    await onDone();
  } catch (problem) {
    error.textContent =
      problem.status === 401 ? "The server does not know this token. Copy it again, whole." : problem.message;
    field.select();
  }
}
