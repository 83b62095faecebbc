// The audit log: who changed what.
import { get } from "../api.js";
import { h, replace, visible } from "../dom.js";
import { moment } from "../format.js";
import { empty } from "../parts/notices.js";
import { fillPages, foot } from "../parts/pages.js";

export async function show(root, params, signal) {
  const list = h("tbody", {});
  const rest = foot();
  replace(root, h("header", { class: "view-head" }, h("h1", {}, "Audit log")), h("p", { class: "lead" }, "Every change, and who made it. Words of memories are not in it."));
  const page = await fillPages(list, rest, (after) => get("/v1/audit", { limit: 100, after }, { signal }), row);
  root.append(page.items.length ? h("div", { class: "table-wrap", role: "region", "aria-label": "Changes", tabindex: "0" }, h("table", {},
    h("thead", {}, h("tr", {}, ["When", "Who", "What", "Scope", "Result"].map((name) => h("th", { scope: "col" }, name)))), list))
    : empty("No changes yet", "Each write, correction, forgetting and key is noted here."), rest);
}

function row(entry) {
  return h("tr", {}, h("td", {}, moment(entry.time)), h("td", {}, entry.key_name || entry.key), h("td", {}, entry.action), h("td", {}, h("code", {}, visible(entry.scope ?? ""))), h("td", {}, String(entry.status ?? "")));
}
