// The picture of the moment: reads figures, runs and readiness every few seconds while somebody is looking, and keeps
// the last good ones when the server or its database is away.

import { read } from "./client.js";

const INTERVAL_MS = 5000;

/** Begins to watch; `show` gets each new picture. Returns what asks again at once, and what forgets all figures. */
export function watch(show) {
  let memory = nothing();
  let timer = 0;
  let round = 0;

  async function look() {
    clearTimeout(timer);
    const mine = ++round;
    const answers = await Promise.allSettled([read("v1/stats"), read("readyz"), read("v1/runs", { limit: 1 })]);
    // A later question, by another token perhaps, has overtaken this one.
    if (mine !== round) return;
    memory = remember(memory, answers);
    show(picture(memory));
    schedule();
  }

  function schedule() {
    clearTimeout(timer);
    if (document.visibilityState === "visible") timer = setTimeout(look, INTERVAL_MS);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
    else clearTimeout(timer);
  });
  look();
  return {
    look,
    forget() {
      memory = nothing();
    },
    /** The picture of now without asking anybody: only the ages in it are new. */
    now: () => picture(memory),
  };
}

function nothing() {
  return { stats: null, run: null, movedAt: 0, problem: null, readiness: null };
}

function remember(memory, [stats, ready, runs]) {
  const readiness = ready.status === "rejected" && isReadiness(ready.reason) ? ready.reason : null;
  if (stats.status === "rejected") {
    return { ...memory, problem: stats.reason, readiness };
  }
  const fresh = stats.value.data;
  const moved = memory.stats?.as_of !== fresh.as_of;
  const run = runs.status === "fulfilled" ? (runs.value.data.data[0] ?? null) : memory.run;
  return { stats: fresh, run, movedAt: moved ? performance.now() : memory.movedAt, problem: null, readiness };
}

/** A probe that a proxy hides tells nothing about the database. */
function isReadiness(problem) {
  return problem.kind === "database" || problem.kind === "stopping";
}

/** Ages count on this machine's steady clock from an instant of the database's: no clock of ours is asked for the time. */
function picture({ stats, run, movedAt, problem, readiness }) {
  const frozenFor = stats ? performance.now() - movedAt : 0;
  const now = stats ? Date.parse(stats.as_of) + frozenFor : NaN;
  return { stats, run, problem, readiness, frozenFor, now };
}
