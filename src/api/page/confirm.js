// One question before anything is changed, with what may be said along.

import { byId, fill, make, rememberFocus } from "./dom.js";
import { hush } from "./notice.js";

let answer = () => {};

byId("confirm-form").addEventListener("submit", (event) => {
  event.preventDefault();
  settle(values());
});
byId("confirm-no").addEventListener("click", () => settle(null));
byId("confirm").addEventListener("close", () => settle(null));

/**
 * Asks. `title` says what will happen, `verb` stands on the button, `text` are paragraphs or nodes, `fields` are inputs
 * made by `field`. The answer is an object with the fields' values, or null when it was thought better of.
 */
export function ask({ title, verb, text = [], fields = [], kind = "main" }) {
  hush();
  fill(byId("confirm-title"), title);
  fill(byId("confirm-body"), text.map((part) => (typeof part === "string" ? make("p", {}, part) : part)), fields);
  fill(byId("confirm-yes"), verb);
  byId("confirm-yes").className = kind;
  return new Promise((resolve) => {
    const giveFocusBack = rememberFocus(byId("event").open ? byId("event-close") : byId("dead-letters"));
    answer = (value) => {
      giveFocusBack();
      resolve(value);
    };
    byId("confirm").showModal();
    (byId("confirm-body").querySelector("input") ?? byId("confirm-yes")).focus();
  });
}

/** An input of the question. */
export function field(name, label, { hint, ...attributes } = {}) {
  const input = make("input", { name, ...attributes });
  return make("p", { class: "fields" }, make("label", {}, label, input), hint && make("small", {}, hint));
}

/** Why, for the log: what every change can be given. */
export function noteField() {
  return field("note", "Note, kept with the event (optional)", { maxlength: 200 });
}

function values() {
  const inputs = [...byId("confirm-body").querySelectorAll("input")];
  return Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()]));
}

function settle(value) {
  const resolve = answer;
  answer = () => {};
  if (byId("confirm").open) byId("confirm").close();
  resolve(value);
}
