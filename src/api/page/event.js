// One event with all that is known of it: why it is where it is, its attempts, what operators did, its payload.

import { changeKind, changesOf, changeVerb, change } from "./changes.js";
import { read } from "./client.js";
import { button, byId, fill, make, quoted, rememberFocus, shown, table } from "./dom.js";
import { indented, memberText } from "./json_text.js";
import { hush, sentence } from "./notice.js";
import { full, precise } from "./time.js";
import { attemptWord, statusMeaning, statusWord } from "./words.js";

const AGAIN_MS = 3000;

let open = null;
let drawn = "";
let timer = 0;
let giveFocusBack = () => {};
let tellChanged = () => {};

byId("event-close").addEventListener("click", () => byId("event").close());
byId("event").addEventListener("close", () => {
  open = null;
  clearTimeout(timer);
  history.replaceState(null, "", location.pathname + location.search);
  giveFocusBack();
});

/** Calls this whenever an event was changed from its view. */
export function onEventChange(tell) {
  tellChanged = tell;
}

/** Opens an event. Its address can be passed on: it names the event, and never the token. */
export async function openEvent(id, outbox) {
  open = { id, outbox };
  drawn = "";
  hush();
  fill(byId("event-title"), "Reading…");
  fill(byId("event-body"));
  if (!byId("event").open) {
    giveFocusBack = rememberFocus(byId("dead-letters"));
    byId("event").showModal();
  }
  const place = new URLSearchParams(outbox === undefined ? { event: id } : { event: id, outbox });
  history.replaceState(null, "", `#${place}`);
  await refresh();
}

/** Closes the view of whatever event is open. */
export function closeEvent() {
  byId("event").close();
}

/** The event that the page's address asks for, if any. */
export function eventOfAddress() {
  const place = new URLSearchParams(location.hash.slice(1));
  return place.get("event") === null ? null : { id: place.get("event"), outbox: place.get("outbox") ?? undefined };
}

async function refresh() {
  clearTimeout(timer);
  const mine = open;
  try {
    const path = `v1/events/${encodeURIComponent(mine.id)}`;
    const answer = await read(path, { outbox: mine.outbox, include: "attempts" });
    if (mine !== open) return;
    if (answer.text !== drawn) drawEvent(answer.data, memberText(answer.text, "payload"));
    drawn = answer.text;
  } catch (problem) {
    if (mine !== open) return;
    if (drawn === "") fill(byId("event-title"), problem.kind === "not-found" ? "No such event" : "The event cannot be read");
    if (drawn === "") fill(byId("event-body"), make("p", {}, shown(sentence(problem, "Reading the event"))));
  }
  timer = setTimeout(refresh, AGAIN_MS);
}

function drawEvent(event, payload) {
  fill(byId("event-title"), quoted(event.type), " ", badge(event.status));
  const buttons = changesOf(event).map((name) =>
    button(changeVerb(name), () => apply(name, event), { key: `event-${name}`, kind: changeKind(name) }),
  );
  fill(
    byId("event-body"),
    make("p", {}, statusMeaning(event.status)),
    why(event),
    make("p", { class: "actions" }, buttons),
    facts(event),
    attempts(event.attempts_log ?? []),
    actions(event.actions_log ?? []),
    headers(event.headers ?? {}),
    payloadView(payload),
  );
  // A button that is gone takes the focus with it, out of the dialog.
  if (document.activeElement === document.body) byId("event-close").focus();
}

async function apply(name, event) {
  if (await change(name, event)) {
    // What may be done to it can have changed without the event.
    drawn = "";
    tellChanged();
  }
  if (open) await refresh();
}

/** A status as a coloured word. */
export function badge(status) {
  return make("span", { class: `tag ${status}` }, statusWord(status));
}

function why(event) {
  if (!event.last_error) return null;
  const label = event.status === "dead_letter" ? "Why it was given up" : "The latest trouble";
  return make("div", { class: "why" }, make("strong", {}, label), make("pre", { class: "error", tabindex: 0 }, shown(event.last_error)));
}

function facts(event) {
  const instant = (name, value) => value && [name, make("time", { datetime: value, title: value }, full(value))];
  const facts = [
    ["Id", quoted(event.id, "data mono")],
    event.subject !== null && ["Subject", quoted(event.subject)],
    ["Outbox", event.outbox],
    ["Failed attempts", `${event.attempts} of ${event.max_attempts}`],
    event.requeues > 0 && ["Requeued", `${event.requeues} ${event.requeues === 1 ? "time" : "times"}`],
    instant("Enqueued", event.created_at),
    event.status === "pending" && instant("Due", event.available_at),
    instant("Claimed", event.locked_at),
    instant("Lease ends", event.lease_until),
    instant("Given up", event.dead_at),
    event.status !== "dead_letter" && instant("Settled", event.processed_at),
    event.idempotency_key && ["Idempotency key", quoted(event.idempotency_key, "data mono")],
  ].filter(Boolean);
  return make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function attempts(log) {
  if (log.length === 0) return null;
  const rows = [...log].reverse().map((attempt) => [
    [String(attempt.number), make("small", {}, full(attempt.started_at))],
    [
      make("span", {}, attemptWord(attempt.outcome), attempt.status_code ? ` · HTTP ${attempt.status_code}` : ""),
      make("small", {}, `in ${precise(attempt.duration_ms)}`),
    ],
    [
      attempt.error ? quoted(attempt.error, "data error") : "–",
      attempt.response ? make("pre", { class: "answer", tabindex: 0 }, shown(attempt.response)) : "",
    ],
  ]);
  const kinds = ["when", "when", "wide"];
  return section("Attempts, latest first", table("Attempts", ["Attempt", "Outcome", "Error and answer"], rows, { kinds }));
}

function actions(log) {
  if (log.length === 0) return null;
  const rows = [...log].reverse().map((action) => [full(action.at), action.action, quoted(action.actor), action.note ? quoted(action.note) : "–"]);
  return section("What operators did", table("What operators did", ["When", "What", "Who", "Note"], rows, { kinds: ["when", "", "", "wide"] }));
}

function headers(headers) {
  const names = Object.keys(headers);
  if (names.length === 0) return null;
  return section("Headers", table("Headers", ["Name", "Value"], names.map((name) => [quoted(name), quoted(headers[name])]), { kinds: ["", "wide"] }));
}

function payloadView(payload) {
  const content = payload === undefined
    ? make("p", { class: "hint" }, "Not shown. A token with the scope payload sees it, unless the table holds a text that is no JSON.")
    : make("pre", { class: "payload", id: "event-payload", tabindex: 0 }, shown(indented(payload)));
  return section("Payload", content);
}

function section(title, content) {
  return make("section", {}, make("h3", {}, title), content);
}
