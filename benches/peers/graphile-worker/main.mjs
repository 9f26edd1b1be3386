// Adds no-op jobs to graphile-worker, or drains them, and prints one line of JSON.
//
//   node main.mjs fill DATABASE_URL JOBS
//   node main.mjs drain DATABASE_URL JOBS
//
// A job's payload is 300 bytes of JSON, as an event's is on the other side. The settings are those that drained fastest
// where this was tried: the local queue fetches 500 jobs at once, completions are batched without waiting for more.

import { Logger, makeWorkerUtils, run } from "graphile-worker";

const TEXT = "x".repeat(274);
const JOBS_A_CALL = 10_000;

const silent = new Logger(() => () => {});
const [command, connectionString, count] = process.argv.slice(2);
const jobs = Number(count);

async function fill() {
  const utils = await makeWorkerUtils({ connectionString, logger: silent });
  await utils.migrate();
  for (let added = 0; added < jobs; added += JOBS_A_CALL) {
    const specs = Array.from({ length: Math.min(JOBS_A_CALL, jobs - added) }, (_, index) => ({
      identifier: "noop",
      payload: { n: String(added + index + 1).padStart(8, "0"), text: TEXT },
    }));
    await utils.addJobs(specs);
  }
  await utils.release();
  return { filled: jobs };
}

async function drain() {
  let done = 0;
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const began = process.hrtime.bigint();
  const runner = await run({
    connectionString,
    taskList: {
      noop() {
        done += 1;
        if (done === jobs) finish(process.hrtime.bigint());
      },
    },
    preset: {
      worker: {
        concurrentJobs: 24,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        pollInterval: 100,
        logger: silent,
      },
    },
    noHandleSignals: true,
  });
  const ended = await finished;
  // Completions that are still in a batch are written here, outside of the time.
  await runner.stop();
  const seconds = Number(ended - began) / 1e9;
  return { drained: done, seconds };
}

console.log(JSON.stringify(await (command === "fill" ? fill() : drain())));
