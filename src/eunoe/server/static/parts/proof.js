// What a forgetting removed, in words.
import { total } from "../api.js";
import { plural } from "../format.js";
import { toast } from "./notices.js";

// Tell it; what stays and still has the words can be opened, and forgotten there.
export function showProof(report, item, open) {
  const [held] = stillHeld(report);
  const offer = held && { action: () => open(held.scope, held.ids[0]), label: "Open what stays" };
  toast(proofText(report, item), { kind: "proof", stay: 12_000, ...offer });
}

export function proofText(report, item) {
  if (!total(report.atoms) && !total(report.messages)) return "Nothing was removed: it was gone already.";
  const parts = [
    removed(report, item),
    report.vectors && plural(report.vectors, "vector"),
    report.revisions && plural(report.revisions, "summary revision"),
  ].filter(Boolean);
  return [`Forgotten: ${parts.join(", ")}.`, ...searched(report), ...rest(report)].join(" ");
}

function removed({ atoms }, item) {
  if (item.kind === "message")
    return total(atoms) ? `this message and ${plural(total(atoms), "memory", "memories")} made from it` : "this message";
  const others = total(atoms) - 1;
  return others > 0
    ? `this memory and its ${plural(others, item.retired ? "other version" : "earlier version")}`
    : "this memory";
}

function searched({ verified, traces, held_by: held, unsearched }) {
  if (verified === true) return ["Every table, file, index and cache was searched: no trace is left in the store."];
  if (verified !== false) return [];
  const reach = unsearched.filter((place) => place.includes("out of reach"));
  return [
    traces.length > 0 && `Traces are left: ${traces.join(", ")}.`,
    ...reach.map((place) => `Not searched: ${place}.`),
    !Object.keys(held).length && "It is not verified.",
  ].filter(Boolean);
}

// What stays and still has the words, as a list of scopes with ids.
export const stillHeld = (report) => Object.entries(report.held_by ?? {}).map(([scope, ids]) => ({ scope, ids }));

// What a forgetting does not reach.
function rest(report) {
  const held = stillHeld(report).map(({ scope, ids }) => `${plural(total(ids), "message or memory", "messages or memories")} in ${scope}`);
  return [
    held.length > 0 && `What it came from, or says the same, stays: ${held.join("; ")}.`,
    "Backups and exports made before still hold it.",
  ].filter(Boolean);
}
