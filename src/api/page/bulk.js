// Changing many dead letters: count them first, ask, then go on step by step until all are done or somebody stops it.

import { act } from "./client.js";
import { ask, field, noteField } from "./confirm.js";
import { button, byId, fill, make } from "./dom.js";
import { noteRefusal, skipAdvice } from "./discards.js";
import { complain, sentence, tell, warn } from "./notice.js";
import { outbox } from "./outboxes.js";
import { count, counted } from "./time.js";

const MOST = 10_000;
/** Few enough for a short statement and a moving figure. */
const STEP = 1000;

const WORDS = {
  requeue: { verb: "Requeue", done: "Requeued", kind: "main", meaning: "They become pending and due, with no attempts spent. The next runs deliver them." },
  discard: { verb: "Discard", done: "Discarded", kind: "danger", meaning: "They become skipped: they will never be delivered, and this cannot be taken back." },
};

/** Requeues or discards those with these `ids`, or all under this `filter`. True when anything may have changed. */
export async function changeMany(name, which) {
  const { verb, kind, meaning } = WORDS[name];
  const path = `v1/dead-letters/${name}`;
  let found;
  try {
    found = (await act(path, { outbox: outbox() }, { ...which, dry_run: true, limit: MOST })).data;
  } catch (problem) {
    if (noteRefusal(problem, outbox())) {
      warn(skipAdvice(outbox()));
      return true;
    }
    complain(problem, verb);
    return false;
  }
  if (found.matched === 0) {
    tell("There is nothing left to change: somebody else was faster.");
    return true;
  }
  const number = `${found.more ? "more than " : ""}${counted(found.matched, "dead letter")}`;
  const fields = [noteField()];
  if (name === "requeue" && (found.matched > 1 || found.more)) fields.unshift(spreadField());
  const given = await ask({ title: `${verb} ${number}?`, verb: `${verb} ${found.more ? "all" : count(found.matched)}`, kind, text: [meaning], fields });
  if (!given) return false;
  const body = { ...which };
  if (given.note) body.note = given.note;
  if (Number(given.spread) > 0) body.spread_ms = Math.round(Number(given.spread) * 60_000);
  return work(path, body, WORDS[name], found);
}

function spreadField() {
  return field("spread", "Spread over minutes", {
    type: "number",
    inputmode: "decimal",
    min: 0,
    max: 1440,
    value: 0,
    hint: "So that the receiver is not met by all of them at once.",
  });
}

async function work(path, body, { done, verb }, found) {
  let changed = 0;
  let stopped = false;
  const stop = button("Stop", () => {
    stopped = true;
  });
  const figure = make("span");
  fill(byId("notice"), figure, " ", stop);
  try {
    let more = true;
    while (more && !stopped) {
      fill(figure, `${verb}: ${count(changed)} of ${found.more ? "more than " : ""}${count(found.matched)} done…`);
      const { data } = await act(path, { outbox: outbox() }, { ...body, limit: STEP });
      changed += data.changed;
      // The next step looks behind those that somebody else holds, instead of meeting them again.
      if (data.next_cursor) body.cursor = data.next_cursor;
      more = data.more && (data.changed > 0 || Boolean(data.next_cursor));
    }
    tell(`${done} ${counted(changed, "dead letter")}${stopped ? "; the rest stays as it is" : ""}.`);
  } catch (problem) {
    tell(`${done} ${counted(changed, "dead letter")}. ${sentence(problem, "Going on")}`);
  }
  return true;
}
