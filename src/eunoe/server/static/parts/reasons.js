// Why a memory was found: its score as a bar, divided by what spoke for it.
import { h, svg } from "../dom.js";
import { percent } from "../format.js";

const FAMILIES = {
  lexical: "Words in common",
  exact: "The same identifier",
  dense: "Similar meaning",
  rerank: "Read again with the question",
  graph: "Through the entity graph",
  time: "The time asked about",
  date: "The date asked about",
  neighbour: "Said next to it",
  session: "The same conversation",
  speaker: "The person asked about",
  number: "A number, as asked",
  role: "Who said it",
  feedback: "Words that the best hits share",
};

export const reasonTitle = (name) => FAMILIES[name] ?? name;

export function reasonBar(hit) {
  let start = 0;
  const parts = hit.reasons.map((reason) => {
    const width = reason.share * hit.score * 100;
    const part = svg(
      "rect",
      { class: `reason-${reason.name in FAMILIES ? reason.name : "other"}`, x: start, y: 0, width, height: 8 },
      svg("title", {}, `${reasonTitle(reason.name)}: ${percent(reason.share)}`),
    );
    start += width;
    return part;
  });
  const label = `Score ${hit.score.toFixed(2)}: ${hit.reasons.map((reason) => `${reason.name} ${percent(reason.share)}`).join(", ")}`;
  return svg(
    "svg",
    { class: "reason-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("rect", { class: "reason-ground", x: 0, y: 0, width: 100, height: 8 }),
    parts,
  );
}

export function reasonLegend(hit) {
  return h(
    "span",
    { class: "reason-legend" },
    hit.reasons.map((reason) =>
      h(
        "span",
        {},
        h("span", { class: `dot reason-${reason.name in FAMILIES ? reason.name : "other"}` }),
        reason.name,
        " ",
        h("b", {}, percent(reason.share)),
      ),
    ),
  );
}

export function reasonTable(hit) {
  return h(
    "table",
    { class: "reason-table" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Reason", "Share", "What matched"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      {},
      hit.reasons.map((reason) =>
        h(
          "tr",
          {},
          h("td", {}, `${reasonTitle(reason.name)} (${reason.name})`),
          h("td", {}, percent(reason.share)),
          h("td", {}, reason.detail),
        ),
      ),
    ),
  );
}
