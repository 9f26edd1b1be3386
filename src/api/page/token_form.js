// Where the token is typed. It goes from here into memory, or into this tab's storage, and nowhere else.

import { byId } from "./dom.js";
import { hush, tell } from "./notice.js";
import { currentToken, forgetToken, useToken } from "./session.js";

/** Whether the form stands there because nothing can be seen without it. */
let isDemanded = false;

/** Begins; `changed` is called when there is another token, or none any more. */
export function tokenForm(changed) {
  byId("token-button").addEventListener("click", () => {
    if (byId("token-form").hidden) showTokenForm();
    else hide();
  });
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(byId("token").value.trim(), byId("token-keep").checked);
    byId("token").value = "";
    hide();
    hush();
    changed();
  });
  byId("token-forget").addEventListener("click", () => {
    forgetToken();
    byId("token").value = "";
    tell("The token is forgotten.");
    changed();
  });
}

/** Shows the form to whoever asks for it. */
export function showTokenForm() {
  byId("token-form").hidden = false;
  byId("token-forget").hidden = currentToken() === "";
  byId("token").focus();
}

/** Shows it because the server demands a token; a second demand leaves it as it is. */
export function demandToken() {
  if (isDemanded) return;
  isDemanded = true;
  showTokenForm();
}

/** The server is content: the form has done its work. */
export function tokenAccepted() {
  if (isDemanded) hide();
}

function hide() {
  byId("token-form").hidden = true;
  isDemanded = false;
}
