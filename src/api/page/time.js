// Durations and instants in words.

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];
const NUMBER = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** 12345 as 12,345. */
export function count(number) {
  return NUMBER.format(number);
}

/** A count with its noun: 1 event, 2 events. */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** "12 minutes", "3 hours": one unit, rounded down, as one says it. */
export function duration(milliseconds) {
  if (milliseconds < 1000) return "under a second";
  const [unit, size] = UNITS.find(([, size]) => milliseconds >= size);
  return counted(Math.floor(milliseconds / size), unit);
}

/** "0.4 s", "1 min 5 s": what a run or an attempt took. */
export function precise(milliseconds) {
  if (milliseconds < 1000) return `${count(Math.round(milliseconds))} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${count(Math.floor(milliseconds / 60_000))} min ${Math.floor((milliseconds % 60_000) / 1000)} s`;
}

/** How long ago, as of an instant in milliseconds. */
export function ago(instant, now) {
  const past = now - Date.parse(instant);
  if (past < -1000) return `in ${duration(-past)}`;
  return past < 2000 ? "just now" : `${duration(past)} ago`;
}

/** Hours and minutes in the reader's zone. */
export function clock(milliseconds) {
  return CLOCK.format(milliseconds);
}

/** Date and time in the reader's zone, with the instant as it was sent beside it. */
export function full(instant) {
  const parsed = Date.parse(instant);
  return Number.isNaN(parsed) ? String(instant) : FULL.format(parsed);
}
