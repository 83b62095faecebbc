// Tables and figures.
import { h } from "../dom.js";

// Columns are [title, cell of a row, is a figure].
export function table(label, columns, rows) {
  return h(
    "div",
    { class: "table-wrap", role: "region", "aria-label": label, tabindex: "0" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map(([title, , isFigure]) => h("th", { scope: "col", class: isFigure ? "figure" : null }, title)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            columns.map(([title, cell, isFigure]) =>
              h("td", { class: isFigure ? "figure" : null, data: { title } }, cell(row)),
            ),
          ),
        ),
      ),
    ),
  );
}

export const tiles = (figures) =>
  h(
    "div",
    { class: "tiles" },
    figures.map(([name, value]) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, name))),
  );
