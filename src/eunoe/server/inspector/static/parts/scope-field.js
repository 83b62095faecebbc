// A field for a scope, which suggests those that there are.
import { get } from "../api.js";
import { h, replace } from "../dom.js";

let fields = 0;

export function scopeField({ label = "Scope", value = "", placeholder = "user=anna", onChange = () => {} } = {}) {
  const id = `scope-${(fields += 1)}`;
  const options = h("datalist", { id: `${id}-list` });
  const input = h("input", {
    id,
    value,
    placeholder,
    list: `${id}-list`,
    spellcheck: "false",
    autocapitalize: "none",
    autocomplete: "off",
    on: {
      input: () => suggest(input, options),
      focus: () => suggest(input, options),
      change: () => onChange(input.value.trim()),
    },
  });
  return { input, node: h("div", { class: "field scope-field" }, h("label", { for: id }, label), input, options) };
}

let asked = 0;

async function suggest(input, options) {
  const turn = (asked += 1);
  const { scopes } = await get("/inspector/scopes", { contains: input.value.replaceAll("/", " "), limit: 20 }).catch(
    () => ({ scopes: [] }),
  );
  if (turn === asked)
    replace(
      options,
      scopes.map((scope) => h("option", { value: scope })),
    );
}

// The only scope there is, or the one named.
export async function chosenScope(params) {
  if (params.get("scope")) return params.get("scope");
  const { scopes } = await get("/inspector/scopes", { limit: 2 });
  return scopes.length === 1 ? scopes[0] : "";
}
