// Views by the hash of the address: #/search?q=tea&scope=user%3Danna. The address is all the state that a view has.
import { may, mayForStore } from "./caller.js";

const VIEWS = {
  learned: { title: "Learned", group: "Memory", key: "l" },
  search: { title: "Search", group: "Memory", key: "s" },
  scope: { title: "People and agents", group: "Memory", key: "p" },
  timeline: { title: "Timeline", group: "Memory", key: "t" },
  summaries: { title: "Summaries", group: "Memory", key: "u" },
  graph: { title: "Entity graph", group: "Memory", key: "e" },
  context: { title: "Context preview", group: "Try", key: "c" },
  dryrun: { title: "Dry run", group: "Try", key: "d", isAllowed: () => may("write") },
  jobs: { title: "Jobs", group: "Server", key: "j" },
  calls: { title: "Model calls", group: "Server", key: "m", isAllowed: () => mayForStore("admin") },
  live: { title: "Live feed", group: "Server", key: "f" },
  keys: { title: "Keys", group: "Server", key: "k", isAllowed: () => may("admin") },
  audit: { title: "Audit log", group: "Server", key: "a", isAllowed: () => may("admin") },
  backup: { title: "Backup", group: "Server", key: "b", isAllowed: () => mayForStore("admin") },
};

export const isAllowed = (name) => VIEWS[name].isAllowed?.() ?? may("read");

// The views that the key can use.
export const allowedViews = () =>
  Object.entries(VIEWS)
    .filter(([name]) => isAllowed(name))
    .map(([name, view]) => ({ name, ...view }));

export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: path || "learned", params: new URLSearchParams(query ?? "") };
}

export function link(name, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#/${name}${query ? `?${query}` : ""}`;
}

export function go(name, params = {}) {
  location.hash = link(name, params);
}

// Note where a view stands, so that the address can be shared and the view found again.
export function note(params) {
  const { name, params: known } = place();
  history.replaceState(null, "", link(name, { ...Object.fromEntries(known), ...params }));
}

export const isKnown = (name) => Object.hasOwn(VIEWS, name);
export const load = (name) => import(`./views/${name}.js`);
export const titleOf = (name) => (isKnown(name) ? VIEWS[name].title : "No such view");
