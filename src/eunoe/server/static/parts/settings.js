// The settings of a stream, to look at and to change.
import { patch } from "../api.js";
import { button, h } from "../dom.js";
import { tell, toast } from "./notices.js";

const REVIEW = {
  off: "off: new memories count at once",
  uncertain: "uncertain: doubtful ones wait for you",
  all: "all: every memory that is formed waits for you",
};
const FIXED = ["owner"];

export function settingsForm(stream) {
  const { settings } = stream;
  const fields = Object.entries(settings)
    .filter(([name]) => !FIXED.includes(name) && name !== "review")
    .map(([name, value]) => field(name, value));
  const form = h(
    "form",
    {
      class: "settings",
      on: {
        submit: (event) => {
          event.preventDefault();
          save(stream, form, fields);
        },
      },
    },
    "review" in settings && reviewField(stream),
    h(
      "details",
      {},
      h("summary", {}, `All ${fields.length} settings (preset ${stream.preset})`),
      h(
        "div",
        { class: "settings-grid" },
        fields.map((each) => each.node),
      ),
      h(
        "div",
        { class: "actions" },
        h("button", { class: "primary" }, "Save changes"),
        button("Reset", () => form.reset(), { class: "quiet" }),
      ),
    ),
  );
  return form;
}

function reviewField(stream) {
  const input = h(
    "select",
    { id: "review", on: { change: () => configure(stream, { review: input.value }) } },
    Object.entries(REVIEW).map(([value, text]) =>
      h("option", { value, selected: value === stream.settings.review || null }, text),
    ),
  );
  return h(
    "div",
    { class: "field review-field" },
    h("label", { for: "review" }, "Review of new memories"),
    input,
    h(
      "p",
      { class: "muted" },
      "Two things never wait: the messages themselves, which can be recalled at once, and what is remembered by hand.",
    ),
  );
}

function field(name, value) {
  const id = `setting-${name}`;
  const input = inputFor(id, value);
  const read = () => {
    if (typeof value === "boolean") return input.checked;
    if (typeof value === "number") return Number(input.value);
    return Array.isArray(value)
      ? input.value
          .split(",")
          .map((part) => part.trim())
          .filter(Boolean)
      : input.value;
  };
  const label = h("label", { for: id }, name.replaceAll("_", " "));
  const isWide = name.endsWith("prompt");
  return { name, value, read, node: h("div", { class: isWide ? "field wide" : "field" }, label, input) };
}

function inputFor(id, value) {
  if (typeof value === "boolean") return h("input", { id, type: "checkbox", checked: value || null });
  if (typeof value === "number") return h("input", { id, type: "number", min: "0", step: "any", value: String(value) });
  if (id.endsWith("prompt")) return h("textarea", { id, rows: "3", value: String(value) });
  return h("input", { id, value: Array.isArray(value) ? value.join(", ") : String(value) });
}

async function save(stream, form, fields) {
  const changes = Object.fromEntries(
    fields
      .filter(({ read, value }) => JSON.stringify(read()) !== JSON.stringify(value))
      .map(({ name, read }) => [name, read()]),
  );
  if (!Object.keys(changes).length) return toast("Nothing was changed.");
  return configure(stream, changes);
}

async function configure(stream, changes) {
  try {
    const changed = await patch("/v1/streams", { scope: stream.scope, settings: changes });
    Object.assign(stream.settings, changed.settings);
    toast(`Saved: ${Object.keys(changes).join(", ").replaceAll("_", " ")}.`);
  } catch (problem) {
    tell(problem);
  }
}
