// The last runs: when, by whom, what came of them, and why they stopped.

import { read } from "./client.js";
import { button, byId, fill, make, table } from "./dom.js";
import { sentence } from "./notice.js";
import { ago, full, precise } from "./time.js";
import { didWords, stopWords, triggerWord } from "./words.js";

const FEW = 6;
const MANY = 50;

let limit = FEW;

/** Reads and draws them. */
export async function showRuns(now) {
  let runs;
  try {
    runs = (await read("v1/runs", { limit })).data.data;
  } catch (problem) {
    // The verdict speaks of what concerns the whole page.
    if (problem.kind === "refused" || problem.kind === "not-found") fill(byId("runs"), make("p", {}, sentence(problem, "Reading the runs")));
    return;
  }
  if (runs.length === 0) {
    fill(byId("runs"), make("p", { class: "empty" }, "Nobody has made a run in the last seven days."));
    return;
  }
  const more = () => {
    limit = MANY;
    showRuns(now);
  };
  const columns = ["Began", "What it did", "Why it stopped"];
  const drawing = table("The last runs", columns, runs.map((run) => row(run, now)), { kinds: ["when", "wide", "wide"] });
  // Whoever is marking a text to copy it does not lose it to the same text drawn again.
  if (byId("runs").firstElementChild?.isEqualNode(drawing)) return;
  fill(byId("runs"), drawing, limit === FEW && runs.length === FEW && button("Show more", more, { key: "runs-more" }));
}

function row(run, now) {
  const [word, meaning] = stopWords(run);
  const bad = run.state === "lost" || run.stop_reason === "error";
  const began = make("time", { datetime: run.started_at, title: full(run.started_at) }, ago(run.started_at, now));
  return [
    [began, make("small", {}, `by ${triggerWord(run.trigger)}`)],
    [didWords(run), make("small", {}, run.state === "finished" ? `in ${precise(run.duration_ms)}` : "")],
    [make("span", { class: bad ? "tag bad" : "tag" }, word), make("small", {}, meaning)],
  ];
}
