// Which outbox the lists are about, where there are several.

import { byId, fill, make } from "./dom.js";

let names = [];
let chosen;
let tellChange = () => {};

/** The chosen outbox; undefined while none is known, which means the default one. */
export function outbox() {
  return chosen;
}

/** Whether there is a choice. */
export function severalOutboxes() {
  return names.length > 1;
}

/** The part of a list that is about the chosen outbox. */
export function ofOutbox(entries) {
  return entries.filter((entry) => chosen === undefined || entry.outbox === chosen);
}

/** Calls this when another one was chosen. */
export function onOutboxChange(tell) {
  tellChange = tell;
  byId("outbox").addEventListener("change", (event) => {
    chosen = event.target.value;
    tellChange();
  });
}

/** Goes to this outbox, as an address that was passed on asks for. */
export function chooseOutbox(name) {
  if (chosen === name) return;
  chosen = name;
  byId("outbox").value = name;
  tellChange();
}

/** Takes the names from the figures; where there is only one, nothing is to choose. */
export function showOutboxes(stats) {
  const known = new Set([...(stats.outboxes ?? []), ...stats.lanes.map((lane) => lane.outbox)]);
  if (chosen !== undefined) known.add(chosen);
  const next = [...known].sort((left, right) => rank(left) - rank(right) || left.localeCompare(right));
  if (next.join(" ") === names.join(" ")) return;
  names = next;
  chosen ??= names[0];
  fill(byId("outbox"), names.map((name) => make("option", { value: name }, name)));
  byId("outbox").value = chosen ?? "";
  byId("outbox-label").hidden = !severalOutboxes();
}

function rank(name) {
  return name === "default" ? 0 : 1;
}
