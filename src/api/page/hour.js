// The last hour by outcome: sums for the legend, bars for the chart, and the same in words and as a table.

import { bars } from "./chart.js";
import { byId, fill, make, table } from "./dom.js";
import { ofOutbox } from "./outboxes.js";
import { clock, count } from "./time.js";
import { OUTCOMES } from "./words.js";

const MINUTE = 60_000;
const MINUTES = 60;
/** Rows of the table are this many minutes long. */
const STEP = 10;

let drawn = "";
let isOpen = false;

/** Draws the hour that ends now. */
export function showHour(stats, now) {
  const place = byId("hour");
  const minutes = byMinute(ofOutbox(stats.last_hour ?? []), now);
  const state = JSON.stringify([minutes, place.clientWidth]);
  if (state === drawn) return;
  drawn = state;
  const sums = sum(minutes);
  const total = OUTCOMES.reduce((total, [name]) => total + sums[name], 0);
  const legend = OUTCOMES.map(([name, word]) =>
    make("li", {}, make("span", { class: `swatch ${name}` }), make("strong", {}, count(sums[name])), ` ${word}`),
  );
  fill(
    place,
    bars(minutes, OUTCOMES, place.clientWidth, inWords(minutes, sums, total)),
    make("ul", { class: "legend" }, legend),
    total > 0 && details(minutes),
  );
}

function byMinute(entries, now) {
  const last = Math.floor(now / MINUTE) * MINUTE;
  const minutes = Array.from({ length: MINUTES }, (_, at) => ({ at: last - (MINUTES - 1 - at) * MINUTE, ...zero() }));
  for (const entry of entries) {
    const index = MINUTES - 1 - Math.round((last - Date.parse(entry.minute)) / MINUTE);
    if (index < 0 || index >= MINUTES) continue;
    for (const [name] of OUTCOMES) minutes[index][name] += entry[name] ?? 0;
  }
  return minutes;
}

function zero() {
  return Object.fromEntries(OUTCOMES.map(([name]) => [name, 0]));
}

function sum(minutes) {
  const sums = zero();
  for (const minute of minutes) for (const [name] of OUTCOMES) sums[name] += minute[name];
  return sums;
}

function inWords(minutes, sums, total) {
  if (total === 0) return "No attempt in the last hour.";
  const height = (minute) => OUTCOMES.reduce((height, [name]) => height + minute[name], 0);
  const busiest = minutes.reduce((busiest, minute) => (height(minute) > height(busiest) ? minute : busiest));
  const parts = OUTCOMES.filter(([name]) => sums[name] > 0).map(([name, word]) => `${count(sums[name])} ${word}`);
  return `Attempts of the last hour by outcome: ${parts.join(", ")}. Most in one minute: ${count(height(busiest))} at ${clock(busiest.at)}.`;
}

function details(minutes) {
  const columns = ["From", ...OUTCOMES.map(([, word]) => word)];
  const rows = [];
  for (let at = 0; at < MINUTES; at += STEP) {
    const sums = sum(minutes.slice(at, at + STEP));
    rows.push([clock(minutes[at].at), ...OUTCOMES.map(([name]) => count(sums[name]))]);
  }
  const kinds = ["wide", ...OUTCOMES.map(() => "number")];
  const element = make("details", {}, make("summary", { "data-key": "hour-table" }, "As a table"), table("The last hour", columns, rows, { kinds }));
  element.open = isOpen;
  element.addEventListener("toggle", () => {
    isOpen = element.open;
  });
  return element;
}
