// The public interface of the server that this page came from. Every failure is a Problem that says what kind it is.

import { currentToken } from "./session.js";

const PATIENCE_MS = 10_000;
// A bulk change works through many events before it answers.
const PATIENCE_TO_CHANGE_MS = 120_000;

/** A request that did not succeed. */
export class Problem extends Error {
  constructor({ kind, status = 0, code = "", detail, requestId = "" }) {
    super(detail);
    /** unreachable, token-missing, token-unknown, scope-missing, database, stopping, not-found, refused or defect */
    this.kind = kind;
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }

  /** The scope that the token lacks, when that is the problem. */
  get scope() {
    return this.kind === "scope-missing" ? (/scope `(.+)`/.exec(this.message)?.[1] ?? "") : "";
  }
}

/** Reads. Parameters that are empty are left out; lists are repeated. */
export function read(path, parameters = {}) {
  return send("GET", path, parameters, undefined, PATIENCE_MS);
}

/** Acts. */
export function act(path, parameters = {}, body = {}) {
  return send("POST", path, parameters, body, PATIENCE_TO_CHANGE_MS);
}

async function send(method, path, parameters, body, patience) {
  const headers = { accept: "application/json" };
  if (currentToken()) {
    headers.authorization = `Bearer ${currentToken()}`;
  }
  if (body !== undefined) {
    headers["content-type"] = "application/json";
  }
  let response;
  let text;
  try {
    response = await fetch(address(path, parameters), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(patience),
    });
    text = await response.text();
  } catch (error) {
    const detail = error.name === "TimeoutError" ? "no answer came in time" : "the server cannot be reached";
    throw new Problem({ kind: "unreachable", detail });
  }
  if (!response.ok) {
    throw problem(response, text);
  }
  return { data: parsed(text), text };
}

/** Relative to the page, so that a proxy may serve it below a folder. */
function address(path, parameters) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") {
        url.searchParams.append(name, one);
      }
    }
  }
  // The server reads `+` as it stands.
  url.search = url.search.replaceAll("+", "%20");
  url.hash = "";
  return url;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem({ kind: "defect", detail: "the answer is no JSON: is something else in front of the server?" });
  }
}

function problem(response, text) {
  let body = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    // Whatever stands between may answer with a page of its own.
  }
  return new Problem({
    kind: kindOf(response.status, body.code),
    status: response.status,
    code: String(body.code ?? ""),
    detail: String(body.detail ?? `the answer was HTTP ${response.status}`),
    requestId: String(body.request_id ?? ""),
  });
}

function kindOf(status, code) {
  if (code === "database-unavailable") return "database";
  if (code === "shutting-down") return "stopping";
  if (status === 401) return currentToken() ? "token-unknown" : "token-missing";
  if (status === 403) return "scope-missing";
  if (status === 404) return "not-found";
  if (status === 502 || status === 503 || status === 504) return "unreachable";
  return status >= 500 ? "defect" : "refused";
}
