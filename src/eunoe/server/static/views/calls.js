// Calls of language models: tokens, time and cost, and a test of the connection.
import { get, post } from "../api.js";
import { button, h, replace } from "../dom.js";
import { cost, number, seconds, when } from "../format.js";
import { scopeLink } from "../parts/memory.js";
import { command, empty, sentences, tell } from "../parts/notices.js";
import { fillPages, foot } from "../parts/pages.js";
import { table, tiles } from "../parts/table.js";

export async function show(root, params, signal) {
  const result = h("div", { "aria-live": "polite" });
  const body = h("div", {});
  const load = () => showUse(body, signal);
  const run = () => testModel(test, result).then(load).catch((problem) => signal.aborted || tell(problem));
  const test = button("Test the connection", run, { class: "primary" });
  replace(root, h("header", { class: "view-head" }, h("h1", {}, "Model calls"), test), result, body);
  await load();
}

async function showUse(body, signal) {
  const rows = h("div", {});
  const status = await get("/v1/status", {}, { signal });
  await showCalls(rows, signal);
  replace(body, status.usage.length ? totals(status) : noModel(status), rows);
}

function totals({ usage, llm }) {
  const sum = (name) => usage.reduce((all, each) => all + each[name], 0);
  return [
    tiles([
      ["calls", number(sum("calls"))],
      ["failed", number(sum("failures"))],
      ["tokens in", number(sum("input_tokens"))],
      ["tokens out", number(sum("output_tokens"))],
      ["time", seconds(sum("seconds"))],
      ["cost", cost(sum("cost"))],
    ]),
    llm && h("p", { class: "muted" }, `Models in use: ${llm}`),
    h("h2", { class: "section" }, "By operation"),
    table(
      "Usage by operation",
      [
        ["Operation", (each) => each.operation],
        ["Model", (each) => each.model],
        ["Calls", (each) => number(each.calls), true],
        ["Failed", (each) => number(each.failures), true],
        ["Tokens in", (each) => number(each.input_tokens), true],
        ["Tokens out", (each) => number(each.output_tokens), true],
        ["Time", (each) => seconds(each.seconds), true],
        ["Cost", (each) => cost(each.cost), true],
      ],
      usage,
    ),
  ];
}

const noModel = ({ llm }) =>
  llm
    ? empty("No calls yet", `${llm} has not been asked anything so far.`)
    : empty(
        "No language model",
        "Everything works without one: memories are formed by rules. To use one, name it when the server starts.",
        command("eunoe serve --llm openai:gpt-5-mini"),
      );

async function showCalls(target, signal) {
  const list = h("tbody", {});
  const rest = foot();
  const page = await fillPages(list, rest, (after) => get("/v1/calls", { limit: 50, after }, { signal }), callRow);
  if (!page.items.length) return;
  replace(
    target,
    h("h2", { class: "section" }, "Every call, latest first"),
    h(
      "div",
      { class: "table-wrap", role: "region", "aria-label": "Calls", tabindex: "0" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["When", "Operation", "Model", "For", "Tokens in", "Tokens out", "Time", "Cost", "Result"].map((name) =>
              h("th", { scope: "col" }, name),
            ),
          ),
        ),
        list,
      ),
    ),
    rest,
  );
}

function callRow(call) {
  return h(
    "tr",
    {},
    h("td", {}, when(call.time)),
    h("td", {}, call.operation),
    h("td", {}, call.model),
    h("td", {}, call.scope && scopeLink(call.scope)),
    h("td", { class: "figure" }, number(call.input_tokens)),
    h("td", { class: "figure" }, number(call.output_tokens)),
    h("td", { class: "figure" }, seconds(call.seconds)),
    h("td", { class: "figure" }, cost(call.cost)),
    h("td", {}, call.error ? h("span", { class: "error-text" }, call.error) : "ok"),
  );
}

async function testModel(own, result) {
  own.disabled = true;
  try {
    const { model, problem, seconds: took } = await post("/v1/models/test");
    replace(
      result,
      problem
        ? h("p", { class: "note bad" }, model ? `${model}: ${problem}` : problem)
        : h("p", { class: "note good" }, `${model} answered in ${seconds(took)}.`),
    );
  } catch (problem) {
    if (problem.isMissing) tell(problem);
    else replace(result, h("p", { class: "note bad" }, sentences(problem)));
  } finally {
    own.disabled = false;
  }
}
