// What the words of the interface mean, for somebody who has not read the documents.

import { count } from "./time.js";

const STATUS = {
  pending: ["pending", "It waits for its time, or for somebody to process what is due."],
  processing: ["processing", "It is being delivered, or its receiver has accepted it and will settle it."],
  completed: ["completed", "It was delivered."],
  dead_letter: ["dead letter", "It was given up and waits for a decision: requeue it or discard it."],
  skipped: ["skipped", "It will not be delivered: it was cancelled, discarded, or its receiver did not want it."],
};

const STOP = {
  drained: ["drained", "Nothing was left to claim."],
  batch_size: ["batch full", "It claimed as many events as it was allowed to; the next run goes on."],
  budget: ["time used up", "What was left no longer fitted its time; the next run goes on."],
  shutdown: ["stopped", "Its instance was shutting down, or its caller hung up."],
  error: ["error", "The database failed."],
};

const RUN_COUNTS = [
  ["completed", "completed"],
  ["retried", "to be retried"],
  ["deferred", "put off"],
  ["skipped", "skipped"],
  ["dead_lettered", "given up"],
  ["accepted", "accepted"],
  ["lease_lost", "too late"],
  ["released", "given back"],
  ["reaped", "taken back"],
];

const ATTEMPT = {
  complete: "completed",
  retry: "failed",
  timed_out: "no answer in time",
  defer: "put off",
  skip: "skipped",
  dead_letter: "given up",
  expired: "lease expired",
};

const TRIGGER = { http: "a call", cli: "the command line", poller: "the poller" };

/** The states that an event can be in, in the order of its life. */
export const STATUSES = Object.keys(STATUS);

/** What can become of an attempt, as the last hour counts it. */
export const OUTCOMES = [
  ["completed", "completed"],
  ["retried", "failed, to be retried"],
  ["deferred", "put off"],
  ["skipped", "skipped"],
  ["dead_lettered", "given up"],
];

/** A status in words. */
export function statusWord(status) {
  return STATUS[status]?.[0] ?? String(status);
}

/** What a status means. */
export function statusMeaning(status) {
  return STATUS[status]?.[1] ?? "";
}

/** Why a run stopped: a word and its meaning. */
export function stopWords(run) {
  if (run.state === "lost") {
    return ["lost", "Its instance died before it reported. Its events come back when their leases end."];
  }
  if (run.state === "running") return ["running", "It is still under way."];
  return STOP[run.stop_reason] ?? [String(run.stop_reason), ""];
}

/** What a run has done. */
export function didWords(run) {
  const parts = RUN_COUNTS.filter(([name]) => run[name] > 0).map(([name, word]) => `${count(run[name])} ${word}`);
  return parts.length > 0 ? parts.join(", ") : "found nothing to do";
}

/** What became of an attempt. */
export function attemptWord(outcome) {
  return ATTEMPT[outcome] ?? String(outcome).replaceAll("_", " ");
}

/** Who set a run going. */
export function triggerWord(trigger) {
  return TRIGGER[trigger] ?? String(trigger);
}
