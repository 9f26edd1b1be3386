// What may be done to one event, each after a question, and how it is asked for.

import { act } from "./client.js";
import { ask, noteField } from "./confirm.js";
import { canSkip, noteRefusal, skipAdvice } from "./discards.js";
import { complain, tell, warn } from "./notice.js";
import { statusWord } from "./words.js";

const CHANGES = {
  requeue: {
    title: "Requeue this dead letter?",
    text: "It becomes pending and due at once, with no attempts spent, and keeps its id. The next run delivers it.",
    verb: "Requeue",
    kind: "main",
    path: (id) => `v1/dead-letters/${id}/requeue`,
    done: "Requeued: it is due now.",
  },
  discard: {
    title: "Discard this dead letter?",
    text: "It becomes skipped: it will never be delivered, and this cannot be taken back.",
    verb: "Discard",
    kind: "danger",
    path: (id) => `v1/dead-letters/${id}/discard`,
    done: "Discarded.",
  },
  cancel: {
    title: "Cancel this event?",
    text: "It becomes skipped: it will never be delivered, and this cannot be taken back.",
    verb: "Cancel the event",
    kind: "danger",
    path: (id) => `v1/events/${id}/cancel`,
    done: "Cancelled.",
  },
};

/** What may be done to an event in this state, in an outbox that may lack a place for it. */
export function changesOf({ status, outbox }) {
  const skip = (name) => (canSkip(outbox) ? [name] : []);
  if (status === "dead_letter") return ["requeue", ...skip("discard")];
  return status === "pending" ? ["process", ...skip("cancel")] : [];
}

/** The word on a change's button. */
export function changeVerb(name) {
  return name === "process" ? "Process now" : CHANGES[name].verb;
}

/** The look of a change's button. */
export function changeKind(name) {
  return name === "process" ? "main" : CHANGES[name].kind;
}

/** Asks, then does it. True when it was done. */
export async function change(name, event) {
  if (name === "process") return processNow(event);
  const { title, text, verb, kind, path, done } = CHANGES[name];
  const given = await ask({ title, verb, kind, text: [`${event.type} · ${event.id}`, text], fields: [noteField()] });
  if (!given) return false;
  const note = name === "cancel" ? { reason: given.note } : { note: given.note };
  try {
    await act(path(encodeURIComponent(event.id)), { outbox: event.outbox }, given.note ? note : {});
    tell(done);
    return true;
  } catch (problem) {
    if (noteRefusal(problem, event.outbox)) warn(skipAdvice(event.outbox));
    else complain(problem, verb);
    return problem.kind === "refused";
  }
}

async function processNow(event) {
  try {
    const path = `v1/events/${encodeURIComponent(event.id)}/process`;
    const { data } = await act(path, { outbox: event.outbox, wait_ms: 20_000 });
    const said = data.outcome === "pending" ? "still pending" : statusWord(data.outcome);
    tell(`Processed: ${said}${data.reason ? ` (${data.reason})` : ""}.`);
    return true;
  } catch (problem) {
    complain(problem, "Processing");
    return false;
  }
}
