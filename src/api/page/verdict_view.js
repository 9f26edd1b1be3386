// The banner on top of the page.

import { button, byId, fill, make, shown } from "./dom.js";

const ACTIONS = {
  token: "Enter a token",
  process: "Process what is due now",
  "dead-letters": "See the dead letters",
  waiting: "See events that wait",
};

let announced = "";
let drawn = "";

/**
 * Shows a verdict; `perform` is called with an action's name and its outbox; while
 * `isRunning`, no other run can be begun. A screen reader hears it when its kind changes.
 */
export function showVerdict(verdict, perform, isRunning = false) {
  const text = JSON.stringify([verdict, isRunning]);
  if (text === drawn) return;
  drawn = text;
  const banner = byId("verdict");
  banner.dataset.level = verdict.level;
  banner.dataset.kind = verdict.kind;
  fill(byId("verdict-headline"), shown(verdict.headline));
  const todo = verdict.todo.length > 0 && make("ul", { class: "todo" }, verdict.todo.map((line) => make("li", {}, shown(line))));
  fill(byId("verdict-text"), ...verdict.text.map((line) => make("p", {}, shown(line))), todo);
  const buttons = verdict.actions.map((name) => {
    const key = `verdict-${name}`;
    // It keeps the focus, which a disabled button would lose.
    if (name === "process" && isRunning) return button("A run is under way…", () => {}, { key, "aria-disabled": "true" });
    return button(actionWords(name, verdict), () => perform(name, verdict.places[name]), { key, kind: "main" });
  });
  fill(byId("verdict-actions"), buttons);
  document.title = verdict.level === "ok" ? "outboxd" : `${verdict.headline} · outboxd`;
  const kind = `${verdict.level} ${verdict.kind}`;
  if (kind !== announced) {
    announced = kind;
    byId("announcer").textContent = [`${verdict.headline}.`, ...verdict.todo].join(" ");
  }
}

function actionWords(name, { places }) {
  return places[name] === undefined ? ACTIONS[name] : `${ACTIONS[name]} of ${shown(places[name])}`;
}
