// Nodes are built here and nowhere else. Stored text becomes text nodes: it is never read as markup.

const SVG = "http://www.w3.org/2000/svg";
const OWN_ADDRESS = /^(#|\/(?!\/))/;
// Signs that have no shape or that turn text around. They are shown by name, so that nobody is misled by them.
// Joiners inside emoji and Persian words are left alone.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u;
const EACH_UNSEEN = new RegExp(`(${UNSEEN.source})`, "u");

// An element: h("p", { class: "note", on: { click } }, "text", child, [children]).
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.flat(Infinity).filter(isShown));
  return element;
}

const isShown = (child) => child !== null && child !== undefined && child !== false && child !== "";

function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
  } else if (name === "data") {
    Object.assign(element.dataset, value);
  } else if (name === "style") {
    for (const [property, setting] of Object.entries(value)) element.style.setProperty(property, setting);
  } else if (name === "value") {
    element.value = value;
  } else if (/^on|^src|^srcdoc$|^action|^formaction/i.test(name)) {
    throw new Error(`the page sets no ${name}`);
  } else if (/href$/i.test(name) && !OWN_ADDRESS.test(value)) {
    throw new Error("the page links to nothing but itself");
  } else {
    element.setAttribute(name, value === true ? "" : value);
  }
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(isShown));
  return parent;
}

// Stored text with its unseen signs made visible.
export function visible(text) {
  const whole = String(text ?? "");
  if (!UNSEEN.test(whole)) return [whole];
  return whole.split(EACH_UNSEEN).map((part) => (UNSEEN.test(part) ? signName(part) : part));
}

function signName(sign) {
  const code = `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return h("span", { class: "sign", title: "A sign without a shape" }, code);
}

export const hidden = (text) => h("span", { class: "hidden-text" }, text);

export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

export function button(label, onClick, attributes = {}) {
  return h("button", { type: "button", ...attributes, on: { click: onClick } }, label);
}

// A button that copies a text.
export function copyButton(text, label = "Copy") {
  const own = button(
    label,
    async () => {
      await navigator.clipboard.writeText(text);
      own.textContent = "Copied";
      announce("Copied");
      setTimeout(() => {
        own.textContent = label;
      }, 1500);
    },
    { class: "quiet" },
  );
  return own;
}

export const icon = (name) =>
  svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

const ICONS = {
  learned: "M8 1.8l1.7 4.1 4.4.4-3.3 2.9 1 4.3L8 11.2l-3.8 2.3 1-4.3L1.9 6.3l4.4-.4z",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.3L14 14",
  scope: "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM2.8 13.8c.6-2.6 2.6-4 5.2-4s4.6 1.4 5.2 4",
  timeline: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8zM8 4.5V8l2.5 1.6",
  summaries: "M3 2.5h10v11H3zM5.3 5.5h5.4M5.3 8h5.4M5.3 10.5h3",
  graph:
    "M4 5.5a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM12 7.7a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM6.5 13.9a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM5.6 4.2l4.8 1.3M4.5 5.4l1.6 5.2M11 7.4l-3.4 3.7",
  context: "M2.5 3h11v7.5H7L4 13.2v-2.7H2.5z",
  dryrun: "M6 2h4M6.7 2v4.2L3.2 12.5c-.4.8.1 1.5 1 1.5h7.6c.9 0 1.4-.7 1-1.5L9.3 6.2V2M5 10h6",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  calls: "M2 9h2.5l2-5.5 3 9 2-5.5H14",
  live: "M8 6.7a1.3 1.3 0 1 1 0 2.6 1.3 1.3 0 0 1 0-2.6zM5 11a4.2 4.2 0 0 1 0-6M11 5a4.2 4.2 0 0 1 0 6M3 13a7 7 0 0 1 0-10M13 3a7 7 0 0 1 0 10",
  keys: "M10 2.5a3.5 3.5 0 1 1-2.8 5.6L2.5 12.8v.7H5v-1.5h1.5v-1.5l1.2-1.2",
  audit: "M3 2.5h7l3 3v8H3zM5.5 8l1.7 1.7 3.3-3.4",
  backup: "M2.5 4.5h11v2.5h-11zM3.5 7v6.5h9V7M6.5 9.5h3",
  pin: "M6 2h4l-.5 4.5 2 2.5h-7l2-2.5zM8 9v5",
};
