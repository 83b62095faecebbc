// When memories were learned (upwards) and retired (downwards).
import { h, svg } from "../dom.js";
import { day, moment, plural } from "../format.js";

const HEIGHT = 44;

export function activityChart({ bins, counted, complete }) {
  if (bins.length < 2)
    return h(
      "p",
      { class: "muted" },
      `${plural(counted, "memory", "memories")}, all learned on ${day(bins[0].start)} within a minute.`,
    );
  const label = new Date(bins.at(-1).start) - new Date(bins[0].start) < 2 * 86_400_000 ? moment : day;
  const most = Math.max(1, ...bins.flatMap((bin) => [bin.learned, bin.retired]));
  const width = 100 / Math.max(bins.length, 1);
  const bars = bins.flatMap((bin, place) => [
    bar(
      "learned",
      place,
      width,
      HEIGHT - (bin.learned / most) * HEIGHT,
      (bin.learned / most) * HEIGHT,
      label(bin.start),
      bin,
    ),
    bar("retired", place, width, HEIGHT + 1, (bin.retired / most) * HEIGHT, label(bin.start), bin),
  ]);
  const from = bins.length ? label(bins[0].start) : "",
    until = bins.length ? label(bins.at(-1).start) : "";
  const sum = (name) => bins.reduce((all, bin) => all + bin[name], 0);
  const said = `From ${from} to ${until}: ${sum("learned")} learned, ${sum("retired")} superseded or archived`;
  return h(
    "figure",
    { class: "activity" },
    svg(
      "svg",
      { viewBox: `0 0 100 ${2 * HEIGHT + 1}`, preserveAspectRatio: "none", role: "img", "aria-label": said },
      svg("line", { x1: 0, x2: 100, y1: HEIGHT + 0.5, y2: HEIGHT + 0.5 }),
      bars,
    ),
    h(
      "figcaption",
      {},
      h("span", {}, from),
      h(
        "span",
        {},
        h("i", { class: "dot learned" }),
        "learned ",
        h("i", { class: "dot retired" }),
        "superseded or archived",
        complete ? "" : ` · of the latest ${plural(counted, "memory", "memories")}`,
      ),
      h("span", {}, until),
    ),
  );
}

function bar(name, place, width, y, height, start, bin) {
  if (!height) return null;
  return svg(
    "rect",
    { class: name, x: place * width + width * 0.1, y, width: width * 0.8, height: Math.max(height, 1) },
    svg("title", {}, `${start}: ${bin.learned} learned, ${bin.retired} retired`),
  );
}
