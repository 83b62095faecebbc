// Jobs: what runs behind the replies, what failed, and how to try it again.
import { get, post } from "../api.js";
import { may } from "../caller.js";
import { button, h, replace } from "../dom.js";
import { moment, number, plural, when } from "../format.js";
import { scopeLink } from "../parts/memory.js";
import { empty, tell, toast } from "../parts/notices.js";
import { tiles } from "../parts/table.js";
import { link } from "../router.js";

const STATES = {
  "": "All",
  queued: "Waiting",
  running: "Running",
  dead: "Failed for good",
  succeeded: "Done",
  cancelled: "Cancelled",
};
const MARKS = { dead: "bad", running: "good", queued: "warn" };
const KINDS = {
  form: "learn from a conversation",
  cold_sessions: "learn from conversations that have gone quiet",
  consolidate: "write a summary",
  embed: "make missing vectors",
  retention: "archive what is old",
  clean_up: "delete old export files",
  webhook: "tell a webhook",
};
const AGAIN = 4000;

export async function show(root, params, signal) {
  const state = params.get("state") ?? "";
  const body = h("div", {});
  replace(
    root,
    h(
      "header",
      { class: "view-head" },
      h("h1", {}, "Jobs"),
      h(
        "div",
        { class: "choices", role: "group", "aria-label": "State" },
        Object.entries(STATES).map(([name, label]) =>
          h("a", { href: link("jobs", { state: name }), "aria-current": name === state ? "true" : null }, label),
        ),
      ),
    ),
    body,
  );
  const load = async () => {
    const [status, page] = await Promise.all([
      get("/v1/status", {}, { signal }),
      get("/v1/jobs", { state, limit: 50 }, { signal }),
    ]);
    replace(
      body,
      overview(status),
      status.error && h("p", { class: "note" }, `Last failure: ${status.error}`),
      jobList(page, state, load),
    );
  };
  await load();
  const timer = setInterval(() => document.hidden || body.matches(":focus-within") || load().catch(() => {}), AGAIN);
  signal.addEventListener("abort", () => clearInterval(timer));
}

const overview = (status) =>
  tiles([
    ["messages not yet formed", number(status.due_messages)],
    ["parts of conversations in work", number(status.jobs)],
    ["failing", number(status.failing)],
    ["vectors to make", number(status.unembedded)],
    ["to review", number(status.in_review)],
  ]);

function jobList(page, state, reload) {
  if (!page.items.length)
    return state === "dead"
      ? empty("Nothing has failed", "Jobs that were tried too often would stand here, with their error.")
      : empty(
          "No jobs",
          "Conversations are formed, summaries written and vectors made as jobs. They appear here when there is work.",
        );
  return [
    h(
      "ol",
      { class: "memories jobs" },
      page.items.map((job) => jobRow(job, reload)),
    ),
    page.next && h("p", { class: "muted foot" }, "the latest 50"),
  ];
}

function jobRow(job, reload) {
  const act = (verb, said) => async () => {
    await post(`/v1/jobs/${encodeURIComponent(job.id)}/${verb}`).then(() => toast(said), tell);
    await reload();
  };
  return h(
    "li",
    { class: "memory job" },
    h(
      "div",
      { class: "memory-head" },
      h("b", {}, KINDS[job.kind] ?? job.kind.replaceAll("_", " ")),
      badge(job),
      job.scope ? scopeLink(job.scope) : h("span", { class: "scope" }, "whole store"),
    ),
    job.error && h("p", { class: "error-text" }, job.error),
    job.total > 0 &&
      h("progress", { max: String(job.total), value: String(job.done), "aria-label": `${job.done} of ${job.total}` }),
    h(
      "div",
      { class: "memory-foot" },
      h(
        "div",
        { class: "origin" },
        [
          h("span", {}, "asked for ", when(job.created)),
          job.attempts > 0 && h("span", {}, plural(job.attempts, "attempt")),
          job.state === "running" && job.heartbeat && h("span", {}, "last sign of life ", when(job.heartbeat)),
          job.state === "queued" && job.attempts > 0 && h("span", {}, `next try ${moment(job.due)}`),
          job.finished && h("span", {}, "ended ", when(job.finished)),
          outcome(job),
        ].filter(Boolean),
      ),
      h(
        "div",
        { class: "actions" },
        may("write") &&
          ["dead", "cancelled"].includes(job.state) &&
          button("Try again", act("retry", "It is in the queue again.")),
        may("write") && job.state === "queued" && button("Cancel", act("cancel", "Cancelled."), { class: "quiet" }),
        job.kind === "export" &&
          job.state === "succeeded" &&
          h(
            "a",
            { class: "button", href: `/v1/jobs/${encodeURIComponent(job.id)}/result`, download: true },
            "Download",
          ),
      ),
    ),
  );
}

// What comes round by itself is not late: it says when.
function badge(job) {
  if (job.state === "queued" && !job.attempts && new Date(job.due) > Date.now())
    return h("span", { class: "badge" }, "next at ", h("time", { datetime: job.due }, moment(job.due)));
  return h("span", { class: `badge ${MARKS[job.state] ?? ""}` }, STATES[job.state] ?? job.state);
}

function outcome(job) {
  const told = Object.entries(job.result)
    .filter(([, value]) => ["number", "string"].includes(typeof value) && value)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  return told.length > 0 && h("span", {}, told.join(", "));
}
