// What was learned and superseded over time, and what was known on a day.
import { get, total } from "../api.js";
import { button, h, replace } from "../dom.js";
import { day, moment, plural } from "../format.js";
import { activityChart } from "../parts/activity.js";
import { openItem } from "../parts/detail.js";
import { badges, memoryText, scopeLink } from "../parts/memory.js";
import { empty, filled } from "../parts/notices.js";
import { fillPages, foot } from "../parts/pages.js";
import { chosenScope, scopeField } from "../parts/scope-field.js";
import { go } from "../router.js";

const PAGE = 100;
const DAY = 86_400_000;

export async function show(root, params, signal) {
  const scope = await chosenScope(params);
  const asOf = params.get("as_of") ?? "";
  const field = scopeField({ value: scope, onChange: (chosen) => go("timeline", { scope: chosen, as_of: asOf }) });
  const date = h("input", {
    id: "as-of",
    type: "date",
    value: asOf,
    on: { change: () => go("timeline", { scope, as_of: date.value }) },
  });
  const body = h("div", {});
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Timeline")),
    h(
      "form",
      { class: "form", on: { submit: (event) => event.preventDefault() } },
      field.node,
      h("div", { class: "field narrow" }, h("label", { for: "as-of" }, "As of"), date),
      asOf && button("Today", () => go("timeline", { scope })),
    ),
    body,
  );
  if (field.read() === null) return;
  if (!scope) return void replace(body, empty("Whose timeline?", "Choose a scope above."));
  await filled(body, asOf ? showKnown(body, scope, asOf, signal) : showAll(body, scope, signal));
}

async function showAll(body, scope, signal) {
  const list = h("ol", { class: "timeline" });
  const rest = foot();
  const { activity } = await get("/inspector/glance", { scope }, { signal });
  replace(body, activity.bins.length > 0 && activityChart(activity), list, rest);
  const rows = dayRows(scope);
  const page = await fillPages(list, rest, (after) => read(scope, { after }, signal), rows);
  if (!page.items.length)
    replace(rest, empty("Nothing learned yet", "Facts and observations appear here as they are formed."));
}

// What the store held at the end of that day.
async function showKnown(body, scope, asOf, signal) {
  const list = h("ol", { class: "timeline" });
  const rest = foot();
  replace(
    body,
    h(
      "p",
      { class: "note calm" },
      `This is what was known at the end of ${day(asOf)}. What was learned later is left out; what was superseded later stands as it did.`,
    ),
    list,
    rest,
  );
  const page = await fillPages(
    list,
    rest,
    async (after) => {
      const until = new Date(Date.parse(asOf) + DAY).toISOString();
      const found = await read(scope, { until, after }, signal);
      return {
        ...found,
        items: found.items.filter((item) => !item.retired || new Date(item.retired) >= new Date(until)),
      };
    },
    dayRows(scope, true),
  );
  if (!page.items.length && !page.next)
    replace(rest, empty("Nothing was known", "The store had learned nothing of this scope by then."));
}

const read = (scope, query, signal) =>
  get("/v1/recent", { within: scope, retired: true, limit: PAGE, ...query }, { signal });

// Rows, with the day before the first row of each.
function dayRows(scope, isPast = false) {
  let last = "";
  return (item) => {
    const own = day(item.recorded);
    const isNew = own !== last;
    const shown = isPast ? { ...item, retired: null } : item;
    last = own;
    return h(
      "li",
      { class: shown.retired ? "retired" : "" },
      isNew ? h("h2", { class: "day" }, own) : null,
      h(
        "div",
        { class: "event" },
        h(
          "div",
          { class: "memory-head" },
          badges(shown),
          h(
            "span",
            {},
            [
              moment(item.recorded).slice(-5),
              closing(shown),
              total(item.source) ? `from ${plural(total(item.source), "message")}` : "noted directly",
            ]
              .filter(Boolean)
              .join(" · "),
          ),
          item.scope !== scope && scopeLink(item.scope),
          button("Open", () => openItem(item.scope, item.id), { class: "quiet" }),
        ),
        memoryText(item),
      ),
    );
  };
}

function closing(item) {
  if (!item.retired) return item.supersedes ? "took the place of an earlier version" : "";
  return `${item.superseded_by ? "superseded" : "archived"} on ${day(item.retired)}`;
}
