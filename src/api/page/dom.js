// Building the page. Whatever comes from data becomes a text node or the value of a harmless attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";
const HARMLESS =
  /^(class|id|type|role|scope|title|for|name|value|hidden|disabled|checked|maxlength|min|max|inputmode|colspan|tabindex|datetime|aria-[a-z]+|data-[a-z-]+)$/;
const DRAWING = /^(class|id|role|x|y|x1|x2|y1|y2|width|height|viewBox|text-anchor|focusable|aria-[a-z]+)$/;

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** An element with attributes, listeners (`onclick: …`) and children; a text becomes a text node. */
export function make(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), HARMLESS, attributes, children);
}

/** The same in a drawing. */
export function draw(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), DRAWING, attributes, children);
}

function furnish(element, allowed, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (!allowed.test(name)) {
      throw new Error(`${name} is not set by this page`);
    } else if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A button that acts. `key` keeps the focus on it when its surroundings are drawn again. */
export function button(text, onclick, { key, kind, ...attributes } = {}) {
  return make("button", { type: "button", class: kind, "data-key": key, onclick, ...attributes }, text);
}

/** Puts new children into a place and leaves the focus where it was. */
export function fill(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  place.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  if (focused !== undefined) {
    [...place.querySelectorAll("[data-key]")].find((element) => element.dataset.key === focused)?.focus();
  }
}

/**
 * Where the focus is, to be given back when a dialog closes: to the same thing, or to what was drawn again in its place,
 * or, when that is gone, to `instead`.
 */
export function rememberFocus(instead) {
  const before = document.activeElement;
  const key = before?.dataset.key;
  return () => {
    const again = before?.isConnected ? before : key && [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
    (again || instead).focus({ preventScroll: true });
  };
}

/**
 * A table that turns into cards on a narrow screen. Its roles are spelled out because a table that is laid out
 * otherwise loses them. A row is a list of cells; a cell is a text, a node or a list of these.
 */
export function table(caption, columns, rows, { kinds = [] } = {}) {
  const head = columns.map((name, at) => make("th", { role: "columnheader", scope: "col", class: kinds[at] }, name));
  const cell = (content, at) =>
    make("td", { role: "cell", class: cellKind(content, kinds[at]), "data-label": columns[at] }, content);
  return make(
    "table",
    { role: "table" },
    make("caption", { class: "unseen" }, caption),
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, head)),
    make("tbody", { role: "rowgroup" }, rows.map((cells) => make("tr", { role: "row" }, cells.map(cell)))),
  );
}

/** A narrow screen leaves out what is nothing. */
function cellKind(content, kind) {
  const text = [content].flat().map((part) => part.textContent ?? part).join("");
  return kind === "number" && (text === "0" || text === "–") ? "number zero" : kind;
}

/** A text from data in an element of its own, with what would not be seen made visible. */
export function quoted(text, kind = "data") {
  return make("span", { class: kind }, shown(text));
}

/** Characters that steer how a text looks, but not how it reads, as their numbers. */
export function shown(text) {
  return String(text ?? "").replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (character) => `\\u{${character.codePointAt(0).toString(16)}}`,
  );
}
