// Backup of the whole store, and export of scopes.
import { get, post } from "../api.js";
import { button, h, replace } from "../dom.js";
import { bytes, number, plural } from "../format.js";
import { command, tell } from "../parts/notices.js";
import { scopeField } from "../parts/scope-field.js";
import { tiles } from "../parts/table.js";

export async function show(root, params, signal) {
  const status = await get("/v1/status", {}, { signal });
  const result = h("div", { "aria-live": "polite" });
  const make = button("Back up now", () => backUp(make, result), { class: "primary" });
  const scope = scopeField({ label: "Scope (empty: all)", onChange: (chosen) => aim(chosen) });
  const download = h(
    "a",
    {
      class: "button",
      href: "/v1/export",
      download: "eunoe.jsonl",
      on: { click: (event) => scope.read() === null && event.preventDefault() },
    },
    "Download",
  );
  const aim = (chosen) =>
    download.setAttribute("href", chosen ? `/v1/export?scope=${encodeURIComponent(chosen)}` : "/v1/export");
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Backup"), make),
    result,
    tiles([
      ["messages", number(status.messages)],
      ["facts", number(status.facts)],
      ["observations", number(status.observations)],
      ["scopes", number(status.scopes)],
      ["on disk", bytes(status.bytes)],
    ]),
    h(
      "p",
      { class: "lead" },
      "A backup is a copy of the whole store, made while it is in use and read once more before it counts. It lies beside the store.",
    ),
    h("h2", { class: "section" }, "Bring a backup back"),
    h("p", { class: "muted" }, "Stop the server first; the store that is there is kept beside it."),
    command("eunoe restore BACKUP"),
    h("h2", { class: "section" }, "Export"),
    h("p", { class: "muted" }, "Lines of JSON, without loss, that any Eunoe can import."),
    h("div", { class: "form" }, scope.node, download),
  );
}

async function backUp(own, result) {
  own.disabled = true;
  own.textContent = "Copying…";
  try {
    const report = await post("/v1/backup");
    replace(
      result,
      h(
        "p",
        { class: "note good" },
        `Written and read once more: ${plural(report.messages, "message")}, ${plural(report.facts, "fact")} and ${plural(report.observations, "observation")} in ${plural(report.scopes, "scope")}, ${bytes(report.bytes)}. `,
        h("code", {}, report.path),
      ),
    );
  } catch (problem) {
    tell(problem);
  } finally {
    own.disabled = false;
    own.textContent = "Back up now";
  }
}
