// Who is logged in. The token lives in this tab alone: in memory and in sessionStorage, which ends with the tab.

import { signal } from "./ui.js";

const KEPT_AS = "headwater.session";

/** What the server says of itself: {version, authentication, tokenEndpoint, readOnly}; null: not known yet. */
export const server = signal(null);
/** {realm, token, expires: milliseconds or null}; null: nobody is logged in. */
export const session = signal(kept());
/** Why somebody has to log in again, in a sentence. */
export const farewell = signal("");

let timer = 0;

/** expires: in milliseconds, by a clock that may be another one: the server took the token, so a time that is past says nothing. */
export function logIn({ realm, token, expires }) {
  session.value = { realm, token, expires: expires > Date.now() ? expires : null };
  farewell.value = "";
  try {
    window.sessionStorage.setItem(KEPT_AS, JSON.stringify(session.peek()));
  } catch {
    // a browser that keeps nothing: the token is in memory
  }
  watchExpiry();
}

export function logOut(why = "") {
  window.clearTimeout(timer);
  farewell.value = why;
  session.value = null;
  try {
    window.sessionStorage.removeItem(KEPT_AS);
  } catch {
    // nothing was kept
  }
}

/** When a token that is a JWT ends, in milliseconds; null where it does not say. It is not verified here: the server does that. */
export function expiryOf(token) {
  try {
    const claims = JSON.parse(window.atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
    return typeof claims.exp === "number" ? claims.exp * 1000 : null;
  } catch {
    return null;
  }
}

export function watchExpiry() {
  window.clearTimeout(timer);
  const ends = session.peek()?.expires;
  if (!ends) return;
  const left = ends - Date.now();
  // a timer cannot wait for more than 24 days
  timer = window.setTimeout(left > 86_400_000 ? watchExpiry : () => logOut("Your session has ended. Log in again to go on."), Math.min(left, 86_400_000));
}

function kept() {
  try {
    const value = JSON.parse(window.sessionStorage.getItem(KEPT_AS) ?? "null");
    return value && (!value.expires || value.expires > Date.now()) ? value : null;
  } catch {
    return null;
  }
}
