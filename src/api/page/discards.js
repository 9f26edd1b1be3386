// Outboxes whose table cannot say that an event was skipped: nothing of theirs is discarded or cancelled. The server
// tells only by refusing, so that the first refusal is remembered.

const NO_STATUS = /table has no status for/;

const without = new Set();

/** Whether events of this outbox can be discarded and cancelled, as far as is known. */
export function canSkip(outbox) {
  return !without.has(outbox);
}

/** Whether a refusal says that the outbox lacks the status; it is remembered. */
export function noteRefusal(problem, outbox) {
  if (problem.kind !== "refused" || !NO_STATUS.test(problem.message)) return false;
  without.add(outbox);
  return true;
}

/** What can be done about it. */
export function skipAdvice(outbox) {
  return `Events of outbox ${outbox} can be neither discarded nor cancelled: its table has no status for that. Name one in its settings: [outbox.status] skipped. The buttons are hidden now; load this page again after that.`;
}
