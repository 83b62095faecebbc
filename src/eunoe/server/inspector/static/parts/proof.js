// What a forgetting removed, in words.
import { total } from "../api.js";
import { plural } from "../format.js";

export function proofText(report) {
  const parts = [
    total(report.atoms) && plural(total(report.atoms), "memory", "memories"),
    total(report.messages) && plural(total(report.messages), "message"),
    report.vectors && plural(report.vectors, "vector"),
    report.revisions && plural(report.revisions, "summary revision"),
  ].filter(Boolean);
  if (!total(report.atoms) && !total(report.messages)) return "Nothing was removed: it was gone already.";
  const proof = {
    true: "Every table, file, index and cache was searched: no trace is left.",
    false: `Traces are left: ${report.traces.join(", ")}.`,
  };
  return `Forgotten: ${parts.join(", ")}. ${proof[report.verified] ?? ""}`;
}
