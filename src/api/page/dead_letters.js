// Dead letters under a filter: a list that goes on, a choice of some, and what may be done to one, some or all of them.

import { changeMany } from "./bulk.js";
import { change, changesOf, changeVerb } from "./changes.js";
import { read } from "./client.js";
import { canSkip } from "./discards.js";
import { button, byId, fill, make } from "./dom.js";
import { eventsTable } from "./events_table.js";
import { sentence } from "./notice.js";
import { outbox } from "./outboxes.js";
import { count, counted } from "./time.js";

const PAGE = 10;

const list = { events: [], cursor: null, pages: 0, problem: null, filter: {}, chosen: new Set(), clock: () => 0 };

/** Begins; `clock` tells the time in milliseconds, `changed` is called when something was changed. */
export function deadLetters({ clock, changed }) {
  list.clock = clock;
  list.changed = changed;
  byId("dead-filter").addEventListener("submit", (event) => {
    event.preventDefault();
    list.filter = given();
    list.chosen.clear();
    reload();
  });
  byId("dead-filter").addEventListener("reset", () => {
    list.filter = {};
    list.chosen.clear();
    reload();
  });
}

/** Shows the dead letters of one type, or all of them. */
export function showDeadLetters(type = "") {
  byId("dead-type").value = type;
  byId("dead-subject").value = "";
  byId("dead-error").value = "";
  list.filter = given();
  list.chosen.clear();
  byId("dead-letters").focus({ preventScroll: true });
  byId("dead-letters").scrollIntoView();
  return reload();
}

/** Reads the list again from its newest. */
export async function reload() {
  list.round = (list.round ?? 0) + 1;
  list.cursor = null;
  list.pages = 0;
  await readPage();
}

/** The same unless that would take away what somebody is reading further down. */
export async function reloadQuietly() {
  if (list.pages <= 1) await reload();
}

/** Draws the same again, for ages that have grown. */
export function redraw() {
  if (list.events.length > 0 && !list.problem) drawList();
}

/** Forgets everything, for another outbox or another token. */
export function forgetDeadLetters() {
  list.events = [];
  list.chosen.clear();
  list.pages = 0;
  fill(byId("dead-list"));
  fill(byId("dead-bulk"));
}

function given() {
  const types = byId("dead-type").value.split(/[\s,]+/).filter(Boolean);
  const subject = byId("dead-subject").value;
  const error_contains = byId("dead-error").value;
  return { types, subject, error_contains };
}

async function readPage() {
  const round = list.round;
  const { types, ...others } = list.filter;
  try {
    const { data } = await read("v1/dead-letters", { outbox: outbox(), type: types, ...others, limit: PAGE, cursor: list.cursor });
    if (round !== list.round) return;
    list.events = list.pages === 0 ? data.data : [...list.events, ...data.data];
    list.cursor = data.next_cursor;
    list.pages += 1;
    list.problem = null;
  } catch (problem) {
    if (round !== list.round) return;
    list.problem = problem;
  }
  drawList();
}

function drawList() {
  const ids = new Set(list.events.map((event) => event.id));
  for (const id of list.chosen) if (!ids.has(id)) list.chosen.delete(id);
  drawBulk();
  if (list.problem) {
    fill(byId("dead-list"), make("p", { class: "error" }, sentence(list.problem, "Reading dead letters")));
    return;
  }
  const more = list.cursor && button("Show more", readPage, { key: "dead-more" });
  if (list.events.length === 0) {
    const none = list.cursor ? "None among those looked at so far." : isFiltered() ? "No dead letter matches the filter." : "No dead letters.";
    fill(byId("dead-list"), make("p", { class: "empty" }, none), more);
    return;
  }
  fill(byId("dead-list"), eventsTable("Dead letters", list.events, list.clock(), { first: [CHOICE], last: [ACTIONS] }), more);
}

const CHOICE = {
  name: "",
  kind: "choice",
  cell: (event) =>
    make("input", {
      type: "checkbox",
      "data-key": `choose-${event.id}`,
      "aria-label": `Choose ${event.type}, ${event.subject ?? event.id}`,
      checked: list.chosen.has(event.id),
      onchange: (change) => {
        if (change.target.checked) list.chosen.add(event.id);
        else list.chosen.delete(event.id);
        drawBulk();
      },
    }),
};

const ACTIONS = {
  name: "",
  kind: "buttons",
  cell: (event) => changesOf(event).map((name) => one(name, changeVerb(name), event)),
};

function one(name, verb, event) {
  const apply = async () => {
    if (await change(name, event)) await afterChange();
  };
  return button(verb, apply, { key: `${name}-${event.id}`, kind: "small", "aria-label": `${verb} ${event.type}, ${event.subject ?? event.id}` });
}

function drawBulk() {
  if (list.events.length === 0) {
    fill(byId("dead-bulk"));
    return;
  }
  const all = list.events.every((event) => list.chosen.has(event.id));
  const chooseAll = (change) => {
    for (const event of list.events) if (change.target.checked) list.chosen.add(event.id);
    if (!change.target.checked) list.chosen.clear();
    drawList();
  };
  const some = list.chosen.size;
  const every = isFiltered() ? "All that match" : "All";
  fill(
    byId("dead-bulk"),
    make("label", {}, make("input", { type: "checkbox", "data-key": "choose-all", checked: all, onchange: chooseAll }), ` Choose the ${count(list.events.length)} shown`),
    some > 0 && make("span", { class: "group" }, make("strong", {}, `${counted(some, "chosen", "chosen")}:`), ...pair({ ids: [...list.chosen] }, "chosen")),
    make("span", { class: "group" }, make("strong", {}, `${every}:`), ...pair({ filter: wholeFilter() }, "all")),
  );
}

function pair(which, key) {
  return (canSkip(outbox()) ? ["requeue", "discard"] : ["requeue"]).map((name) => {
    const apply = async () => {
      if (await changeMany(name, which)) await afterChange();
    };
    return button(name === "requeue" ? "Requeue…" : "Discard…", apply, { key: `${key}-${name}`, kind: "small" });
  });
}

async function afterChange() {
  list.chosen.clear();
  await reload();
  list.changed();
}

function isFiltered() {
  const { types = [], subject, error_contains } = list.filter;
  return types.length > 0 || Boolean(subject) || Boolean(error_contains);
}

/**
 * The filter with an end: what died after the newest that is shown has not been seen by whoever decides, and an event
 * that is requeued and dies again is not to be requeued in a circle.
 */
function wholeFilter() {
  const { types = [], subject, error_contains } = list.filter;
  const filter = { dead_before: justAfter(list.events[0].dead_at) };
  if (types.length > 0) filter.types = types;
  if (subject) filter.subject = subject;
  if (error_contains) filter.error_contains = error_contains;
  return filter;
}

function justAfter(instant) {
  return new Date(Date.parse(instant) + 1).toISOString();
}
