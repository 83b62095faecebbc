// A field for a scope, which suggests those that there are.
import { get } from "../api.js";
import { h, replace } from "../dom.js";

const SCOPE = /^[a-z][a-z0-9_]{0,31}=[^/]+(\/[a-z][a-z0-9_]{0,31}=[^/]+)*(\/\*)?$/;
let fields = 0;

// `read` gives the scope, or null after it has said what is wrong with it.
export function scopeField({ label = "Scope", value = "", placeholder = "user=anna", onChange = () => {} } = {}) {
  const id = `scope-${(fields += 1)}`;
  const options = h("datalist", { id: `${id}-list` });
  const error = h("p", { class: "error-text", id: `${id}-error`, role: "status" });
  const read = () => {
    input.value = wholeScope(input.value.trim());
    const isRight = !input.value || SCOPE.test(input.value);
    input.setAttribute("aria-invalid", String(!isRight));
    replace(error, !isRight && "Write a scope like user=anna or agent=cook/user=anna.");
    return isRight ? input.value : null;
  };
  const input = h("input", {
    id,
    value,
    placeholder,
    list: `${id}-list`,
    spellcheck: "false",
    autocapitalize: "none",
    autocomplete: "off",
    "aria-describedby": `${id}-error`,
    on: {
      input: () => suggest(input, options),
      focus: () => suggest(input, options),
      change: () => {
        const scope = read();
        if (scope !== null) onChange(scope);
      },
    },
  });
  const node = h("div", { class: "field scope-field" }, h("label", { for: id }, label), input, error, options);
  return { input, read, node };
}

// A name alone means a user.
const wholeScope = (text) => (text && !/[=/]/.test(text) ? `user=${text}` : text);

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
