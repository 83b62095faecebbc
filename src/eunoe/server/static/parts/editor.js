// A field in the place of a text, to correct it.
import { CutText, get } from "../api.js";
import { button, h } from "../dom.js";

// The text before and after, or null where nothing was changed.
export async function editText(row, item) {
  const before = item.text instanceof CutText ? await wholeText(item) : item.text;
  return new Promise((resolve) => {
    const field = h("textarea", { value: before, "aria-label": "Corrected text", rows: "3", dir: "auto" });
    const end = (text) => {
      form.remove();
      row.classList.remove("editing");
      resolve(text && text !== before ? { before, text } : null);
    };
    const form = h(
      "form",
      {
        class: "editor",
        on: {
          submit: (event) => {
            event.preventDefault();
            end(field.value.trim());
          },
          keydown: (event) => {
            if (event.key === "Escape") {
              event.preventDefault();
              end(null);
            }
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              end(field.value.trim());
            }
          },
        },
      },
      field,
      h(
        "div",
        { class: "actions" },
        h("button", { class: "primary small" }, "Save"),
        button("Cancel", () => end(null), { class: "quiet" }),
        h("span", { class: "muted" }, "Ctrl+Enter saves, Esc cancels"),
      ),
    );
    row.classList.add("editing");
    row.append(form);
    field.focus();
  });
}

async function wholeText(item) {
  let text = "",
    next = 0;
  while (next !== null) {
    const piece = await get("/inspector/text", { scope: item.scope, id: item.id, start: next }, { textLimit: 100_000 });
    text += piece.text;
    next = piece.next;
  }
  return text;
}
