// The audit log: who changed what.
import { get } from "../api.js";
import { h, replace, visible } from "../dom.js";
import { moment, number } from "../format.js";
import { empty } from "../parts/notices.js";
import { fillPages, foot } from "../parts/pages.js";

export async function show(root, params, signal) {
  const list = h("tbody", {});
  const rest = foot();
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Audit log")),
    h("p", { class: "lead" }, "Every change, and who made it. Words of memories are not in it."),
  );
  const page = await fillPages(list, rest, (after) => get("/v1/audit", { limit: 100, after }, { signal }), row);
  root.append(
    page.items.length
      ? h(
          "div",
          { class: "table-wrap", role: "region", "aria-label": "Changes", tabindex: "0" },
          h(
            "table",
            {},
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                ["When", "Key", "What", "Items", "Scopes", "By way of", "Result"].map((name) =>
                  h("th", { scope: "col" }, name),
                ),
              ),
            ),
            list,
          ),
        )
      : empty("No changes yet", "Each write, correction, forgetting and key is noted here."),
    rest,
  );
}

function row(entry) {
  const result = h("span", { class: entry.outcome === "done" ? "badge good" : "badge bad" }, entry.outcome);
  const scopes = h("code", {}, visible(entry.scopes.join(", ")));
  return h(
    "tr",
    {},
    [moment(entry.time), entry.key, entry.action, number(entry.count), scopes, entry.via, result].map((cell) =>
      h("td", {}, cell),
    ),
  );
}
