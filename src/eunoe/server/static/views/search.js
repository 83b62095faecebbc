// Search, with the reasons of each hit drawn.
import { get, post } from "../api.js";
import { announce, button, h, replace } from "../dom.js";
import { plural, seconds } from "../format.js";
import { openItem } from "../parts/detail.js";
import { badges, memoryText, origin, scopeLink } from "../parts/memory.js";
import { empty, errorBox, FIRST_READ, waiting } from "../parts/notices.js";
import { reasonBar, reasonLegend, reasonTable } from "../parts/reasons.js";
import { scopeField } from "../parts/scope-field.js";
import { note } from "../router.js";

const RECIPES = {
  default: "balanced",
  thorough: "reads the best hits again",
  lexical: "words only",
  dense: "meaning only",
  rrf: "both, by rank",
  associative: "walks the entity graph",
  documents: "balanced, with the entity graph",
};
const KINDS = { "": "all kinds", fact: "facts", observation: "observations", message: "messages" };
const MAX_SCOPES = 100; // so many are searched where none is named

export async function show(root, params, signal) {
  const query = h("input", {
    id: "query",
    type: "search",
    value: params.get("q") ?? "",
    placeholder: "What shall be found?",
    autocomplete: "off",
  });
  const scope = scopeField({ value: params.get("scope") ?? "", placeholder: "all, or user=anna" });
  const recipe = select("recipe", "Recipe", RECIPES, params.get("recipe"));
  const kind = select("kind", "Kind", KINDS, params.get("kind"));
  const asOf = h("input", { id: "as-of", type: "date", value: params.get("as_of") ?? "" });
  const results = h("section", { "aria-label": "Hits" });
  const form = h(
    "form",
    {
      class: "search-form",
      role: "search",
      on: {
        submit: (event) => {
          event.preventDefault();
          search();
        },
      },
    },
    h("div", { class: "field grow" }, h("label", { for: "query" }, "Question or words"), query),
    h("button", { class: "primary" }, "Search"),
    h(
      "div",
      { class: "filters" },
      scope.node,
      recipe.node,
      kind.node,
      h("div", { class: "field" }, h("label", { for: "as-of" }, "True on"), asOf),
    ),
  );
  const search = () =>
    find(
      {
        q: query.value.trim(),
        scope: scope.read(),
        recipe: recipe.input.value,
        kind: kind.input.value,
        as_of: asOf.value,
      },
      results,
      signal,
    );
  for (const each of [recipe.input, kind.input, asOf, scope.input])
    each.addEventListener("change", () => query.value && search());
  replace(root, h("header", { class: "view-head" }, h("h1", {}, "Search")), form, results);
  if (query.value) await search();
  else
    replace(
      results,
      empty("Ask something", "A question works as well as a few words. Each hit shows what spoke for it."),
    );
  if (!query.value) query.focus();
}

function select(id, label, options, chosen) {
  const input = h(
    "select",
    { id },
    Object.entries(options).map(([value, text]) =>
      h("option", { value, selected: value === (chosen ?? "") || null }, id === "recipe" ? `${value}: ${text}` : text),
    ),
  );
  return { input, node: h("div", { class: "field" }, h("label", { for: id }, label), input) };
}

async function find(wanted, results, signal) {
  if (wanted.scope === null) return;
  note(wanted);
  if (!wanted.q) return;
  try {
    const searched = await scopesOf(wanted.scope, signal);
    if (!searched.length)
      return void replace(
        results,
        empty("Which scope?", `There are more than ${MAX_SCOPES} scopes: name one of them above.`),
      );
    const start = performance.now();
    const found = await waiting(results, post("/v1/recall", body(wanted, searched), { signal }), FIRST_READ);
    const took = (performance.now() - start) / 1000;
    showHits(results, found, wanted, searched, took);
  } catch (problem) {
    if (problem.name !== "AbortError") replace(results, errorBox(problem));
  }
}

function body({ q, recipe, kind, as_of }, scopes) {
  return {
    scope: scopes,
    query: q,
    limit: 20,
    recipe: recipe || "default",
    ...(kind ? { kinds: [kind] } : {}),
    ...(as_of ? { as_of } : {}),
  };
}

async function scopesOf(scope, signal) {
  if (scope) return [scope];
  const { scopes, next } = await get("/inspector/scopes", { limit: MAX_SCOPES }, { signal });
  return next ? [] : scopes;
}

function showHits(results, { hits, notes }, wanted, searched, took) {
  const where = searched.length === 1 ? searched[0] : plural(searched.length, "scope");
  const said = `${plural(hits.length, "hit")} in ${where}, ${seconds(took)}`;
  announce(said);
  replace(
    results,
    h("p", { class: "muted result-line" }, said),
    notes.map((text) => h("p", { class: "note" }, text)),
    hits.length
      ? h("ol", { class: "hits" }, hits.map(hitRow))
      : empty(
          "Nothing found",
          "Try other words, another recipe, or all kinds and scopes.",
          wanted.scope &&
            h("a", { class: "button", href: `#/search?q=${encodeURIComponent(wanted.q)}` }, "Search all scopes"),
        ),
  );
}

function hitRow(hit) {
  return h(
    "li",
    { class: "hit" },
    h("div", { class: "hit-score" }, h("b", {}, hit.score.toFixed(2)), reasonBar(hit)),
    h(
      "div",
      { class: "hit-body" },
      h("div", { class: "memory-head" }, badges(hit), scopeLink(hit.scope)),
      memoryText(hit),
      h("details", {}, h("summary", {}, h("span", {}, "Reasons"), reasonLegend(hit)), reasonTable(hit)),
      h(
        "div",
        { class: "memory-foot" },
        h("div", { class: "origin" }, origin(hit)),
        h(
          "div",
          { class: "actions" },
          button("Open", () => openItem(hit.scope, hit.id), { class: "quiet" }),
        ),
      ),
    ),
  );
}
