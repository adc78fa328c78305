// Small things that every screen uses: times, ids, states, sizes, and what is said while there is nothing to show.

import { byName, html, signal, useEffect, useRef, useSignalValue, useState } from "../ui.js";
import { notify } from "./notices.js";

const ICONS = byName({
  branch: "M5 3v7m0 0a2 2 0 1 0 0 .01M5 3a0 0 0 1 0 0 .01M11 6v1a3 3 0 0 1-3 3H5M11 2.5a1.5 1.5 0 1 0 .01 0",
  catalog: "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zm0 0v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  check: "M3 8.5l3.5 3.5L13 4.5",
  copy: "M6 6V3h7v7h-3M3 6h7v7H3z",
  chevron: "M6 4l4 4-4 4",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  folder: "M2 4h4l1.5 2H14v7H2z",
  key: "M10 6a2 2 0 1 0-.01 0M8.6 7.4L3 13M5 11l1.5 1.5",
  logout: "M6 3H3v10h3M7 8h6M10.5 5.5L13 8l-2.5 2.5",
  menu: "M2 4h12M2 8h12M2 12h12",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  auto: "M8 2a6 6 0 1 0 .01 0M8 2v12",
  search: "M7 2.5a4.5 4.5 0 1 0 .01 0M10.5 10.5L14 14",
  shield: "M8 2l5 2v4c0 3-2 5-5 6-3-1-5-3-5-6V4z",
  stop: "M4 4h8v8H4z",
  sun: "M8 5.5a2.5 2.5 0 1 0 .01 0M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  table: "M2 3h12v10H2zM2 6.5h12M6.5 6.5V13",
  tag: "M2 2h6l6 6-6 6-6-6zM5 5h.01",
  task: "M8 2a6 6 0 1 0 .01 0M8 5v3.5l2 1.5",
  user: "M8 2.5a2.5 2.5 0 1 0 .01 0M3 14c.5-3 2.5-4.5 5-4.5s4.5 1.5 5 4.5",
  view: "M1.5 8C3 5 5.5 3.5 8 3.5S13 5 14.5 8C13 11 10.5 12.5 8 12.5S3 11 1.5 8zM8 6.5a1.5 1.5 0 1 0 .01 0",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.01",
});

export function Icon({ name, label }) {
  return html`<svg class="icon" viewBox="0 0 16 16" role=${label ? "img" : null} aria-label=${label} aria-hidden=${label ? null : "true"}>
    <path d=${ICONS[name]} />
  </svg>`;
}

export const Spinner = ({ label = "Loading" }) =>
  html`<span class="spinner" role="status"><span class="spinner-ring" aria-hidden="true"></span><span class="hidden">${label}</span></span>`;

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { style: "short" });
const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];
/** Counts on, so that what was "2 min. ago" does not stay so for as long as a page is open. */
const turns = signal(0);
window.setInterval(() => {
  if (document.visibilityState === "visible") turns.value += 1;
}, 15_000);

function ago(at) {
  const seconds = (at - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return Math.abs(seconds) < 1 ? "now" : relative.format(Math.trunc(seconds / size), unit);
}

function Ago({ of: date }) {
  useSignalValue(turns);
  return html`${ago(date.getTime())}`;
}

/** A time in the reader's zone, in UTC on hover. RFC 3339, milliseconds, or null. */
export function Time({ at, isLong = false, none = "–" }) {
  if (at == null || at === "") return html`<span class="quiet">${none}</span>`;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return html`<span>${at}</span>`;
  return html`<time datetime=${date.toISOString()} title=${`${local.format(date)}\n${date.toISOString()} (UTC)`}>
    ${isLong ? local.format(date) : html`<${Ago} of=${date} />`}
  </time>`;
}

export function Copied({ text, label = "Copy" }) {
  const [isDone, setDone] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      timer.current = window.setTimeout(() => setDone(false), 1500);
    } catch {
      notify("The browser did not let the console copy that. Select the text and copy it by hand.", "warning");
    }
  };
  return html`<button type="button" class="copy" onClick=${copy} aria-label=${isDone ? "Copied" : label} title=${isDone ? "Copied" : label}>
    <${Icon} name=${isDone ? "check" : "copy"} />
  </button>`;
}

/** An id or a hash, whole in the copy, short on the screen. */
export function Id({ value, length = 16, href }) {
  if (!value) return html`<span class="quiet">–</span>`;
  const text = String(value);
  const shown = text.length > length ? `${text.slice(0, length)}…` : text;
  return html`<span class="id">${href ? html`<a href=${href} title=${text}>${shown}</a>` : html`<code title=${text}>${shown}</code>`}
    <${Copied} text=${text} label=${`Copy ${text}`} /></span>`;
}

/** Who made a commit: the verified committer, and beside it the authors that the request named, which are not verified. */
export function Person({ of: { committer, authors } }) {
  const named = authors.join(", ");
  if (!committer && !named) return html`unknown`;
  const claim = named && named !== committer && html`<span class="quiet" title="The request named this author; it was not verified">author <bdi>${named}</bdi></span>`;
  return html`${committer && html`<bdi title="Verified: the principal that made the request">${committer}</bdi>`}${committer && claim && ", "}${claim}`;
}

const TONES = byName({
  SUCCEEDED: "good", ACTIVE: "good", MERGED: "good", WOULD_MERGE: "good", ADDED: "good", CREATED: "good", UP_TO_DATE: "calm",
  RUNNING: "busy", WAITING: "calm", CANCELLED: "calm", CHANGED: "busy", RENAMED: "busy", PUT: "busy", CLOSED: "calm",
  FAILED: "bad", CONFLICTS: "bad", REMOVED: "bad", DELETED: "bad", DELETE: "bad", DAMAGE: "bad", TROUBLE: "warn", LEFTOVER: "calm",
});

export function State({ of: state, tone }) {
  const text = String(state ?? "–").replaceAll("_", " ").toLowerCase();
  return html`<span class=${`state ${tone ?? TONES[state] ?? "calm"}`}>${text.charAt(0).toUpperCase()}${text.slice(1)}</span>`;
}

export const Tag = ({ children, tone = "calm", title }) => html`<span class=${`tag ${tone}`} title=${title}>${children}</span>`;

const numbers = new Intl.NumberFormat();
export const count = (number) => (number == null ? "–" : numbers.format(number));

export function bytes(number) {
  if (number == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let [value, at] = [Number(number), 0];
  for (; value >= 1024 && at < units.length - 1; at += 1) value /= 1024;
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

/** The two largest units of so many seconds. */
export function seconds(number) {
  if (number == null) return "–";
  if (number < 1) return number < 0.001 ? "under 1 ms" : `${Math.round(number * 1000)} ms`;
  if (number < 59.95) return `${number.toFixed(1)} s`;
  const whole = Math.round(number);
  const [days, hours, minutes] = [Math.floor(whole / 86_400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  const parts = days ? [[days, "d"], [hours, "h"]] : hours ? [[hours, "h"], [minutes, "min"]] : [[minutes, "min"], [whole % 60, "s"]];
  return parts.filter(([part]) => part).map(([part, unit]) => `${part} ${unit}`).join(" ");
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const Empty = ({ title, children }) =>
  html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<p>${children}</p>`}</div>`;

/** Why something is not shown, in the server's words, and what can be done about it. */
export function Failure({ error, retry }) {
  const title = {
    0: "The server cannot be reached",
    403: "You do not have the privilege for this",
    404: "Not found",
    409: "Something else was faster",
    429: "The server is busy",
    503: "The server cannot answer at the moment",
  }[error.status] ?? "That did not work";
  return html`<div class="failure" role="alert">
    <${Icon} name=${error.status === 403 ? "shield" : "warning"} />
    <div>
      <p class="failure-title">${title}</p>
      <p class="failure-text">${error.message}</p>
      ${retry && error.status !== 403 && error.status !== 404 && html`<button type="button" class="button small" onClick=${retry}>Try again</button>`}
    </div>
  </div>`;
}

/** What a resource has, or why it has nothing: a spinner, a failure below its heading, or the function's picture of its data. */
export function Shown({ of: resource, children, label, heading }) {
  if (resource.data === undefined) {
    if (resource.error) return html`${heading && html`<h1 class="lonely"><bdi>${heading}</bdi></h1>`}<${Failure} error=${resource.error} retry=${resource.reload} />`;
    return html`<div class="waiting"><${Spinner} label=${label} /></div>`;
  }
  return html`${resource.error && html`<${Failure} error=${resource.error} retry=${resource.reload} />`}${children(resource.data)}`;
}

/** Facts as terms and values: [[term, value], …]; those without a value are left out. */
export const Facts = ({ of: facts }) =>
  html`<dl class="facts">
    ${facts.filter(([, value]) => value !== undefined && value !== null && value !== false && value !== "").map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}
  </dl>`;
