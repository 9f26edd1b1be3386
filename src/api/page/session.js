// The token: in memory, or in this tab's session storage when its user wants that. Never in an address, never in a cookie.

const KEY = "outboxd-token";

let token = stored();

/** The token to send, or an empty text. */
export function currentToken() {
  return token;
}

/** Uses this token from now on. */
export function useToken(text, keep) {
  token = text;
  forgetStored();
  if (keep) {
    try {
      sessionStorage.setItem(KEY, text);
    } catch {
      // A browser may refuse storage; the token then lives as long as the page.
    }
  }
}

/** Forgets the token everywhere. */
export function forgetToken() {
  token = "";
  forgetStored();
}

function stored() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function forgetStored() {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was stored then.
  }
}
