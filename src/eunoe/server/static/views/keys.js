// Keys: made, rotated, revoked. A secret is shown once.
import { get, post, remove } from "../api.js";
import { button, copyButton, h, replace } from "../dom.js";
import { day, when } from "../format.js";
import { empty, errorBox, tell, toast } from "../parts/notices.js";
import { table } from "../parts/table.js";

const RIGHTS = {
  read: "recall, list, export",
  write: "keep and correct",
  forget: "remove for good",
  admin: "backup, presets, upkeep",
};

export async function show(root, params, signal) {
  const secret = h("div", { "aria-live": "assertive" });
  const list = h("div", {});
  const load = async () => {
    const { items: keys } = await get("/v1/keys", {}, { signal });
    replace(
      list,
      keys.length
        ? keyTable(keys, secret, load)
        : empty(
            "No keys yet",
            "The owner of the store needs none on this machine. Make one for each application or person that calls this server.",
          ),
    );
  };
  replace(
    root,
    h("header", { class: "view-head" }, h("h1", {}, "Keys")),
    secret,
    list,
    h("h2", { class: "section" }, "New key"),
    form(secret, load),
  );
  await load().catch((problem) => problem.name === "AbortError" || replace(list, errorBox(problem)));
}

function form(secret, reload) {
  const name = h("input", { id: "key-name", required: true, placeholder: "shop assistant" });
  const tenant = h("input", { id: "key-tenant", placeholder: "acme" });
  const scopes = h("input", { id: "key-scopes", placeholder: "all of the tenant, or user=anna, agent=cook" });
  const expires = h("input", { id: "key-expires", type: "date" });
  const rights = Object.entries(RIGHTS).map(([right, text]) => ({
    right,
    box: h("input", { type: "checkbox", id: `right-${right}`, checked: ["read", "write"].includes(right) || null }),
    text,
  }));
  const submit = async (event) => {
    event.preventDefault();
    const wanted = {
      name: name.value.trim(),
      ...(tenant.value.trim() ? { tenant: tenant.value.trim() } : {}),
      rights: rights.filter(({ box }) => box.checked).map(({ right }) => right),
      ...(scopes.value.trim() ? { scopes: scopes.value.split(",").map((each) => each.trim()) } : {}),
      ...(expires.value ? { expires: expires.value } : {}),
    };
    try {
      showSecret(secret, await post("/v1/keys", wanted), "New key");
      event.target.reset();
      await reload();
    } catch (problem) {
      tell(problem);
    }
  };
  const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
  return h(
    "form",
    { class: "form", on: { submit } },
    field("Name", name),
    field("Tenant", tenant),
    field("Scopes", scopes),
    field("Ends on", expires),
    h(
      "fieldset",
      { class: "wide" },
      h("legend", {}, "May"),
      rights.map(({ right, box, text }) =>
        h("label", { class: "check", for: box.id }, box, h("b", {}, right), ` ${text}`),
      ),
    ),
    h("button", { class: "primary" }, "Make the key"),
  );
}

function showSecret(target, answer, title) {
  const text = answer.token;
  replace(
    target,
    h(
      "div",
      { class: "secret" },
      h("h2", {}, title),
      h("p", {}, "Copy it now: it is not kept, and cannot be shown again."),
      h("div", { class: "command" }, h("code", {}, text), copyButton(text)),
      button("Done", () => replace(target), { class: "quiet" }),
    ),
  );
}

function keyTable(keys, secret, reload) {
  const state = (key) =>
    key.revoked
      ? h("span", { class: "badge bad" }, "revoked")
      : key.expires && new Date(key.expires) < Date.now()
        ? h("span", { class: "badge" }, "ended")
        : h("span", { class: "badge good" }, "valid");
  return table(
    "Keys",
    [
      ["Name", (key) => [h("b", {}, key.name), h("div", { class: "muted" }, h("code", {}, key.id))]],
      ["Tenant", (key) => key.tenant],
      ["Scopes", (key) => key.scopes.join(", ") || "all"],
      ["May", (key) => key.rights.join(", ")],
      ["Made", (key) => when(key.created)],
      ["Ends", (key) => (key.expires ? day(key.expires) : "never")],
      ["State", state],
      ["", (key) => !key.revoked && actions(key, secret, reload)],
    ],
    keys,
  );
}

function actions(key, secret, reload) {
  const path = `/v1/keys/${encodeURIComponent(key.id)}`;
  const sure = (label, said, action) =>
    button(
      label,
      (event) =>
        event.currentTarget.replaceWith(
          button(said, () => action().then(reload, tell), { class: "danger strong small" }),
        ),
      { class: "quiet" },
    );
  return h(
    "div",
    { class: "actions" },
    sure("Rotate", "The old secret ends now: rotate", async () =>
      showSecret(secret, await post(`${path}/rotate`), `New secret of ${key.name}`),
    ),
    sure("Revoke", "Revoke for good", async () => {
      await remove(path);
      toast(`${key.name} is revoked.`);
    }),
  );
}
