// Where one is: everything has a link, behind the # of the address, so that no name of a table reaches a server's or a proxy's log.

import { signal } from "./ui.js";

let shown = window.location.hash;
/** {path: the decoded segments, query: {name: text}} */
export const place = signal(read(window.location.hash));

/** The link of segments; a last argument that is an object is the query, in which empty values are left out. */
export function link(...parts) {
  const last = parts[parts.length - 1];
  const query = typeof last === "object" && last !== null ? parts.pop() : {};
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value != null));
  return `#/${path}${asked.size ? `?${asked}` : ""}`;
}

/** The place has changed when this returns: what is asked next begins from there. */
export function go(target) {
  if (target === window.location.hash) return;
  window.location.hash = target;
  show(target);
}

/** Change the address without another step in the browser's history. */
export function replace(target) {
  try {
    window.history.replaceState(null, "", target);
  } catch {
    // some browsers refuse it when it comes too often: the address follows with the next one
  }
  show(target);
}

/** The same place with other values in its query. */
export function hereWith(changes) {
  return link(...place.peek().path, { ...place.peek().query, ...changes });
}

function read(hash) {
  const [path, query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function split(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function show(hash) {
  if (hash === shown) return;
  shown = hash;
  place.value = read(hash);
}

window.addEventListener("hashchange", () => show(window.location.hash));
