// The context that would be sent for a message.
import { post } from "../api.js";
import { button, copyButton, h, replace, visible } from "../dom.js";
import { number, plural, seconds } from "../format.js";
import { openItem } from "../parts/detail.js";
import { memoryText } from "../parts/memory.js";
import { empty, errorBox, FIRST_READ, waiting } from "../parts/notices.js";
import { chosenScope, scopeField } from "../parts/scope-field.js";
import { reasonBar, reasonLegend } from "../parts/reasons.js";
import { note } from "../router.js";

const FORMATS = ["xml", "markdown", "json", "messages"];

export async function show(root, params, signal) {
  const scope = scopeField({
    label: "Conversation",
    value: await chosenScope(params),
    placeholder: "session=s1/user=anna",
  });
  const message = h("textarea", {
    id: "message",
    rows: "2",
    value: params.get("message") ?? "",
    placeholder: "What the user writes",
  });
  const budget = h("input", {
    id: "budget",
    type: "range",
    min: "100",
    max: "8000",
    step: "100",
    value: params.get("tokens") ?? "1500",
  });
  const shownBudget = h("output", { for: "budget" }, `${number(budget.value)} tokens`);
  const format = h(
    "select",
    { id: "format" },
    FORMATS.map((name) => h("option", { selected: name === (params.get("format") ?? "xml") || null }, name)),
  );
  const result = h("section", { "aria-label": "Context" });
  const run = () =>
    build(
      { scope: scope.read(), message: message.value, tokens: Number(budget.value), format: format.value },
      result,
      signal,
    );
  budget.addEventListener("input", () => {
    shownBudget.textContent = `${number(budget.value)} tokens`;
  });
  for (const each of [budget, format])
    each.addEventListener("change", () => result.childElementCount && scope.input.value && run());
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Context preview")),
    h(
      "p",
      { class: "lead" },
      "What would be put in front of the agent before it replies to this message. Nothing is sent anywhere.",
    ),
    h(
      "form",
      {
        class: "form",
        on: {
          submit: (event) => {
            event.preventDefault();
            run();
          },
        },
      },
      h("div", { class: "field wide" }, h("label", { for: "message" }, "Message"), message),
      scope.node,
      h("div", { class: "field" }, h("label", { for: "budget" }, "Budget: ", shownBudget), budget),
      h("div", { class: "field narrow" }, h("label", { for: "format" }, "Format"), format),
      h("button", { class: "primary" }, "Preview"),
    ),
    result,
  );
  if (scope.input.value && (message.value || params.has("message"))) await run();
  else replace(result, empty("Write a message", "Or leave it empty to see what always stands there."));
}

async function build(wanted, result, signal) {
  if (wanted.scope === null) return;
  note(wanted);
  try {
    const start = performance.now();
    const context = await waiting(
      result,
      post("/inspector/context", wanted, { signal, textLimit: 100_000 }),
      FIRST_READ,
    );
    replace(result, shown(context, wanted, (performance.now() - start) / 1000));
  } catch (problem) {
    if (problem.name !== "AbortError") replace(result, errorBox(problem));
  }
}

function shown(context, { tokens }, took) {
  const share = Math.min(context.tokens / tokens, 1);
  return [
    h(
      "div",
      { class: "meter-line" },
      h("b", {}, `${number(context.tokens)} of ${number(tokens)} tokens`),
      h("meter", { min: "0", max: "1", value: share, "aria-label": "Share of the budget" }),
      h("span", { class: "muted" }, `${plural(context.hits.length, "hit")} found room · ${seconds(took)}`),
      context.text && copyButton(String(context.text)),
    ),
    [...context.faults, ...context.notes].map((text) => h("p", { class: "note" }, text)),
    h(
      "p",
      { class: "muted" },
      context.query ? ["Looked up: ", h("q", {}, context.query), "."] : "Nothing was looked up for this message.",
      context.static_length > 0 && " The grey part stays the same from turn to turn.",
    ),
    h(
      "div",
      { class: "context-grid" },
      context.text
        ? h(
            "pre",
            { class: "context-text", tabindex: "0", "aria-label": "The context" },
            h("span", { class: "static" }, visible(String(context.text).slice(0, context.static_length))),
            visible(String(context.text).slice(context.static_length)),
          )
        : empty("Nothing to say", "This conversation has no memory yet, so nothing would be added."),
      h(
        "aside",
        {},
        h("h2", {}, "What found room"),
        context.hits.length
          ? h(
              "ol",
              { class: "room" },
              context.hits.map((hit) =>
                h(
                  "li",
                  {},
                  reasonBar(hit),
                  memoryText(hit),
                  reasonLegend(hit),
                  button("Open", () => openItem(hit.scope, hit.id), { class: "quiet" }),
                ),
              ),
            )
          : h("p", { class: "muted" }, "Nothing was recalled for this message; what stands there always does."),
      ),
    ),
  ];
}
