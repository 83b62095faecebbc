// A dry run: what would be learned from a text. Nothing is kept.
import { get, post } from "../api.js";
import { h, replace, visible } from "../dom.js";
import { plural, seconds } from "../format.js";
import { badges, howSure, memoryText } from "../parts/memory.js";
import { empty, errorBox, waiting } from "../parts/notices.js";
import { scopeField } from "../parts/scope-field.js";

const EXAMPLE = "I moved to Lisbon in March. My sister Ana lives there too.\nPlease always answer in metric units.";

export async function show(root, params, signal) {
  const scope = scopeField({
    label: "For (may stay empty)",
    value: params.get("scope") ?? "",
    placeholder: "agent=cook/session=s1/user=anna",
  });
  const text = h("textarea", { id: "text", rows: "6", placeholder: EXAMPLE });
  const result = h("section", { "aria-label": "What would be learned" });
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Dry run")),
    h("p", { class: "lead" }, "Paste what somebody says and see what would be learned from it. Nothing is kept."),
    h(
      "form",
      {
        class: "form",
        on: {
          submit: (event) => {
            event.preventDefault();
            run(text.value.trim(), scope.read(), result, signal);
          },
        },
      },
      h("div", { class: "field wide" }, h("label", { for: "text" }, "What is said; each line is a message"), text),
      scope.node,
      h("button", { class: "primary" }, "Try it"),
    ),
    result,
  );
}

async function run(text, scope, result, signal) {
  if (scope === null) return undefined;
  if (!text) return void replace(result, empty("Nothing to read", "Write or paste something above first."));
  const messages = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean)
    .map((content) => ({ role: "user", content }));
  try {
    const start = performance.now();
    const {
      items: memories,
      doubtful = [],
      passed_over: passedOver = [],
      corrected = {},
      notes = [],
    } = await waiting(
      result,
      post("/v1/extract", { scope: scope || (await ownScope()), messages }, { signal }),
      "A language model reads it.",
    );
    replace(
      result,
      h(
        "p",
        { class: "muted result-line" },
        `${plural(memories.length, "memory", "memories")} would be made, ${seconds((performance.now() - start) / 1000)}. Nothing was kept.`,
      ),
      notes.map((text) => h("p", { class: "note" }, text)),
      memories.length
        ? h(
            "ol",
            { class: "memories" },
            memories.map((memory) => row(memory, doubtful.includes(memory.id), corrected[memory.id])),
          )
        : empty("Nothing worth keeping", "No line tells a fact, a preference, a plan or an event."),
      passedOver.length > 0 && [h("h2", {}, "Passed over"), h("ul", { class: "memories passed-over" }, passedOver.map(passedRow))],
    );
  } catch (problem) {
    if (problem.name !== "AbortError") replace(result, errorBox(problem));
  }
  return undefined;
}

/** Whose memory it is tried out for, if nobody's is named. */
async function ownScope() {
  const { scopes } = await get("/session");
  return scopes[0] ?? "session=preview";
}

function passedRow(message) {
  return h(
    "li",
    { class: "memory" },
    h("p", { class: "memory-text", dir: "auto" }, visible(message.text)),
    h("div", { class: "memory-foot" }, h("div", { class: "origin" }, h("span", {}, message.reason))),
  );
}

function row(memory, isDoubtful, correction) {
  return h(
    "li",
    { class: "memory" },
    h("div", { class: "memory-head" }, badges(memory), memory.scope && h("span", { class: "scope" }, memory.scope)),
    memoryText(memory),
    h(
      "div",
      { class: "memory-foot" },
      h(
        "div",
        { class: "origin" },
        [
          h("span", {}, `${isDoubtful ? "doubtful" : "sure"} ${howSure(memory)}`.trim()),
          correction && h("span", {}, "by your correction of ", h("q", {}, visible(correction))),
          memory.outcome && h("span", {}, memory.outcome),
          memory.people?.length > 0 && h("span", {}, memory.people.join(", ")),
          memory.metadata?.author && h("span", {}, `by ${memory.metadata.author}`),
        ].filter(Boolean),
      ),
    ),
  );
}
