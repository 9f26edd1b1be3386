// The lanes of the chosen outbox, the one that waits longest first, and what they add up to.

import { button, byId, fill, make, quoted, table } from "./dom.js";
import { ofOutbox } from "./outboxes.js";
import { count, duration } from "./time.js";

const FEW = 12;
const LATE_MS = 120_000;

let all = false;
let drawn = "";

/** Draws lanes and totals; `showDead` is called with a type whose dead letters somebody wants to see. */
export function showLanes(stats, showDead) {
  const lanes = ofOutbox(stats.lanes).sort(worstFirst);
  const now = JSON.stringify([lanes.map((lane) => ({ ...lane, oldest_due_age_ms: age(lane) })), all]);
  if (now === drawn) return;
  drawn = now;
  fill(byId("totals"), totals(lanes));
  if (lanes.length === 0) {
    fill(byId("lanes"), make("p", { class: "empty" }, "There are no events that wait and no dead letters."));
    return;
  }
  const visible = all ? lanes : lanes.slice(0, FEW);
  const columns = ["Type", "Due", "Oldest due", "Scheduled", "Processing", "Dead letters"];
  const kinds = ["wide", "number", "number", "number", "number", "number"];
  const rows = visible.map((lane) => row(lane, showDead));
  const more = () => {
    all = true;
    showLanes(stats, showDead);
  };
  fill(
    byId("lanes"),
    table("Lanes", columns, rows, { kinds }),
    visible.length < lanes.length && button(`Show all ${count(lanes.length)}`, more, { key: "lanes-all" }),
    stats.more_lanes && make("p", { class: "hint" }, "There are more types than are counted; these are not all."),
  );
}

function row(lane, showDead) {
  const name = [quoted(lane.type), lane.routed === false && make("span", { class: "tag warn" }, "no route")];
  const dead = lane.dead_letter > 0
    ? button(depth(lane.dead_letter, lane), () => showDead(lane.type), {
        key: `lane-dead-${lane.type}`,
        kind: "link bad",
        "aria-label": `${depth(lane.dead_letter, lane)} dead letters of ${lane.type}: show them`,
      })
    : "0";
  const late = lane.routed !== false && lane.oldest_due_age_ms >= LATE_MS;
  return [
    name,
    depth(lane.due, lane),
    make("span", { class: late ? "bad" : undefined }, age(lane)),
    depth(lane.scheduled, lane),
    depth(lane.processing, lane),
    dead,
  ].map((cell) => [cell].flat().filter(Boolean));
}

function age(lane) {
  return lane.due > 0 && lane.oldest_due_age_ms !== null ? duration(lane.oldest_due_age_ms) : "–";
}

/** A count that has stopped at a limit is said to go on; where one has, it is the largest. */
function depth(number, lane) {
  const isCapped = lane.capped && number === Math.max(lane.due, lane.scheduled, lane.dead_letter);
  return isCapped ? `${count(number)}+` : count(number);
}

function totals(lanes) {
  const sum = (name) => lanes.reduce((sum, lane) => sum + lane[name], 0);
  const capped = lanes.some((lane) => lane.capped) ? "+" : "";
  const oldest = Math.max(-1, ...lanes.filter((lane) => lane.due > 0 && lane.routed !== false).map((lane) => lane.oldest_due_age_ms ?? -1));
  const tiles = [
    ["Oldest due", oldest < 0 ? "–" : duration(oldest), oldest >= LATE_MS ? "bad" : ""],
    ["Due", count(sum("due")) + capped, ""],
    ["Scheduled", count(sum("scheduled")) + capped, ""],
    ["Processing", count(sum("processing")) + capped, ""],
    ["Dead letters", count(sum("dead_letter")) + capped, sum("dead_letter") > 0 ? "bad" : ""],
  ];
  return tiles.map(([name, value, kind]) =>
    make("div", { class: `tile ${kind}` }, make("dt", {}, name), make("dd", {}, value)),
  );
}

function worstFirst(left, right) {
  return (
    (right.oldest_due_age_ms ?? -1) - (left.oldest_due_age_ms ?? -1) ||
    right.dead_letter - left.dead_letter ||
    left.type.localeCompare(right.type)
  );
}
