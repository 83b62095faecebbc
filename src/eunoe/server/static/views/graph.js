// The entity graph, to walk by clicking. The same stands beside it as a list.
import { get } from "../api.js";
import { announce, button, h, replace, visible } from "../dom.js";
import { number, plural } from "../format.js";
import { openItem } from "../parts/detail.js";
import { GraphPicture } from "../parts/graph-picture.js";
import { empty, filled, FIRST_READ, tell, waiting } from "../parts/notices.js";
import { chosenScope, scopeField } from "../parts/scope-field.js";
import { go, note } from "../router.js";

const FIRST = 40; // names at the beginning
const STEP = 30; // names that a click adds at most

export async function show(root, params, signal) {
  const scope = await chosenScope(params);
  const field = scopeField({ value: scope, onChange: (chosen) => go("graph", { scope: chosen }) });
  const name = h("input", {
    id: "entity",
    value: params.get("entity") ?? "",
    placeholder: "the best connected",
    autocomplete: "off",
  });
  const body = h("div", {});
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Entity graph")),
    h(
      "form",
      {
        class: "form",
        on: {
          submit: (event) => {
            event.preventDefault();
            const chosen = field.read();
            if (chosen !== null) go("graph", { scope: chosen, entity: name.value.trim() });
          },
        },
      },
      field.node,
      h("div", { class: "field" }, h("label", { for: "entity" }, "Begin at"), name),
      h("button", { class: "primary" }, "Show"),
    ),
    body,
  );
  if (field.read() === null) return;
  if (!scope) return void replace(body, empty("Whose graph?", "Choose a scope above."));
  await filled(body, showGraph(body, scope, params.get("entity") ?? "", signal));
}

async function showGraph(body, scope, entity, signal) {
  const first = await waiting(
    body,
    get("/inspector/graph", { scope, entity, limit: FIRST }, { signal }),
    FIRST_READ,
  );
  if (!first.entities.length)
    return void replace(
      body,
      empty(
        "No names yet",
        "The graph joins names that stand in the same memories. It grows as messages and memories come in.",
      ),
    );
  new GraphWalk(body, scope, signal).begin(first);
}

class GraphWalk {
  constructor(body, scope, signal) {
    this.scope = scope;
    this.signal = signal;
    this.picture = new GraphPicture((key) => this.visit(key));
    this.names = h("ul", { class: "entity-list", "aria-label": "Entities" });
    this.passages = h("div", { class: "passages", "aria-live": "polite" });
    this.said = h("p", { class: "muted" });
    replace(
      body,
      h(
        "div",
        { class: "graph" },
        h("div", {}, this.picture.node, this.said),
        h("aside", {}, this.passages, h("h2", { class: "section" }, "Entities shown"), this.names),
      ),
    );
  }

  begin(near) {
    this.add(near);
    if (near.entity) this.choose(near);
    else
      replace(
        this.passages,
        h("h2", {}, "Walk the graph"),
        h(
          "p",
          { class: "muted" },
          "Click a name, or press it in the list below. Its neighbours join the picture, and its passages stand here.",
        ),
      );
  }

  async visit(key) {
    try {
      const near = await get(
        "/inspector/graph",
        { scope: this.scope, entity: key, limit: STEP },
        { signal: this.signal },
      );
      this.add(near, key);
      this.choose(near, key);
      note({ entity: near.entity });
    } catch (problem) {
      if (problem.name !== "AbortError") tell(problem);
    }
  }

  add(near, from) {
    const added = this.picture.add(near.entities, near.links, from);
    this.said.textContent = `${plural(this.picture.size, "name")}, ${plural(this.picture.linkCount, "link")} shown`;
    announce(`${plural(added, "name")} added`);
    const entities = [...this.picture.entities].sort((a, b) => b.passages - a.passages);
    replace(
      this.names,
      entities.map((entity) =>
        h(
          "li",
          {},
          button(
            [h("span", {}, visible(entity.name)), h("span", { class: "muted" }, number(entity.passages))],
            () => this.visit(entity.key),
            { class: "quiet", "aria-label": `${entity.name}, ${plural(entity.passages, "passage")}` },
          ),
        ),
      ),
    );
  }

  choose(near) {
    const [entity, ...neighbours] = near.entities;
    this.picture.select(entity.key);
    replace(
      this.passages,
      h("h2", {}, visible(entity.name)),
      h(
        "p",
        { class: "muted" },
        `${plural(entity.passages, "passage")} · tied to ${
          neighbours
            .slice(0, 5)
            .map((each) => each.name)
            .join(", ") || "nothing else"
        }`,
      ),
      h(
        "ol",
        { class: "passage-list" },
        near.passages.map((passage) =>
          h(
            "li",
            {},
            button(visible(passage.text), () => openItem(this.scope, passage.id), { class: "passage" }),
          ),
        ),
      ),
      near.passages.length < entity.passages &&
        h("p", { class: "muted" }, `the first ${near.passages.length} of ${number(entity.passages)}`),
    );
  }
}
