// The page: who looks, the frame around the views, and the view that the address names.
import { get, post, Problem, remove, unreachable } from "./api.js";
import { setCaller } from "./caller.js";
import { announce, button, h, icon, replace } from "./dom.js";
import { number } from "./format.js";
import { showLogin } from "./login.js";
import { errorBox, tell } from "./parts/notices.js";
import { flush } from "./parts/undo.js";
import { allowedViews, go, isAllowed, isKnown, link, load, place, titleOf } from "./router.js";
import { listen, shortcut, showShortcuts } from "./shortcuts.js";
import { applyTheme, themeButton } from "./theme.js";
import { startVisit } from "./visit.js";

const root = document.getElementById("app");
let shown = null;
let main = null;

applyTheme();
begin();

async function begin() {
  const token = takeToken();
  try {
    if (token) await post("/session", { token });
    await showFrame(await get("/session"));
  } catch (problem) {
    showLogin(root, refusal(problem, token), begin);
  }
}

// Why there is no page yet. Who comes without a token has done nothing wrong.
function refusal(problem, token) {
  if (problem.status !== 401) return problem.message;
  return token ? "The token of this link is not valid any more. Use the link that the server printed last." : "";
}

// The token of the printed link. It leaves the address and the history before anything else happens.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", location.pathname);
  return token;
}

async function showFrame(me) {
  setCaller(me);
  startVisit();
  main = h("main", { id: "main", tabindex: "-1" });
  const skip = h(
    "a",
    {
      class: "skip",
      href: "#main",
      on: {
        click: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
    },
    "Skip to the content",
  );
  replace(root, skip, header(me), navigation(), main);
  window.addEventListener("hashchange", showView);
  window.addEventListener("eunoe:signed-out", () => location.reload(), { once: true });
  window.addEventListener("eunoe:review-changed", showReviewCount);
  listen();
  for (const view of allowedViews()) shortcut(`g ${view.key}`, `Go to: ${view.title}`, () => go(view.name));
  shortcut("/", "Search", () => (place().name === "search" ? main.querySelector("input")?.focus() : go("search")));
  shortcut("?", "Show these shortcuts", showShortcuts);
  await Promise.all([showView(), showReviewCount()]);
}

function header(me) {
  const menu = button("Menu", () => document.body.classList.toggle("menu-open"), {
    class: "menu-button quiet",
    "aria-controls": "navigation",
  });
  return h(
    "header",
    { class: "top" },
    menu,
    h("a", { class: "brand", href: "#/learned" }, h("span", { class: "brand-mark", "aria-hidden": "true" }), "Eunoe"),
    h(
      "span",
      { class: "who", title: `May: ${me.rights.join(", ")}` },
      me.tenant ? `${me.name} · ${me.tenant}` : me.name,
    ),
    themeButton(),
    button("?", showShortcuts, { class: "quiet", "aria-label": "Keyboard shortcuts" }),
    button("Sign out", signOut, { class: "quiet" }),
  );
}

async function signOut() {
  await flush();
  await remove("/session");
  location.assign("/");
}

function navigation() {
  const views = allowedViews();
  const groups = [...new Set(views.map((view) => view.group))];
  return h(
    "nav",
    { id: "navigation", "aria-label": "Views" },
    groups.map((group) => [
      h("h2", {}, group),
      h(
        "ul",
        {},
        views
          .filter((view) => view.group === group)
          .map((view) =>
            h(
              "li",
              {},
              h(
                "a",
                { href: link(view.name), data: { view: view.name } },
                icon(view.name),
                h("span", {}, view.title),
                view.name === "learned" && h("span", { class: "count", id: "review-count", hidden: true }),
              ),
            ),
          ),
      ),
    ]),
  );
}

async function showReviewCount() {
  const { in_review: count = 0 } = await get("/v1/status").catch(() => ({}));
  const badge = document.getElementById("review-count");
  if (!badge) return;
  badge.hidden = !count;
  badge.textContent = number(count);
  badge.setAttribute("aria-label", `${number(count)} to review`);
}

async function showView() {
  shown?.abort();
  shown = new AbortController();
  const { signal } = shown;
  const { name, params } = place();
  markCurrent(name, params.get("scope"));
  const view = h("div", { class: `view view-${name}` });
  try {
    const { show } = await find(name);
    if (signal.aborted) return;
    replace(main, view);
    await show(view, params, signal);
  } catch (problem) {
    if (!signal.aborted && problem.name !== "AbortError")
      replace(main, h("h1", {}, titleOf(name)), errorBox(problem, problem.retry ?? showView));
  }
}

async function find(name) {
  if (!isKnown(name))
    throw new Problem(404, { detail: `The page has no view "${name}".`, hint: "Choose one from the menu." });
  if (!isAllowed(name)) throw new Problem(403, { detail: `${titleOf(name)} needs a key with more rights.` });
  // A browser remembers that a module could not be fetched: only a new page asks for it again.
  return load(name).catch((problem) => {
    if (!(problem instanceof TypeError)) throw problem;
    throw Object.assign(unreachable(), { retry: () => get("/session").then(() => location.reload(), tell) });
  });
}

// The scope goes along from view to view.
function markCurrent(name, scope) {
  document.title = `${titleOf(name)} · Eunoe`;
  document.body.classList.remove("menu-open");
  for (const anchor of document.querySelectorAll("#navigation a")) {
    anchor.toggleAttribute("aria-current", anchor.dataset.view === name);
    if (anchor.dataset.view === name) anchor.setAttribute("aria-current", "page");
    const takesScope = ["search", "scope", "timeline", "summaries", "graph", "context", "dryrun"].includes(
      anchor.dataset.view,
    );
    anchor.setAttribute("href", link(anchor.dataset.view, takesScope && scope ? { scope } : {}));
  }
  announce(titleOf(name));
}
