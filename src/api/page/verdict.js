// The verdict: do events flow, and if not, what is to be done? Figures in, words out; nothing here touches the page.
//
// The first rule that applies speaks. What is behind a rule stands in the order in which a person would ask: can I see
// anything at all, does anybody call, are events late, do deliveries fail, does something wait for a decision?

import { count, counted, duration } from "./time.js";
import { didWords } from "./words.js";

const MINUTE = 60_000;
/** An event that is due for so long is late, when somebody calls every minute. */
const LATE = 2 * MINUTE;
/** No call for so long is worth a word even when nothing is due. */
const QUIET = 15 * MINUTE;
/** Figures that have not moved for so long are not the present. */
const FROZEN = 3 * MINUTE;
/** Deliveries are judged by the latest minutes, and not by fewer attempts than this. */
const RECENT = 15 * MINUTE;
const ENOUGH_ATTEMPTS = 3;

/**
 * The verdict: `level` is ok, warn, bad or away; `kind` names the rule; `text` and `todo` are sentences; `actions` are
 * names of what the page offers, and `places` names the outbox that an action is about, where there are several.
 * `picture` holds stats, problem, readiness, now, frozenFor, the newest run, the run that was set going from here and
 * the chosen outbox.
 */
export function judge(picture) {
  const rules = [blind, unready, frozen, uncounted, justRun, nobodyCalls, late, failing, unrouted, deadLetters, quiet];
  for (const rule of rules) {
    const verdict = rule(picture);
    if (verdict) return { text: [], todo: [], actions: [], places: {}, ...verdict };
  }
  return flow(picture);
}

const BLIND = {
  "token-missing": {
    level: "away",
    headline: "A token is needed",
    text: ["This server tells nothing without a token. Whether events flow cannot be seen from here yet."],
    actions: ["token"],
  },
  "token-unknown": {
    level: "away",
    headline: "The server does not know this token",
    text: ["It was mistyped, or it is no longer among the server's settings."],
    actions: ["token"],
  },
  "scope-missing": {
    level: "away",
    headline: "This token may not read",
    todo: ["Use a token with the scope read, or add it to this one in the server's settings."],
    actions: ["token"],
  },
  unreachable: {
    level: "bad",
    headline: "The server does not answer",
    text: ["No event is lost: they wait in the database. But while no instance runs, none is delivered."],
    todo: [
      "Does the process run? Look at its log: systemctl status outboxd, docker logs, kubectl logs.",
      "Does your own connection work, and whatever stands between: VPN, proxy, load balancer?",
    ],
  },
  database: {
    level: "bad",
    headline: "The database is away",
    text: ["outboxd runs but its database does not answer. Nothing is lost, nothing is delivered; it goes on by itself."],
    todo: ["Look at the database: is it up, does it accept connections, is its disk full, is it read-only after a failover?"],
  },
  stopping: {
    level: "warn",
    headline: "This instance is shutting down",
    text: ["Another one should take over within moments. This page tries again by itself."],
  },
};

function blind({ problem }) {
  if (!problem) return null;
  const known = BLIND[problem.kind];
  const said = `The server says: ${problem.message}.`;
  if (!known) {
    const request = problem.requestId ? [`Its log has more under the request id ${problem.requestId}.`] : [];
    return { level: "bad", kind: problem.kind, headline: "The figures cannot be read", text: [said, ...request] };
  }
  if (problem.kind === "database" && problem.message.includes("schema")) {
    return { level: "bad", kind: "schema", headline: "The database does not fit this program", text: [said] };
  }
  const detail = ["scope-missing", "database"].includes(problem.kind) ? [said] : [];
  return { kind: problem.kind, ...known, text: [...(known.text ?? []), ...detail] };
}

function unready({ readiness }) {
  return readiness ? blind({ problem: readiness }) : null;
}

function frozen({ frozenFor }) {
  if (frozenFor < FROZEN) return null;
  return {
    level: "bad",
    kind: "frozen",
    headline: `The figures have stood still for ${duration(frozenFor)}`,
    text: ["The server answers but cannot take new figures, so that what stands below is old."],
    todo: ["Look at the server's log and at the load of the database.", "outboxd doctor says more."],
  };
}

function uncounted({ stats }) {
  const names = stats.uncounted ?? [];
  if (names.length === 0) return null;
  return {
    level: "bad",
    kind: "uncounted",
    headline: `Outbox ${names.join(", ")} cannot be read`,
    text: ["Nothing below speaks of it, and none of its events is delivered while that lasts. The others are shown."],
    todo: ["outboxd doctor says why: its table may have been altered, be gone, or refuse this user."],
  };
}

/** Figures from before a run that was just made here say nothing about what it has left. */
function justRun({ stats, ownRun }) {
  if (!ownRun) return null;
  if (ownRun.state === "running") {
    return {
      level: "warn",
      kind: "running",
      headline: "A run is under way",
      text: [`It was set going from here. ${dueWords(stats.lanes)} The figures follow it.`],
      actions: ["process"],
    };
  }
  if (Date.parse(ownRun.started_at) + ownRun.duration_ms < Date.parse(stats.as_of)) return null;
  return {
    level: "warn",
    kind: "counting",
    headline: "A run has ended, and the figures are counted anew",
    text: [`It did this: ${didWords(ownRun)}. What stands below is some seconds older.`],
  };
}

function nobodyCalls(picture) {
  const oldest = oldestDue(picture.stats.lanes.filter(isRouted));
  const silence = silenceOf(picture);
  if (!oldest || oldest.oldest_due_age_ms < LATE || silence < LATE) return null;
  const since = silence === Infinity ? "and nothing has ever called" : `and nothing has called for ${duration(silence)}`;
  return {
    level: "bad",
    kind: "nobody-calls",
    headline: `Events are due ${since}`,
    text: [
      `${dueWords(picture.stats.lanes)} The oldest, ${place(oldest, picture)}, has waited for ${duration(oldest.oldest_due_age_ms)}.`,
      ...failures(picture).map((found) => failureWords(found, picture)),
    ],
    todo: [
      "Set one run going now with the button: it hands what is due to its receivers. An event that fails spends one of its attempts.",
      "Then mend what should call /v1/process every minute: the cron job, its schedule, its secret (CRON_SECRET), the network between. Or set [poller] interval, and the server runs by itself.",
    ],
    actions: ["process"],
  };
}

function late(picture) {
  const oldest = oldestDue(picture.stats.lanes.filter(isRouted));
  if (!oldest || oldest.oldest_due_age_ms < LATE) return null;
  const run = lastRun(picture);
  return {
    level: "bad",
    kind: "late",
    headline: `Events are late: the oldest has been due for ${duration(oldest.oldest_due_age_ms)}`,
    text: [`${dueWords(picture.stats.lanes)} The oldest is ${place(oldest, picture)}. Runs are made, but they do not get that far.`],
    todo: lateAdvice(run, oldest),
    actions: ["process"],
  };
}

function lateAdvice(run, oldest) {
  if (run.unfit_types?.includes(oldest.type)) {
    return [`The timeout of its route is longer than a run's time. Call with a larger max_runtime_ms, or shorten the timeout.`];
  }
  if (run.state === "lost" || run.stop_reason === "error") {
    return ["The last run did not end well. Look at the server's log and at the database."];
  }
  if (run.stop_reason === "budget" || run.stop_reason === "batch_size") {
    return ["The last run stopped with work left. Call more often, with a larger batch_size or max_runtime_ms, or raise the concurrency."];
  }
  return ["Is its route paused or at its limit? Is the receiver slow? Open one of the events below and look at its attempts."];
}

function failing(picture) {
  const found = failures(picture);
  if (found.length === 0) return null;
  const silence = silenceOf(picture);
  const nobody = silence >= LATE;
  const since = silence === Infinity ? "Nothing has ever called" : `Nothing has called for ${duration(silence)}`;
  const again = nobody
    ? `${since}: what failed is tried again only when somebody calls. Mend the receiver, then use the button; each event that fails spends an attempt.`
    : "Failed events are tried again by the next runs, with growing delays.";
  const dead = found.some(({ given_up }) => given_up > 0) ? deadLetters(picture) : null;
  return {
    level: "bad",
    kind: "failing",
    headline: "Deliveries fail",
    text: found.map((one) => failureWords(one, picture)),
    todo: [
      "Open an event that failed and read what the receiver answered.",
      "Is the receiver up? Has its address, certificate or secret changed?",
      again,
    ],
    actions: ["waiting", ...(dead?.actions ?? []), ...(nobody ? ["process"] : [])],
    places: { waiting: whereMost(found, ({ bad }) => bad, picture).name, ...dead?.places },
  };
}

/**
 * The outboxes in which most attempts failed lately. The last quarter of an hour must say so and the newest minute in
 * which anything was tried as well: what succeeds again is mended.
 */
function failures(picture) {
  const since = picture.now - RECENT;
  const minutes = (picture.stats.last_hour ?? []).filter((minute) => Date.parse(minute.minute) >= since);
  return [...new Set(minutes.map((minute) => minute.outbox))].flatMap((outbox) => {
    const own = minutes.filter((minute) => minute.outbox === outbox).map(attempted).filter(({ good, bad }) => good + bad > 0);
    if (own.length === 0) return [];
    const newest = own.reduce((newest, one) => (one.at > newest.at ? one : newest));
    const total = (name) => own.reduce((sum, one) => sum + one[name], 0);
    const sum = { outbox, good: total("good"), bad: total("bad"), given_up: total("given_up") };
    return sum.bad >= ENOUGH_ATTEMPTS && sum.bad > sum.good && newest.bad > newest.good ? [sum] : [];
  });
}

function attempted(minute) {
  const { completed, skipped, retried, dead_lettered } = minute;
  return { at: Date.parse(minute.minute), good: completed + skipped, bad: retried + dead_lettered, given_up: dead_lettered };
}

function failureWords({ outbox, good, bad, given_up }, picture) {
  const where = hasSeveral(picture) ? ` in outbox ${outbox}` : "";
  const dead = given_up > 0 ? ` The dead letters grow: ${count(given_up)} of these events ${given_up === 1 ? "was" : "were"} given up.` : "";
  return `${count(bad)} of the ${counted(bad + good, "attempt")} of the last quarter of an hour${where} failed.${dead}`;
}

function unrouted(picture) {
  const lanes = picture.stats.lanes.filter((lane) => !isRouted(lane) && waits(lane));
  if (lanes.length === 0) return null;
  const names = lanes.slice(0, 5).map((lane) => place(lane, picture));
  const dead = deadLetters(picture);
  const given = dead ? [`Given up besides: ${dead.sum}${dead.where ? `, ${dead.where}` : ""}.`] : [];
  const more = lanes.length > names.length ? ` and ${counted(lanes.length - names.length, "other")}` : "";
  return {
    level: "warn",
    kind: "unrouted",
    headline: `${counted(lanes.length, "type")} of events ${lanes.length === 1 ? "waits" : "wait"} because no route takes ${lanes.length === 1 ? "it" : "them"}`,
    text: [`${names.join(", ")}${more}. They wait without spending attempts, and nothing else is late.`, ...given],
    todo: ["Add a [[route]] for the type to the server's settings. Or, if a new version brings the route, wait until it runs."],
    actions: dead?.actions ?? [],
    places: dead?.places ?? {},
  };
}

function deadLetters(picture) {
  const lanes = picture.stats.lanes.filter((lane) => lane.dead_letter > 0);
  if (lanes.length === 0) return null;
  const sum = lanes.reduce((sum, lane) => sum + lane.dead_letter, 0);
  const plus = lanes.some((lane) => lane.capped) ? " or more" : "";
  const { name, where } = whereMost(lanes, (lane) => lane.dead_letter, picture);
  return {
    level: "warn",
    kind: "dead-letters",
    sum: `${count(sum)}${plus}`,
    where,
    places: { "dead-letters": name },
    headline: `Events flow, but ${count(sum)}${plus} ${sum === 1 ? "was" : "were"} given up`,
    text: [`Dead letters wait for a decision. They are never purged.${where ? ` They are ${where}.` : ""}`],
    todo: ["Read why, mend the cause, then requeue them. Discard what nobody needs."],
    actions: ["dead-letters"],
  };
}

function quiet(picture) {
  const silence = silenceOf(picture);
  if (silence < QUIET) return null;
  const since = silence === Infinity ? "nothing has ever called" : `nothing has called for ${duration(silence)}`;
  return {
    level: "warn",
    kind: "quiet",
    headline: `Nothing is late, but ${since}`,
    text: ["An event that becomes due now would wait."],
    todo: ["Check what should call /v1/process every minute, or set [poller] interval."],
    actions: ["process"],
  };
}

function flow(picture) {
  const due = picture.stats.lanes.filter(isRouted).reduce((sum, lane) => sum + lane.due, 0);
  return {
    level: "ok",
    kind: "flow",
    headline: "Events flow",
    text: [due === 0 ? "Nothing is due." : `${dueWords(picture.stats.lanes)} None has waited for long.`],
    todo: [],
    actions: [],
    places: {},
  };
}

/** How long nobody has called, in milliseconds. */
function silenceOf(picture) {
  const run = lastRun(picture);
  if (!run) return Infinity;
  // A run that is under way is a call, however long ago it began; a lost one was.
  if (run.state === "running") return 0;
  return Math.max(0, picture.now - Date.parse(run.started_at) - (run.duration_ms ?? 0));
}

/** The list of runs is read afresh; the figures name the newest run of the moment when they were counted. */
function lastRun({ stats, run }) {
  const known = [run, stats.last_run].filter(Boolean);
  return known.reduce((newest, one) => (newest && Date.parse(newest.started_at) >= Date.parse(one.started_at) ? newest : one), null);
}

function oldestDue(lanes) {
  const due = lanes.filter((lane) => lane.due > 0 && lane.oldest_due_age_ms !== null);
  return due.reduce((oldest, lane) => (oldest && oldest.oldest_due_age_ms >= lane.oldest_due_age_ms ? oldest : lane), null);
}

/** Where nobody knows the routes, nobody misses one. */
function isRouted(lane) {
  return lane.routed !== false;
}

function waits(lane) {
  return lane.due + lane.scheduled > 0;
}

/** What the next run takes; what no route takes is named apart. */
function dueWords(all) {
  const lanes = all.filter(isRouted);
  const due = (lanes) => lanes.reduce((sum, lane) => sum + lane.due, 0);
  const plus = lanes.some((lane) => lane.capped) ? " or more" : "";
  const others = due(all) - due(lanes);
  const besides = others > 0 ? ` ${count(others)} besides ${others === 1 ? "waits" : "wait"} for a route.` : "";
  return `${count(due(lanes))}${plus} ${due(lanes) === 1 ? "event is" : "events are"} due.${besides}`;
}

/** A lane's name; with its outbox where there are several. */
function place(lane, picture) {
  return hasSeveral(picture) ? `${lane.type} (outbox ${lane.outbox})` : lane.type;
}

function hasSeveral({ stats }) {
  return new Set([...(stats.outboxes ?? []), ...stats.lanes.map((lane) => lane.outbox)]).size > 1;
}

/**
 * In which outboxes these are, in words, and the one to look into: the chosen one if it has any, else that with most.
 * Where there is only one outbox, it needs no name.
 */
function whereMost(entries, number, picture) {
  if (!hasSeveral(picture)) return {};
  const sums = new Map();
  for (const entry of entries) sums.set(entry.outbox, (sums.get(entry.outbox) ?? 0) + number(entry));
  const most = [...sums].sort((left, right) => right[1] - left[1]);
  const name = sums.has(picture.chosen) ? picture.chosen : most[0][0];
  if (most.length === 1) return { name, where: `in outbox ${name}` };
  return { name, where: most.map(([outbox, sum]) => `${count(sum)} in outbox ${outbox}`).join(", ") };
}
