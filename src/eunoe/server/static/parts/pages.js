// Lists that are read a page at a time.
import { button, h, replace } from "../dom.js";
import { errorBox } from "./notices.js";

// Load pages into a list: `read(after)` gives { items, next }, `row(item)` a node. Returns the first page.
export async function fillPages(list, foot, read, row) {
  const load = async (after) => {
    const page = await read(after);
    list.append(...page.items.map(row));
    replace(
      foot,
      page.next && button("Show more", () => load(page.next).catch((problem) => replace(foot, errorBox(problem)))),
    );
    return page;
  };
  return load("");
}

export const foot = () => h("div", { class: "foot" });
