// Finding events by id or subject, by type and by status.

import { read } from "./client.js";
import { button, byId, fill, make } from "./dom.js";
import { eventsTable } from "./events_table.js";
import { sentence } from "./notice.js";
import { outbox } from "./outboxes.js";
import { counted, full } from "./time.js";
import { STATUSES, statusWord } from "./words.js";

const PAGE = 25;

let clock = () => 0;
let found = { events: [], cursor: null, at: 0 };
let wanted = null;

/** Begins; `tellTime` tells the time in milliseconds. */
export function search(tellTime) {
  clock = tellTime;
  fill(
    byId("search-status"),
    make("option", { value: "" }, "any"),
    STATUSES.map((status) => make("option", { value: status }, statusWord(status))),
  );
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    find();
  });
}

/** Shows the events in a state. */
export function showEventsIn(status) {
  byId("search-text").value = "";
  byId("search-type").value = "";
  byId("search-status").value = status;
  byId("search").scrollIntoView();
  byId("search-text").focus({ preventScroll: true });
  return find();
}

/** Forgets what was found, for another outbox or another token. */
export function forgetSearch() {
  wanted = null;
  fill(byId("search-list"));
}

async function find() {
  const text = byId("search-text").value.trim();
  const types = byId("search-type").value.split(/[\s,]+/).filter(Boolean);
  const mine = { text, filter: { type: types, status: byId("search-status").value, subject: text } };
  wanted = mine;
  fill(byId("search-list"), make("p", { class: "empty" }, "Looking…"));
  const [byOwnId, bySubject] = await Promise.allSettled([eventWithId(text), page(mine.filter, null)]);
  if (wanted !== mine) return;
  const one = byOwnId.status === "fulfilled" ? byOwnId.value : [];
  if (bySubject.status === "rejected" && one.length === 0) {
    fill(byId("search-list"), make("p", { class: "error" }, sentence(bySubject.reason, "Finding events")));
    return;
  }
  const rest = bySubject.status === "fulfilled" ? bySubject.value : { events: [], cursor: null };
  found = { events: [...one, ...rest.events.filter((event) => event.id !== one[0]?.id)], cursor: rest.cursor, at: clock() };
  drawFound();
}

async function eventWithId(id) {
  if (id === "") return [];
  const { data } = await read(`v1/events/${encodeURIComponent(id)}`, { outbox: outbox() });
  return [data];
}

async function page(filter, cursor) {
  const { data } = await read("v1/events", { outbox: outbox(), ...filter, limit: PAGE, cursor });
  return { events: data.data, cursor: data.next_cursor };
}

async function more() {
  const mine = wanted;
  try {
    const next = await page(mine.filter, found.cursor);
    if (wanted !== mine) return;
    found = { events: [...found.events, ...next.events], cursor: next.cursor, at: found.at };
    drawFound();
  } catch (problem) {
    byId("search-list").append(make("p", { class: "error" }, sentence(problem, "Going on")));
  }
}

function drawFound() {
  byId("announcer").textContent = `${counted(found.events.length, "event")} found`;
  const goOn = found.cursor && button("Go on looking", more, { key: "search-more" });
  if (found.events.length === 0) {
    const none = found.cursor ? "None among those looked at so far." : "No event matches. Ids and subjects are compared whole.";
    fill(byId("search-list"), asOf(), make("p", { class: "empty" }, none), goOn);
    return;
  }
  fill(byId("search-list"), asOf(), eventsTable("Events", found.events, found.at), goOn);
}

/** What was found stands as it was then, so that nothing moves under whoever reads it. */
function asOf() {
  if (Number.isNaN(found.at)) return null;
  const again = button("Look again", find, { key: "search-again", kind: "small" });
  return make("p", { class: "hint" }, `As of ${full(new Date(found.at).toISOString())}. It is not kept up to date. `, again);
}
