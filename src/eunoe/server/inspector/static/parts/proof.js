// What a forgetting removed, in words.
import { total } from "../api.js";
import { plural } from "../format.js";

export function proofText(report, item) {
  if (!total(report.atoms) && !total(report.messages)) return "Nothing was removed: it was gone already.";
  const parts = [
    removed(report, item),
    report.vectors && plural(report.vectors, "vector"),
    report.revisions && plural(report.revisions, "summary revision"),
  ].filter(Boolean);
  return [`Forgotten: ${parts.join(", ")}.`, ...searched(report), ...rest(report, item)].join(" ");
}

function removed({ atoms }, item) {
  if (item.kind === "message")
    return total(atoms) ? `this message and ${plural(total(atoms), "memory", "memories")} made from it` : "this message";
  const others = total(atoms) - 1;
  return others > 0
    ? `this memory and its ${plural(others, item.retired ? "other version" : "earlier version")}`
    : "this memory";
}

function searched({ verified, traces }) {
  if (verified === true) return ["Every table, file, index and cache was searched: no trace is left in the store."];
  return verified === false ? [`Traces are left: ${traces.join(", ")}.`] : [];
}

// What a forgetting does not reach.
function rest({ messages }, item) {
  const sources = item.kind === "message" || total(messages) ? 0 : total(item.source ?? []);
  return [
    sources > 0 && (sources === 1 ? "The message it came from stays." : "The messages it came from stay."),
    "Backups and exports made before still hold it.",
  ].filter(Boolean);
}
