// Names and links as a picture. Places are found by springs along links and a push between all names.
import { svg } from "../dom.js";

const WIDTH = 760,
  HEIGHT = 560;
const ROUNDS = 160;
const LINKS_DRAWN = 900;
const CROWD = 45;
const LABELS_IN_A_CROWD = 12;
const NARROWEST = 460; // of the part that is looked at
const reducesMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class GraphPicture {
  constructor(onVisit) {
    this.onVisit = onVisit;
    this.nodes = new Map();
    this.links = new Map();
    this.lines = svg("g", { class: "lines" });
    this.circles = svg("g", {});
    this.node = svg(
      "svg",
      {
        class: "graph-picture",
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: "group",
        "aria-label": "Picture of the entity graph; the list beside it has the same names",
      },
      this.lines,
      this.circles,
    );
  }

  get size() {
    return this.nodes.size;
  }
  get linkCount() {
    return this.links.size;
  }
  get entities() {
    return [...this.nodes.values()].map((node) => node.entity);
  }

  // Take in names and links around one that is there already; returns how many names are new.
  add(entities, links, from) {
    const centre = this.nodes.get(from) ?? { x: WIDTH / 2, y: HEIGHT / 2 };
    const fresh = entities.filter((entity) => !this.nodes.has(entity.key));
    fresh.forEach((entity, place) => {
      const angle = place * 2.4,
        radius = 30 + 9 * Math.sqrt(place) * (from ? 1 : 4); // a sunflower: no two in one place
      this.nodes.set(entity.key, {
        entity,
        x: centre.x + radius * Math.cos(angle),
        y: centre.y + radius * Math.sin(angle),
        vx: 0,
        vy: 0,
      });
    });
    for (const link of links) this.links.set(`${link.a}\n${link.b}`, link);
    this.draw();
    this.settle();
    return fresh.length;
  }

  select(key) {
    this.selected = key;
    const near = new Set([...this.links.values()].flatMap(({ a, b }) => (a === key ? [b] : b === key ? [a] : [])));
    this.node.classList.toggle("crowded", near.size > LABELS_IN_A_CROWD);
    for (const [own, node] of this.nodes) {
      node.shape.classList.toggle("selected", own === key);
      node.shape.classList.toggle("near", near.has(own));
      node.shape.classList.toggle("far", own !== key && !near.has(own));
    }
    for (const line of this.lines.children)
      line.classList.toggle("near", line.dataset.a === key || line.dataset.b === key);
  }

  draw() {
    const drawn = [...this.links.values()]
      .filter(({ a, b }) => this.nodes.has(a) && this.nodes.has(b))
      .sort((a, b) => b.weight - a.weight)
      .slice(0, LINKS_DRAWN);
    this.drawn = drawn.map((link) => ({
      ...link,
      line: svg("line", {
        data: { a: link.a, b: link.b },
        "stroke-width": Math.min(0.6 + Math.log2(link.weight + 1) * 0.5, 3.5),
      }),
    }));
    this.lines.replaceChildren(...this.drawn.map(({ line }) => line));
    const most = Math.max(...this.entities.map((entity) => entity.passages));
    this.circles.replaceChildren(...[...this.nodes.values()].map((node) => this.shape(node, most)));
  }

  shape(node, most) {
    const { entity } = node;
    const radius = (4 + 9 * Math.sqrt(entity.passages / most)) * Math.min(1, Math.sqrt(CROWD / this.size));
    const isLabelled = this.size <= CROWD || entity.passages >= this.labelLimit();
    node.shape = svg(
      "g",
      { class: isLabelled ? "entity labelled" : "entity", on: { click: () => this.onVisit(entity.key) } },
      svg("circle", { r: radius }),
      svg("text", { y: -radius - 4 }, entity.name.slice(0, 28)),
      svg("title", {}, `${entity.name}: ${entity.passages} passages`),
    );
    return node.shape;
  }

  labelLimit() {
    return this.entities.map((entity) => entity.passages).sort((a, b) => b - a)[LABELS_IN_A_CROWD] ?? 0;
  }

  settle() {
    cancelAnimationFrame(this.frame);
    let round = 0;
    const step = (count) => {
      for (let each = 0; each < count && round < ROUNDS; each += 1, round += 1) this.push(1 - round / ROUNDS);
      this.place();
      if (round < ROUNDS) this.frame = requestAnimationFrame(() => step(4));
    };
    step(reducesMotion.matches ? ROUNDS : 40);
  }

  push(heat) {
    const nodes = [...this.nodes.values()];
    const space = Math.sqrt((WIDTH * HEIGHT) / Math.min(nodes.length, CROWD)) * 0.75; // a crowd takes more room
    for (let one = 0; one < nodes.length; one += 1) {
      for (let other = one + 1; other < nodes.length; other += 1) apart(nodes[one], nodes[other], space);
    }
    for (const { a, b, weight } of this.drawn) together(this.nodes.get(a), this.nodes.get(b), space, weight);
    for (const node of nodes) move(node, heat);
  }

  // Look at the part of the plane where the names are.
  look() {
    const nodes = [...this.nodes.values()];
    const bounds = (name) => {
      const all = nodes.map((node) => node[name]);
      return [Math.min(...all), Math.max(...all)];
    };
    const [left, right] = bounds("x"),
      [top, bottom] = bounds("y");
    const width = Math.max(right - left + 110, (bottom - top + 70) * (WIDTH / HEIGHT), NARROWEST);
    const height = width * (HEIGHT / WIDTH);
    this.node.setAttribute(
      "viewBox",
      [(left + right - width) / 2, (top + bottom - height) / 2 - 8, width, height]
        .map((each) => each.toFixed(1))
        .join(" "),
    );
  }

  place() {
    this.look();
    for (const node of this.nodes.values())
      node.shape.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`);
    for (const { a, b, line } of this.drawn) {
      const from = this.nodes.get(a),
        to = this.nodes.get(b);
      line.setAttribute("x1", from.x.toFixed(1));
      line.setAttribute("y1", from.y.toFixed(1));
      line.setAttribute("x2", to.x.toFixed(1));
      line.setAttribute("y2", to.y.toFixed(1));
    }
  }
}

function apart(one, other, space) {
  const dx = one.x - other.x,
    dy = one.y - other.y;
  const distance = Math.max(dx * dx + dy * dy, 1);
  const force = (space * space) / distance;
  const scale = force / Math.sqrt(distance);
  one.vx += dx * scale;
  one.vy += dy * scale;
  other.vx -= dx * scale;
  other.vy -= dy * scale;
}

function together(one, other, space, weight) {
  const dx = one.x - other.x,
    dy = one.y - other.y;
  const distance = Math.max(Math.hypot(dx, dy), 1);
  const scale = (distance / space) * 0.04 * Math.min(1 + Math.log2(weight + 1) * 0.3, 3);
  one.vx -= dx * scale;
  one.vy -= dy * scale;
  other.vx += dx * scale;
  other.vy += dy * scale;
}

function move(node, heat) {
  node.vx += (WIDTH / 2 - node.x) * 0.012;
  node.vy += (HEIGHT / 2 - node.y) * 0.02;
  const speed = Math.max(Math.hypot(node.vx, node.vy), 0.01);
  const limit = Math.min(speed, 24 * heat + 0.5) / speed;
  node.x += node.vx * limit;
  node.y += node.vy * limit;
  node.vx = node.vy = 0;
}
