// Who looks at the page, and what their key allows.
let caller = { key: "", tenant: "", scopes: [], rights: [] };

export function setCaller(known) {
  caller = known;
}

export const may = (right) => caller.rights.includes(right);

// Whether the key has this right for the whole store, not for a part of it.
export const mayForStore = (right) => may(right) && !caller.tenant && !caller.scopes.length;

export const isOwner = () => caller.key === "owner";

// A scope that the key reaches, for examples.
export const exampleScope = () => caller.scopes[0] ?? "user=me";
