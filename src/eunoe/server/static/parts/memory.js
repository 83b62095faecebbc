// One memory as lists show it.
import { CutText, get, total } from "../api.js";
import { button, h, icon, visible } from "../dom.js";
import { ago, day, number, percent, plural, when } from "../format.js";
import { link } from "../router.js";
import { tell } from "./notices.js";

// The text of a memory. Of a long one the beginning, with more on demand.
export function memoryText(item, tag = "p") {
  const text = item.text;
  const own = h(tag, { class: "memory-text", dir: "auto" }, visible(text));
  if (!(text instanceof CutText)) return own;
  return h("div", {}, own, moreButton(item, own, text.length));
}

function moreButton(item, own, length) {
  let start = 0;
  const more = button(
    `Show all ${number(length)} characters`,
    async () => {
      try {
        const piece = await get("/inspector/text", { scope: item.scope, id: item.id, start }, { textLimit: 100_000 });
        if (start === 0) own.replaceChildren();
        own.append(...visible(piece.text));
        start = piece.next;
        more.textContent = `Show more (${number(length - start)} characters left)`;
        if (piece.next === null) more.remove();
      } catch (problem) {
        tell(problem);
      }
    },
    { class: "link" },
  );
  return more;
}

export function scopeLink(scope) {
  return h("a", { class: "scope", href: link("scope", { scope }), dir: "ltr" }, visible(scope));
}

// How likely it was worth keeping when it was formed; empty if nobody judged that.
export function howSure(item) {
  const worth = item.metadata?.worth;
  return typeof worth === "number" ? percent(worth) : "";
}

export function badges(item) {
  return [
    h("span", { class: `kind kind-${item.kind}` }, item.kind === "message" ? item.speaker || item.role : item.kind),
    item.label && h("span", { class: "label", title: howSure(item) && `${howSure(item)} sure` }, visible(item.label)),
    item.in_review && h("span", { class: "badge review" }, "to review"),
    item.pinned && h("span", { class: "badge pinned" }, icon("pin"), "pinned"),
    item.retired &&
      h(
        "span",
        { class: "badge retired", title: `since ${day(item.retired)}` },
        item.superseded_by ? "superseded" : "archived",
      ),
  ];
}

// When it was said or happened, when it was learned, and what it rests on.
export function origin(item) {
  const time = item.time ?? item.recorded;
  return [
    time && h("span", {}, item.kind === "message" ? "said " : "", h("time", { datetime: time }, day(time))),
    item.recorded && h("span", {}, "learned ", when(item.recorded)),
    item.kind !== "message" &&
      h("span", {}, item.source?.length ? `from ${plural(total(item.source), "message")}` : "noted directly"),
  ].filter(Boolean);
}

export const described = (item) =>
  `${item.kind}${item.label ? `, ${item.label}` : ""}: ${String(item.text).slice(0, 200)}; ${item.scope}, ${ago(item.recorded ?? item.time ?? Date.now())}`;
