// The page put together: what is read is handed to those who show it, and what was done is read again.

import { deadLetters, forgetDeadLetters, redraw, reload, reloadQuietly, showDeadLetters } from "./dead_letters.js";
import { byId } from "./dom.js";
import { closeEvent, eventOfAddress, onEventChange, openEvent } from "./event.js";
import { showHour } from "./hour.js";
import { showLanes } from "./lanes.js";
import { chooseOutbox, ofOutbox, onOutboxChange, outbox, showOutboxes } from "./outboxes.js";
import { forgetRun, isRunning, ownRun, runNow } from "./run_now.js";
import { showRuns } from "./runs.js";
import { forgetSearch, search, showEventsIn } from "./search.js";
import { clock, duration } from "./time.js";
import { demandToken, showTokenForm, tokenAccepted, tokenForm } from "./token_form.js";
import { judge } from "./verdict.js";
import { showVerdict } from "./verdict_view.js";
import { watch } from "./watch.js";

const ASKS_FOR_TOKEN = ["token-missing", "token-unknown", "scope-missing"];
const TICK_MS = 1000;
const AGES_MS = 60_000;

let watcher;
let latest = null;
let deadBefore;
let addressed = eventOfAddress();

function show(picture) {
  latest = picture;
  const locked = ASKS_FOR_TOKEN.includes(picture.problem?.kind);
  if (locked) lock();
  byId("data").hidden = locked || !picture.stats;
  byId("page").dataset.stale = String(Boolean(picture.problem ?? picture.readiness));
  showVerdict(judge({ ...picture, chosen: outbox(), ownRun: ownRun() }), perform, isRunning());
  showFreshness(picture);
  if (locked || picture.problem || !picture.stats) return;
  tokenAccepted();
  showOutboxes(picture.stats);
  showAges(picture);
  showRuns(picture.now);
  followDeadLetters(picture.stats);
  followAddress();
}

function showAges({ stats, now }) {
  showLanes(stats, showDeadLetters);
  showHour(stats, now);
}

/** Whoever may not see the figures does not see those of the token before either. */
function lock() {
  closeEvent();
  forgetDeadLetters();
  forgetSearch();
  forgetRun();
  deadBefore = undefined;
  demandToken();
}

function showFreshness({ stats, frozenFor, problem }) {
  const place = byId("freshness");
  if (!stats) {
    place.textContent = "no figures yet";
  } else {
    place.textContent = `figures of ${clock(Date.parse(stats.as_of))}, ${frozenFor < 3000 ? "just now" : `${duration(frozenFor)} old`}`;
  }
  place.classList.toggle("bad", Boolean(problem) || frozenFor > 60_000);
}

function followDeadLetters(stats) {
  const number = ofOutbox(stats.lanes).map((lane) => lane.dead_letter).join(" ");
  const state = `${outbox()} ${number}`;
  if (state === deadBefore) return;
  deadBefore = state;
  reloadQuietly();
}

function followAddress() {
  if (!addressed) return;
  openEvent(addressed.id, addressed.outbox ?? outbox());
  addressed = null;
}

/** What a button of the verdict offers; in the outbox that it is about. */
async function perform(action, place) {
  if (place !== undefined) chooseOutbox(place);
  if (action === "token") showTokenForm();
  if (action === "dead-letters") await showDeadLetters();
  if (action === "waiting") await showEventsIn("pending");
  if (action === "process") await runNow(lookAgain);
}

/** The button is locked or free at once; the figures follow. */
function lookAgain() {
  if (latest) show(latest);
  watcher.look();
}

function afterChange() {
  reload();
  watcher.look();
}

tokenForm(() => {
  watcher.forget();
  watcher.look();
});
deadLetters({ clock: () => latest?.now ?? 0, changed: () => watcher.look() });
search(() => watcher.now().now);
onEventChange(afterChange);
onOutboxChange(() => {
  forgetDeadLetters();
  forgetSearch();
  deadBefore = undefined;
  if (latest) show(latest);
});
watcher = watch(show);
// Ages go on between two looks, and a chart fits its width.
setInterval(() => showFreshness(watcher.now()), TICK_MS);
setInterval(redraw, AGES_MS);
addEventListener("resize", () => {
  if (latest?.stats && !byId("data").hidden) showHour(latest.stats, latest.now);
});
