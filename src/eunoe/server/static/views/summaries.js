// A summary's revisions side by side, the atoms each absorbed, and the messages those came from.
import { get, post, total } from "../api.js";
import { may } from "../caller.js";
import { button, h, replace, visible } from "../dom.js";
import { day, moment, plural } from "../format.js";
import { openItem } from "../parts/detail.js";
import { badges, memoryText } from "../parts/memory.js";
import { empty, filled, tell, toast } from "../parts/notices.js";
import { chosenScope, scopeField } from "../parts/scope-field.js";
import { go } from "../router.js";

const WHOLE = 60_000; // characters of a summary

export async function show(root, params, signal) {
  const scope = params.get("scope") || (await scopeWithSummary(params, signal));
  const field = scopeField({ value: scope, onChange: (chosen) => go("summaries", { scope: chosen }) });
  const body = h("div", {});
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Summaries")),
    h("form", { class: "form", on: { submit: (event) => event.preventDefault() } }, field.node),
    body,
  );
  if (field.read() === null) return;
  if (!scope) return void replace(body, empty("Whose summary?", "Choose a scope above."));
  await filled(body, showRevisions(body, scope, params, signal));
}

async function showRevisions(body, scope, params, signal) {
  const { revisions } = await get("/inspector/revisions", { scope }, { signal });
  if (!revisions.length)
    return void replace(
      body,
      empty(
        "No summary yet",
        `One is written when enough observations wait.${may("write") ? " You can have it written now." : ""}`,
        ...(may("write") ? [button("Write it now", () => consolidate(scope))] : []),
      ),
    );
  const fresh = Number(params.get("new")) || revisions[0].number;
  const old = params.has("old") ? Number(params.get("old")) : Math.max(fresh - 1, 0);
  replace(
    body,
    h("div", { class: "revisions" }, revisionList(revisions, scope, old, fresh), h("div", { class: "comparison" })),
  );
  await compare(body.querySelector(".comparison"), scope, old, fresh, revisions, signal);
}

async function scopeWithSummary(params, signal) {
  const known = await chosenScope(params);
  if (known) return known;
  const { scope } = await get("/inspector/summary-scope", {}, { signal });
  return scope;
}

async function consolidate(scope) {
  try {
    const { revision } = await post("/v1/consolidate", { scope, force: true });
    toast(revision ? `Revision ${revision.number} was written.` : "Nothing waits to be written into it.");
    dispatchEvent(new Event("hashchange"));
  } catch (problem) {
    tell(problem);
  }
}

function revisionList(revisions, scope, old, fresh) {
  return h(
    "nav",
    { class: "revision-list", "aria-label": "Revisions" },
    h(
      "ol",
      {},
      revisions.map((revision) =>
        h(
          "li",
          {},
          button(
            [
              h("b", {}, `Revision ${revision.number}`),
              revision.current && h("span", { class: "badge good" }, "current"),
              h("span", { class: "muted" }, `${day(revision.recorded)} · ${revision.absorbed} absorbed`),
            ],
            () => go("summaries", { scope, new: revision.number }),
            {
              "aria-pressed": revision.number === fresh ? "true" : "false",
              class: revision.number === old ? "old" : "",
            },
          ),
        ),
      ),
    ),
    revisions.total && h("p", { class: "muted" }, `the latest ${revisions.length} of ${revisions.total}`),
  );
}

async function compare(target, scope, old, fresh, revisions, signal) {
  const [compared, absorbed] = await Promise.all([
    get("/v1/revisions/compare", { scope, old, new: fresh }, { signal, textLimit: WHOLE }),
    get("/inspector/absorbed", { scope, number: fresh }, { signal }),
  ]);
  const choice = h(
    "select",
    { id: "old", on: { change: () => go("summaries", { scope, new: fresh, old: choice.value }) } },
    [{ number: 0 }, ...[...revisions].reverse()]
      .filter(({ number }) => number < fresh)
      .map(({ number }) =>
        h(
          "option",
          { value: String(number), selected: number === old || null },
          number ? `revision ${number}` : "nothing",
        ),
      ),
  );
  replace(
    target,
    h(
      "div",
      { class: "actions" },
      h("label", { for: "old" }, `Revision ${fresh} beside`),
      choice,
      !compared.new.current && may("write") && button(`Restore revision ${fresh}`, () => restore(scope, fresh)),
    ),
    h(
      "div",
      { class: "sides" },
      side(compared.old ? `Revision ${old}` : "Before", compared.old, compared.changes, "old"),
      side(`Revision ${fresh}`, compared.new, compared.changes, "new"),
    ),
    h("h2", { class: "section" }, `Absorbed by revision ${fresh}`),
    absorbedList(absorbed.items),
  );
}

function side(title, revision, changes, name) {
  return h(
    "section",
    { class: `side ${name}`, "aria-label": title },
    h("h2", {}, title),
    revision && h("p", { class: "muted" }, `${moment(revision.recorded)} · ${revision.author}`),
    h(
      "div",
      { class: "summary-text", dir: "auto" },
      changes.flatMap((change) => lines(change, name)),
    ),
  );
}

const MARKS = { old: { removed: "del" }, new: { added: "ins" } };

function lines(change, name) {
  const tag = MARKS[name][change.kind];
  if (change.kind !== "changed") return change[name] ? h(tag ?? "span", {}, visible(change[name])) : null;
  return change.words.map(([kind, text]) => {
    if (kind === "same") return h("span", {}, visible(text));
    return MARKS[name][kind] ? h(MARKS[name][kind], {}, visible(text)) : null;
  });
}

function absorbedList(items) {
  if (!items.length)
    return h("p", { class: "muted" }, "It absorbed nothing new: it was written by hand, restored or rebuilt.");
  return h(
    "ol",
    { class: "memories" },
    items.map(({ item, sources }) =>
      h(
        "li",
        { class: "memory" },
        h("div", { class: "memory-head" }, badges(item)),
        memoryText(item),
        h(
          "details",
          {},
          h("summary", {}, `from ${plural(total(sources), "message")}`),
          h(
            "ol",
            { class: "sources" },
            sources.map((source) =>
              h(
                "li",
                {},
                source.item
                  ? [
                      h(
                        "div",
                        { class: "muted" },
                        `${source.item.speaker || source.item.role} · ${moment(source.item.time ?? source.item.recorded)}`,
                      ),
                      h("blockquote", {}, memoryText(source.item)),
                    ]
                  : h("p", { class: "muted" }, "The message is gone, or your key does not reach it."),
              ),
            ),
          ),
        ),
        button("Open", () => openItem(item.scope, item.id), { class: "quiet" }),
      ),
    ),
  );
}

async function restore(scope, number) {
  try {
    const revision = await post(`/v1/revisions/${number}/restore`, { scope });
    toast(
      `Revision ${number} stands again, as revision ${revision.number}. What later ones had absorbed waits once more.`,
    );
    go("summaries", { scope, new: revision.number });
  } catch (problem) {
    tell(problem);
  }
}
