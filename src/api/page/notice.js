// What came of something that the user did, said where he looks: in the dialog that is open, else on the page.

import { button, byId, fill, make, shown } from "./dom.js";

/** Says that something was done. */
export function tell(text) {
  say(text, "done");
}

/** Says that something cannot be done. */
export function warn(text) {
  say(text, "failed");
}

/** Says why something was not done. */
export function complain(problem, what) {
  say(sentence(problem, what), "failed");
}

/** A failure in words; `what` is what was wanted. */
export function sentence(problem, what) {
  if (problem.scope) return `${what} needs a token with the scope ${problem.scope}; this one lacks it.`;
  if (problem.kind === "token-missing") return `${what} needs a token.`;
  if (problem.kind === "token-unknown") return "The server does not know this token.";
  const request = problem.requestId && problem.kind === "defect" ? ` (request ${problem.requestId})` : "";
  return `${what} did not succeed: ${problem.message}${request}.`;
}

/** Takes back what was said. */
export function hush() {
  for (const place of document.querySelectorAll(".message, #notice")) fill(place);
}

function say(text, kind) {
  const open = [...document.querySelectorAll("dialog[open]")].at(-1);
  const place = open?.querySelector(".message") ?? byId("notice");
  fill(place, make("span", { class: kind }, shown(text)), button("Dismiss", () => fill(place), { kind: "small" }));
}
