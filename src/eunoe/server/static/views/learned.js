// What was learned since the last visit: keep, correct, pin, forget, undo.
import { get, memoryPath, patch, post } from "../api.js";
import { may } from "../caller.js";
import { announce, button, h, replace } from "../dom.js";
import { ago, plural } from "../format.js";
import { openItem } from "../parts/detail.js";
import { editText } from "../parts/editor.js";
import { firstSteps } from "../parts/first-steps.js";
import { badges, described, memoryText, origin, scopeLink } from "../parts/memory.js";
import { empty, tell, toast } from "../parts/notices.js";
import { showProof } from "../parts/proof.js";
import { later, undoable, undoLast } from "../parts/undo.js";
import { go, link } from "../router.js";
import { shortcut } from "../shortcuts.js";
import { lastVisit, markSeen } from "../visit.js";

const PAGE = 40;
const SPANS = { visit: "Since your last visit", day: "Last 24 hours", week: "Last 7 days", all: "Everything" };

export async function show(root, params, signal) {
  const span = params.get("span") in SPANS ? params.get("span") : "visit";
  const list = new LearnedList(root, span);
  replace(root, heading(span), list.reviewed, list.node, list.foot);
  const keys = {
    j: ["Next memory", () => list.move(1)],
    k: ["Previous memory", () => list.move(-1)],
    ...(may("write") && {
      a: ["Keep", () => list.act("keep")],
      e: ["Correct", () => list.act("correct")],
      p: ["Pin or unpin", () => list.act("pin")],
    }),
    ...(may("forget") && { x: ["Forget", () => list.act("forget")] }),
    z: ["Undo", undoLast],
    Enter: ["Open", () => list.act("open")],
  };
  for (const [key, [label, action]] of Object.entries(keys)) shortcut(key, label, action, signal);
  await list.load(signal);
}

function heading(span) {
  const visit = lastVisit();
  const choices = Object.entries(SPANS).map(([name, label]) =>
    h(
      "a",
      {
        href: link("learned", { span: name }),
        "aria-current": name === span ? "true" : null,
      },
      name === "visit" && visit ? `${label}, ${ago(visit)}` : label,
    ),
  );
  return h(
    "header",
    { class: "view-head" },
    h("h1", {}, "Learned"),
    h("div", { class: "choices", role: "group", "aria-label": "Time span" }, choices),
    button(
      "Mark all as seen",
      () => {
        markSeen();
        go("learned");
        dispatchEvent(new Event("hashchange"));
      },
      { class: "quiet" },
    ),
  );
}

function sinceOf(span) {
  const days = { day: 1, week: 7 }[span];
  if (days) return new Date(Date.now() - days * 86_400_000).toISOString();
  return span === "visit" ? lastVisit() : null;
}

class LearnedList {
  constructor(root, span) {
    this.span = span;
    this.reviewed = h("ol", { class: "memories", "aria-label": "To review" });
    this.node = h("ol", { class: "memories", "aria-label": "Learned" });
    this.foot = h("div", { class: "foot" });
  }

  async load(signal) {
    const since = sinceOf(this.span);
    const [waiting, learned] = await Promise.all([
      get("/v1/recent", { in_review: true, limit: PAGE }, { signal }),
      get("/v1/recent", { in_review: false, since, limit: PAGE }, { signal }),
    ]);
    const review = waiting.items;
    if (review.length) {
      this.reviewed.before(
        h(
          "div",
          { class: "section section-head" },
          h("h2", {}, `To review (${review.length}${waiting.next ? "+" : ""})`),
          may("write") && button(`Keep all ${review.length}`, () => this.keepAll()),
        ),
      );
      this.node.before(h("h2", { class: "section" }, "Learned"));
    }
    this.add(this.reviewed, review);
    this.add(this.node, learned.items);
    this.showMore(learned.next, since, signal);
    if (!this.rows.length) await this.showEmpty(signal);
    if (review.length) dispatchEvent(new Event("eunoe:review-changed"));
    announce(`${plural(this.rows.length, "memory", "memories")} shown`);
  }

  get rows() {
    return [...this.reviewed.children, ...this.node.children];
  }

  add(list, items) {
    list.append(...items.map((item) => this.row(item)));
  }

  row(item) {
    const act = (name) => () => {
      this.current = own;
      this.act(name);
    };
    const own = h(
      "li",
      { class: "memory", tabindex: "-1", "aria-label": described(item), on: { focusin: () => this.select(own) } },
      h("div", { class: "memory-head" }, badges(item), scopeLink(item.scope)),
      memoryText(item),
      h(
        "div",
        { class: "memory-foot" },
        h("div", { class: "origin" }, origin(item)),
        h(
          "div",
          { class: "actions" },
          item.in_review && may("write") && button("Keep", act("keep"), { class: "primary small", title: "a" }),
          may("write") && button("Correct", act("correct"), { class: "quiet", title: "e" }),
          may("write") && button(item.pinned ? "Unpin" : "Pin", act("pin"), { class: "quiet", title: "p" }),
          may("forget") && button("Forget", act("forget"), { class: "quiet danger", title: "x" }),
          button("Open", act("open"), { class: "quiet", title: "Enter" }),
        ),
      ),
    );
    own.item = item;
    return own;
  }

  select(row) {
    this.current = row;
    for (const each of this.rows) each.classList.toggle("current", each === row);
  }

  move(step) {
    const rows = this.rows.filter((row) => !row.hidden);
    if (!rows.length) return;
    const at = rows.indexOf(this.current);
    const next = at < 0 ? rows[0] : rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  // Do something with the current memory.
  act(name) {
    const row = this.current ?? this.rows.find((each) => !each.hidden);
    if (row) Promise.resolve(this[name](row, row.item)).catch(tell);
  }

  keep(row, item) {
    this.hide(row);
    if (!item.in_review) return toast("Kept. It was in use already.", { stay: 2500 });
    return later(
      "Kept.",
      async (options) => {
        await post("/v1/review", { scope: item.scope, ids: [item.id], keep: true }, options);
        dispatchEvent(new Event("eunoe:review-changed"));
      },
      () => this.unhide(row),
    );
  }

  keepAll() {
    const rows = [...this.reviewed.children].filter((row) => !row.hidden);
    const byScope = Map.groupBy(
      rows.map((row) => row.item),
      (item) => item.scope,
    );
    for (const row of rows) row.hidden = true;
    later(
      `Kept ${plural(rows.length, "memory", "memories")}.`,
      async (options) => {
        for (const [scope, items] of byScope)
          await post("/v1/review", { scope, ids: items.map((item) => item.id), keep: true }, options);
        dispatchEvent(new Event("eunoe:review-changed"));
        if (!options.keepalive) dispatchEvent(new Event("hashchange"));
      },
      () => {
        for (const row of rows) row.hidden = false;
      },
    );
  }

  forget(row, item) {
    this.hide(row);
    later(
      "Forgotten for good in a moment.",
      async (options) => {
        const report = await post("/v1/forget", { scope: item.scope, ids: [item.id], verify: true }, options);
        showProof(report, item, openItem);
        dispatchEvent(new Event("eunoe:review-changed"));
      },
      () => this.unhide(row),
    );
  }

  async correct(row, item) {
    const change = await editText(row, item);
    if (!change) return row.focus();
    const { before, text } = change;
    const receipt = await patch(memoryPath(item.id), { scope: item.scope, text });
    const next = this.swap(row, { ...item, id: receipt.id, text });
    return undoable("Corrected. The earlier version is kept in its history.", async () => {
      const back = await patch(memoryPath(receipt.id), { scope: item.scope, text: before });
      this.swap(next, { ...item, id: back.id });
    });
  }

  async pin(row, item) {
    const pinned = !item.pinned;
    await post(memoryPath(item.id, "/pin"), { scope: item.scope, pinned });
    const next = this.swap(row, { ...item, pinned });
    undoable(pinned ? "Pinned: no clean-up takes it." : "No longer pinned.", async () => {
      await post(memoryPath(item.id, "/pin"), { scope: item.scope, pinned: !pinned });
      this.swap(next, item);
    });
  }

  open(row, item) {
    return openItem(item.scope, item.id);
  }

  swap(row, item) {
    const next = this.row(item);
    row.replaceWith(next);
    next.focus();
    return next;
  }

  hide(row) {
    const rows = this.rows.filter((each) => !each.hidden);
    const next = rows[rows.indexOf(row) + 1] ?? rows[rows.indexOf(row) - 1];
    row.hidden = true;
    if (next) next.focus();
  }

  unhide(row) {
    row.hidden = false;
    row.focus();
  }

  showMore(next, since, signal) {
    if (!next) return replace(this.foot);
    return replace(
      this.foot,
      button("Show more", async () => {
        const page = await get("/v1/recent", { in_review: false, since, limit: PAGE, after: next }, { signal });
        this.add(this.node, page.items);
        this.showMore(page.next, since, signal);
      }),
    );
  }

  async showEmpty(signal) {
    const { total } = await get("/inspector/scopes", { limit: 1 }, { signal });
    replace(this.foot, total ? nothingNew(this.span) : await firstSteps());
  }
}

function nothingNew(span) {
  if (span === "all")
    return empty(
      "Nothing learned yet",
      "There are messages, but no facts were formed from them so far.",
      h("a", { class: "button", href: "#/jobs" }, "See what is waiting"),
    );
  return empty(
    "Nothing new",
    "Nothing was learned in this time.",
    h("a", { class: "button", href: link("learned", { span: "all" }) }, "Show everything"),
    h("a", { class: "button", href: "#/search" }, "Search"),
  );
}
