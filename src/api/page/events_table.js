// A list of events: what they are, where they stand and what went wrong. A page of it, and a way to the next one.

import { button, make, quoted, table } from "./dom.js";
import { badge, openEvent } from "./event.js";
import { ago, full } from "./time.js";

const SHORT = 240;

/** A table of events. `more` are further cells: a column's name (or node), its kind and what stands in it. */
export function eventsTable(caption, events, now, { first = [], last = [] } = {}) {
  const columns = [...first, ...OWN, ...last];
  const rows = events.map((event) => columns.map(({ cell }) => [cell(event, now)].flat().filter(Boolean)));
  return table(caption, columns.map(({ name }) => name), rows, { kinds: columns.map(({ kind }) => kind) });
}

const OWN = [
  {
    name: "Event",
    kind: "wide",
    cell: (event) => [
      button(quoted(event.type), () => openEvent(event.id, event.outbox), {
        key: `open-${event.id}`,
        kind: "link",
        "aria-label": `Open ${event.type}, ${event.subject ?? event.id}`,
      }),
      make("small", {}, event.subject === null ? quoted(event.id, "data mono") : quoted(event.subject)),
    ],
  },
  {
    name: "State",
    kind: "when",
    cell: (event, now) => [badge(event.status), make("small", {}, when(event, now))],
  },
  {
    name: "Latest trouble",
    kind: "wide",
    cell: (event) => [
      event.last_error ? quoted(cut(event.last_error), "data error") : "–",
      make("small", {}, event.attempts > 0 ? `${event.attempts} of ${event.max_attempts} attempts failed` : ""),
    ],
  },
];

function when(event, now) {
  const waits = event.status === "pending" && Date.parse(event.available_at) > now;
  const instant = waits ? event.available_at : (event.dead_at ?? event.processed_at ?? event.locked_at ?? event.available_at);
  return make("time", { datetime: instant, title: full(instant) }, waits ? `due ${ago(instant, now)}` : ago(instant, now));
}

function cut(text) {
  return text.length > SHORT ? `${text.slice(0, SHORT)}…` : text;
}
