// One memory, opened: its versions, the messages it rests on, how often it was recalled.
import { get, memoryPath, patch, post, total } from "../api.js";
import { may } from "../caller.js";
import { button, h, replace, visible } from "../dom.js";
import { day, moment, plural, when } from "../format.js";
import { link } from "../router.js";
import { editText } from "./editor.js";
import { badges, howSure, memoryText, scopeLink } from "./memory.js";
import { errorBox, tell } from "./notices.js";
import { showProof } from "./proof.js";
import { undoable } from "./undo.js";

const KINDS = ["instruction", "preference", "fact", "plan", "decision", "change"];

export async function openItem(scope, id) {
  const body = h("div", { class: "drawer-body" }, h("p", { class: "muted" }, "Loading…"));
  const dialog = h(
    "dialog",
    { class: "drawer", "aria-label": "Memory", on: { click: (event) => event.target === dialog && dialog.close() } },
    body,
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  const load = async (shown = id) => {
    try {
      const found = await get("/inspector/item", { scope, id: shown }, { textLimit: 2000 });
      replace(body, content(found, dialog, load));
    } catch (problem) {
      replace(body, closeButton(dialog), errorBox(problem, () => load(shown)));
    }
  };
  await load();
}

const closeButton = (dialog) => button("Close", () => dialog.close(), { class: "quiet close" });

function content({ item, versions, sources, access }, dialog, reload) {
  const words = h("div", {}, memoryText(item, "h2"));
  const mayChange = item.kind !== "message" && may("write");
  return [
    h("header", {}, h("div", { class: "memory-head" }, badges(item)), closeButton(dialog)),
    words,
    h(
      "div",
      { class: "actions" },
      mayChange && !item.retired && button("Correct", () => correct(words, item, reload).catch(tell)),
      mayChange && button(item.pinned ? "Unpin" : "Pin", () => pin(item, reload)),
      may("forget") &&
        button("Forget…", (event) => confirmForget(item, event.currentTarget, dialog), { class: "danger" }),
      h(
        "a",
        { class: "button", href: link("graph", { scope: item.scope }), on: { click: () => dialog.close() } },
        "Graph of this scope",
      ),
    ),
    may("write") && corrections(item, dialog, reload),
    facts(item, access),
    versions.length > 1 && [h("h3", {}, plural(total(versions), "version")), history(versions, item.id)],
    item.kind !== "message" && [h("h3", {}, "Where it comes from"), origins(sources, item)],
  ];
}

function facts(item, access) {
  const { author, worth, ...rest } = item.metadata ?? {};
  const sure = howSure(item);
  const rows = [
    ["Scope", scopeLink(item.scope)],
    ["Kind", item.label && `${item.label}${sure && `, ${sure} sure when it was learned`}`],
    ["Learned", item.recorded && moment(item.recorded)],
    ["Happened", item.time && moment(item.time)],
    ["True", validity(item)],
    ["Retired", item.retired && moment(item.retired)],
    ["People", item.people?.length > 0 && visible(item.people.join(", "))],
    ["Files", item.files?.length > 0 && visible(item.files.join(", "))],
    ["Recalled", access.times ? [plural(access.times, "time"), ", last ", when(access.last)] : "never"],
    ["Written by", author],
    ["Id", h("code", {}, item.id)],
    ["Metadata", Object.keys(rest).length > 0 && h("code", {}, visible(JSON.stringify(rest)))],
  ];
  return h(
    "dl",
    { class: "facts" },
    rows.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function validity(item) {
  const from = item.valid_from ? `from ${day(item.valid_from)}` : "";
  return `${from} ${item.valid_to ? `until ${day(item.valid_to)}` : ""}`.trim();
}

function history(versions, current) {
  return h(
    "ol",
    { class: "versions" },
    versions.map((version) =>
      h(
        "li",
        { class: version.retired ? "retired" : "" },
        h(
          "div",
          { class: "muted" },
          `${moment(version.recorded)}${version.retired ? ` until ${moment(version.retired)}` : ", now"} `,
          version.id === current && h("span", { class: "badge" }, "shown above"),
        ),
        memoryText(version),
      ),
    ),
  );
}

function origins(sources, item) {
  if (!sources.length) return h("p", { class: "muted" }, "It was noted directly, not formed from messages.");
  const left = total(item.source) - sources.length;
  return [
    h(
      "ol",
      { class: "sources" },
      sources.map(({ scope, id, item: message }) =>
        h(
          "li",
          {},
          message
            ? [
                h(
                  "div",
                  { class: "muted" },
                  h("strong", {}, message.speaker || message.role || message.kind),
                  ` · ${moment(message.time ?? message.recorded)} · `,
                  scopeLink(scope),
                ),
                h("blockquote", {}, memoryText(message)),
              ]
            : h("p", { class: "muted" }, `Message ${id} is gone, or your key does not reach it.`),
        ),
      ),
    ),
    left > 0 && h("p", { class: "muted" }, `and ${plural(left, "more message")}`),
  ];
}

async function correct(words, item, reload) {
  const change = await editText(words, item);
  if (!change) return;
  const { id } = await patch(memoryPath(item.id), { scope: item.scope, text: change.text });
  undoable("Corrected. The earlier version is kept in its history.", async () => {
    await patch(memoryPath(id), { scope: item.scope, text: change.before });
    dispatchEvent(new Event("hashchange"));
  });
  dispatchEvent(new Event("hashchange"));
  await reload(id);
}

// What people say of what was learned: it counts for like sentences from then on.
function corrections(item, dialog, reload) {
  const kinds = h(
    "select",
    {
      "aria-label": "Another kind",
      on: { change: () => kinds.value && judge(item, kinds.value, dialog, reload).catch(tell) },
    },
    h("option", { value: "" }, "Another kind…"),
    KINDS.filter((kind) => kind !== item.label).map((kind) => h("option", { value: kind }, kind)),
  );
  return h(
    "div",
    { class: "actions", role: "group", "aria-label": "Is it worth keeping?" },
    button("Worth keeping", () => judge(item, "keep", dialog, reload).catch(tell)),
    !item.retired && button("Not worth keeping", () => judge(item, "drop", dialog, reload).catch(tell)),
    (item.kind === "message" || !item.retired) && kinds,
  );
}

async function judge(item, verdict, dialog, reload) {
  const made = await post("/v1/corrections", { scope: item.scope, id: item.id, verdict });
  undoable(`Noted: ${verdict}. It counts for sentences like it, in ${made.scope}.`, async () => {
    await post(`/v1/corrections/${encodeURIComponent(made.id)}/remove`, { scope: made.scope });
    if (verdict === "drop" && item.kind !== "message") await post(memoryPath(item.id, "/unarchive"), { scope: item.scope });
    dispatchEvent(new Event("hashchange"));
  });
  dispatchEvent(new Event("hashchange"));
  if (KINDS.includes(verdict) && item.kind !== "message") dialog.close();
  else await reload(item.id);
}

async function pin(item, reload) {
  await post(memoryPath(item.id, "/pin"), { scope: item.scope, pinned: !item.pinned }).catch(tell);
  await reload(item.id);
}

function confirmForget(item, asked, dialog) {
  const sources = item.kind === "message" ? 0 : total(item.source ?? []);
  const stays = sources ? `; ${plural(sources, "message")} it came from ${sources === 1 ? "stays" : "stay"}` : "";
  asked.replaceWith(
    button(
      `Forget for good, with all its versions${stays}`,
      async () => {
        try {
          const report = await post("/v1/forget", { scope: item.scope, ids: [item.id], verify: true });
          dialog.close();
          showProof(report, item, openItem);
          dispatchEvent(new Event("hashchange"));
        } catch (problem) {
          tell(problem);
        }
      },
      { class: "danger strong" },
    ),
  );
}
