// The live feed: what memory is learning now.
import { button, h, replace } from "../dom.js";
import { openItem } from "../parts/detail.js";
import { badges, memoryText, origin, scopeLink } from "../parts/memory.js";

const MOST = 200; // older ones leave the page
const LONGEST = 800;

export async function show(root, params, signal) {
  const state = h("span", { class: "badge warn", role: "status" }, "connecting");
  const list = h("ol", { class: "memories", "aria-live": "polite", "aria-label": "Learned now" });
  const waiting = h(
    "div",
    { class: "empty" },
    h("h2", {}, "Listening"),
    h("p", {}, "Facts and observations appear here the moment they are learned, by whichever program."),
  );
  replace(root, h("header", { class: "view-head" }, h("h1", {}, "Live feed"), state), list, waiting);
  const source = new EventSource("/v1/events");
  const mark = (kind, text) => {
    state.className = `badge ${kind}`;
    state.textContent = text;
  };
  source.addEventListener("open", () => mark("good", "live"));
  source.addEventListener("error", () =>
    mark("bad", source.readyState === EventSource.CLOSED ? "not available" : "connecting again"),
  );
  source.addEventListener("learned", (event) => {
    waiting.hidden = true;
    list.prepend(row(JSON.parse(event.data)));
    while (list.childElementCount > MOST) list.lastElementChild.remove();
  });
  signal.addEventListener("abort", () => source.close());
}

function row(item) {
  const text = item.text.length > LONGEST ? `${item.text.slice(0, LONGEST)}…` : item.text;
  return h(
    "li",
    { class: "memory fresh" },
    h("div", { class: "memory-head" }, badges(item), scopeLink(item.scope)),
    memoryText({ ...item, text }),
    h(
      "div",
      { class: "memory-foot" },
      h("div", { class: "origin" }, origin(item)),
      button("Open", () => openItem(item.scope, item.id), { class: "quiet" }),
    ),
  );
}
