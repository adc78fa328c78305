// Requests to the management API. What may pass by itself is tried again; what may not is an ApiError with the server's own sentence.

import { signal } from "./ui.js";
import { logOut, server, session } from "./session.js";

const TRIES = 6;
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 15_000;

/** Whether the server can be reached. */
export const isOnline = signal(true);
/** Counts how often the server came back: what depends on it loads again. */
export const revivals = signal(0);

/** An answer that is an error. status 0: the server was not reached. */
export class ApiError extends Error {
  constructor(status, type, message) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

/** The address of something on this server, also where a proxy serves it below a prefix. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI.split("#")[0]).href;
}

/** End the session at the server, too: its token, and what that was exchanged for. If that fails, the console logs out anyway. */
export function endSession() {
  const [endpoint, token] = [server.peek()?.revocationEndpoint, session.peek()?.token];
  logOut();
  if (!endpoint || !token) return;
  fetch(address(endpoint), { method: "POST", body: new URLSearchParams({ token }), cache: "no-store", credentials: "omit", keepalive: true }).catch(() => {});
}

/** The path of segments below /api/v1, each encoded. */
export function path(...segments) {
  return `/api/v1/${segments.map((segment) => encodeURIComponent(segment)).join("/")}`;
}

export const realmPath = (realm, ...more) => path("realms", realm, ...more);
export const catalogPath = (realm, catalog, ...more) => path("realms", realm, "catalogs", catalog, ...more);

export const get = (where, query, signal) => request("GET", where, { query, signal });
export const post = (where, body, query) => request("POST", where, { body: body ?? null, query });
export const put = (where, body, query) => request("PUT", where, { body, query });
export const patch = (where, body) => request("PATCH", where, { body });
export const remove = (where, query) => request("DELETE", where, { query });

/** The text of something that is no JSON. */
export const getText = (where, signal) => request("GET", where, { signal, isText: true });

/**
 * Ask the server, and ask again while it says that it is busy. A change is repeated only where it certainly was not done, and for whoever
 * asked for it: not for somebody who has logged in since.
 *
 * token    of somebody who has not logged in yet; without it, that of the session
 */
export async function request(method, where, { query, body, signal: stopped, isText = false, token } = {}) {
  const own = session.peek()?.token;
  const target = new URL(address(where));
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== "" && one != null) target.searchParams.append(name, one);
  }
  for (let number = 1; ; number += 1) {
    const answer = await sent(method, target, body, stopped, token ?? own);
    if (answer.ok) return contentOf(answer, method, isText);
    const error = await errorOf(answer);
    const isStillOwn = own === session.peek()?.token;
    if (answer.status === 401 && own && !token && isStillOwn) logOut("The server no longer accepts your token. Log in again to go on.");
    if (![429, 503].includes(answer.status) || number >= TRIES || !isStillOwn) throw error;
    await pause(waitOf(answer, number), stopped);
    if (own !== session.peek()?.token) throw error;
  }
}

async function sent(method, target, body, stopped, token) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined && body !== null) headers["Content-Type"] = "application/json";
  try {
    const content = body === undefined || body === null ? undefined : JSON.stringify(body);
    return await fetch(target, { method, headers, body: content, signal: stopped, cache: "no-store", credentials: "omit" });
  } catch (error) {
    throw lost(error, method);
  }
}

async function contentOf(answer, method, isText) {
  if (answer.status === 204) return null;
  try {
    return await (isText ? answer.text() : answer.json());
  } catch (error) {
    if (error instanceof SyntaxError) throw new ApiError(answer.status, "Error", "The answer is not the server's: something between it and this browser sent another one.");
    throw lost(error, method);
  }
}

/** What to raise where an answer did not come, or not to its end. */
function lost(error, method) {
  if (error.name === "AbortError") return error;
  watchForServer();
  return new ApiError(0, "Unreachable", method === "GET"
    ? "The server cannot be reached."
    : "The server was not reached, or its answer was lost. Look whether the change was made before you repeat it.");
}

async function errorOf(answer) {
  try {
    const { error } = await answer.json();
    return new ApiError(answer.status, error.type, error.message);
  } catch {
    return new ApiError(answer.status, "Error", `The server answered ${answer.status} ${answer.statusText}`.trim());
  }
}

function waitOf(answer, number) {
  const asked = Number(answer.headers.get("Retry-After"));
  const own = FIRST_WAIT_MS * 2 ** (number - 1) * (0.75 + Math.random() / 2);
  return Math.min(LONGEST_WAIT_MS, asked > 0 ? Math.max(asked * 1000, own) : own);
}

export function pause(milliseconds, stopped) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      window.clearTimeout(timer);
      reject(new DOMException("stopped", "AbortError"));
    };
    const timer = window.setTimeout(() => {
      stopped?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (stopped?.aborted) stop();
    stopped?.addEventListener("abort", stop, { once: true });
  });
}

/** Once the server is lost: look for it, less and less often, and load again once it answers. */
async function watchForServer() {
  if (!isOnline.peek()) return;
  isOnline.value = false;
  for (let wait = 500; ; wait = Math.min(wait * 1.5, 8000)) {
    await pause(wait);
    try {
      if ((await fetch(address("/healthz"), { cache: "no-store", credentials: "omit" })).ok) break;
    } catch {
      // still away
    }
  }
  isOnline.value = true;
  revivals.value += 1;
}
