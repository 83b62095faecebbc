// A person's or an agent's memory at a glance; without one, all there are.
import { get } from "../api.js";
import { may } from "../caller.js";
import { button, h, replace } from "../dom.js";
import { number, plural } from "../format.js";
import { openItem } from "../parts/detail.js";
import { badges, memoryText, origin, scopeLink } from "../parts/memory.js";
import { empty } from "../parts/notices.js";
import { fillPages, foot } from "../parts/pages.js";
import { settingsForm } from "../parts/settings.js";
import { tiles } from "../parts/table.js";
import { activityChart } from "../parts/activity.js";
import { link } from "../router.js";

export async function show(root, params, signal) {
  const scope = params.get("scope");
  return scope ? showScope(root, scope, signal) : showAll(root, params, signal);
}

async function showAll(root, params, signal) {
  const list = h("ul", { class: "rows" });
  const more = foot();
  const field = h("input", {
    id: "filter",
    type: "search",
    placeholder: "Part of a name",
    on: { input: () => load() },
  });
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "People and agents")),
    h(
      "p",
      { class: "lead" },
      "Every memory belongs to a scope: a user, an agent, a session, a project. Choose one to see it at a glance.",
    ),
    h("div", { class: "form" }, h("div", { class: "field" }, h("label", { for: "filter" }, "Find a scope"), field)),
    list,
    more,
  );
  let turn = 0;
  const load = async () => {
    const own = (turn += 1);
    const rows = h("ul", {});
    const rest = foot();
    const page = await fillPages(
      rows,
      rest,
      async (after) => {
        const found = await get("/inspector/scopes", { contains: field.value, after }, { signal });
        return { items: found.scopes, next: found.next, total: found.total };
      },
      (scope) => h("li", {}, scopeLink(scope)),
    );
    if (own !== turn) return;
    replace(list, ...rows.children);
    replace(more, ...rest.children, !page.items.length && nothing(page.total));
  };
  await load();
}

const nothing = (total) =>
  total
    ? empty("No such scope", "No scope has these words in its name.")
    : empty(
        "No scopes yet",
        "A scope appears with its first message or memory.",
        h("a", { class: "button", href: "#/learned" }, "How to begin"),
      );

async function showScope(root, scope, signal) {
  const { stream, pinned, latest, activity, scopes, notes } = await get(
    "/inspector/glance",
    { scope },
    { signal, textLimit: 4000 },
  );
  replace(
    root,
    h(
      "header",
      { class: "view-head" },
      h("h1", { class: "scope-title" }, scope),
      ["timeline", "summaries", "graph", "search", "context"].map((name) =>
        h("a", { class: "button", href: link(name, { scope }) }, name[0].toUpperCase() + name.slice(1)),
      ),
    ),
    notes.map((text) => h("p", { class: "note" }, text)),
    stream
      ? overview(stream, scope)
      : empty(
          "Nothing here",
          "This scope holds nothing yet.",
          h("a", { class: "button", href: "#/scope" }, "All scopes"),
        ),
    section("Pinned", pinned),
    latest.length > 0 && [h("h2", { class: "section" }, "Activity"), activityChart(activity)],
    section("Latest", latest),
    scopes.length > 0 && [
      h("h2", { class: "section" }, "Sessions and other scopes within"),
      h(
        "ul",
        { class: "rows" },
        scopes.map((each) => h("li", {}, scopeLink(each))),
      ),
    ],
    stream && may("write") && [h("h2", { class: "section" }, "Settings"), settingsForm(stream)],
  );
}

function overview(stream, scope) {
  return [
    tiles([
      ["facts", number(stream.facts)],
      ["observations waiting", number(stream.observations)],
      ["summary revision", stream.revision || "none"],
      ["preset", stream.preset],
    ]),
    h(
      "section",
      { class: "summary-card", "aria-label": "Summary" },
      h("h2", {}, "Summary"),
      stream.summary
        ? memoryText({ text: String(stream.summary) })
        : h("p", { class: "muted" }, "There is none yet. One is written when enough observations wait."),
      stream.revision > 0 &&
        h("a", { href: link("summaries", { scope }) }, `See all ${plural(stream.revision, "revision")}`),
    ),
  ];
}

function section(title, items) {
  if (!items.length) return null;
  return [
    h("h2", { class: "section" }, title),
    h(
      "ol",
      { class: "memories" },
      items.map((item) =>
        h(
          "li",
          { class: "memory" },
          h("div", { class: "memory-head" }, badges(item), scopeLink(item.scope)),
          memoryText(item),
          h(
            "div",
            { class: "memory-foot" },
            h("div", { class: "origin" }, origin(item)),
            button("Open", () => openItem(item.scope, item.id), { class: "quiet" }),
          ),
        ),
      ),
    ),
  ];
}
