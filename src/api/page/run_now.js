// One run set going from here: one at a time, followed to its end, and told. Every run may cost attempts.

import { act, read } from "./client.js";
import { complain, tell } from "./notice.js";
import { didWords, stopWords } from "./words.js";

const AGAIN_MS = 1000;
/** A run may take 14 minutes at most; whoever has not answered by then is not waited for. */
const PATIENCE_MS = 15 * 60_000;

let made = null;

/** The newest run that was set going from here, as far as it is known: its `state` tells whether it goes on. */
export function ownRun() {
  return made;
}

/** Whether one is under way: another would only spend attempts. */
export function isRunning() {
  return made?.state === "running";
}

/** Forgets it, for another token. */
export function forgetRun() {
  made = null;
}

/** Sets one going unless one is under way; `changed` is called when it has begun and when it has ended. */
export async function runNow(changed) {
  if (isRunning()) return;
  const mine = { state: "running" };
  made = mine;
  changed();
  try {
    const { data } = await act("v1/process", { mode: "async", batch_size: 1000 });
    if (made !== mine) return;
    made = data;
    tell("A run has begun. What it does is said here when it has ended.");
    await follow(data);
  } catch (problem) {
    if (made === mine) made = null;
    complain(problem, "Setting a run going");
  }
  changed();
}

async function follow(begun) {
  const since = performance.now();
  while (made === begun && performance.now() - since < PATIENCE_MS) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    if (made !== begun) return;
    try {
      const { data } = await read(`v1/runs/${begun.run_id}`);
      if (data.state === "running" || made !== begun) continue;
      made = data;
      const [word, meaning] = stopWords(data);
      tell(`The run has ended: ${didWords(data)}. It stopped: ${word}. ${meaning}`);
      return;
    } catch (problem) {
      // Whoever is away for a moment comes back; what is refused stays so.
      if (["unreachable", "database", "stopping"].includes(problem.kind)) continue;
      made = null;
      complain(problem, "Following the run");
      return;
    }
  }
  if (made === begun) made = null;
}
