// The frame around every screen: the bar at the top, the rooms of a realm at the side, and the tabs of a catalog.

import { html, useEffect, useRef, useSignalValue, useState } from "../ui.js";
import { endSession, isOnline } from "../api.js";
import { go, link, place } from "../router.js";
import { session } from "../session.js";
import { theme, THEMES } from "../theme.js";
import { useCatalogRights, useRealmRights } from "../rights.js";
import { Copied, Icon } from "./base.js";
import { Notices } from "./notices.js";

export const ROOMS = [
  ["catalogs", "Catalogs", "catalog"],
  ["tasks", "Tasks", "task", "readTasks"],
  ["runs", "Runs", "file", "readTasks"],
  ["checks", "Checks", "check", "readTasks"],
  ["maintenance", "Maintenance", "stop", "readTasks"],
  ["principals", "Principals", "user", "manageAccess"],
  ["roles", "Roles", "key", "manageAccess"],
  ["access", "Explain access", "shield"],
];

const TABS = [
  ["tree", "Contents"],
  ["refs", "Branches and tags"],
  ["commits", "Commits", "readHistory"],
  ["compare", "Compare", "readHistory"],
  ["merge", "Merge", "writeTables"],
  ["policies", "Policies", "manageMetadata"],
  ["files", "Unused files", "manageContent"],
  ["roles", "Roles and grants", "manageAccess"],
  ["definition", "Definition", "readDefinition"],
];

function ThemeSwitch() {
  const now = useSignalValue(theme);
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  const label = `Theme: ${now === "auto" ? "as the system" : now}. Switch to ${next === "auto" ? "as the system" : next}`;
  return html`<button type="button" class="plain round" aria-label=${label} title=${label} onClick=${() => { theme.value = next; }}>
    <${Icon} name=${{ auto: "auto", light: "sun", dark: "moon" }[now]} />
  </button>`;
}

function TopBar({ realm, catalog, me, onMenu, isMenuOpen }) {
  const held = useSignalValue(session);
  return html`<header class="top-bar">
    ${realm && html`<button type="button" class="plain round menu-button" aria-label="Menu" aria-expanded=${isMenuOpen} aria-controls="rooms" onClick=${onMenu}><${Icon} name="menu" /></button>`}
    <a class="brand" href=${held && realm ? link("realms", realm) : "#/"}><${Logo} /><span>Headwater</span></a>
    <nav class="crumbs" aria-label="You are in">
      ${realm && html`<a class="crumb" dir="auto" href=${link("realms", realm)}>${realm}</a>`}
      ${catalog && html`<span class="crumb-slash" aria-hidden="true">/</span><a class="crumb" dir="auto" href=${link("realms", realm, "catalogs", catalog)}>${catalog}</a>`}
    </nav>
    <span class="top-bar-end">
      ${me?.principal && html`<span class="who" title=${me.roles?.length ? `Roles: ${me.roles.join(", ")}` : "No roles"}><${Icon} name="user" />${me.principal}</span>`}
      <${ThemeSwitch} />
      ${held && html`<button type="button" class="plain round" aria-label="Log out" title="Log out" onClick=${endSession}><${Icon} name="logout" /></button>`}
    </span>
  </header>`;
}

export const Logo = () => html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
  <rect class="logo-ground" width="32" height="32" rx="7" /><path class="logo-drop" d="M16 5c4 5 6.5 8.6 6.5 12a6.5 6.5 0 0 1-13 0c0-3.4 2.5-7 6.5-12z" />
  <path class="logo-wave" d="M5 25c2.750 0 2.750 2 5.5 2s2.750-2 5.5-2 2.750 2 5.5 2 2.750-2 5.5-2" />
</svg>`;

function Rooms({ realm, may, isOpen, onChosen }) {
  const here = useSignalValue(place).path[2] ?? "catalogs";
  return html`<nav id="rooms" class=${`rooms ${isOpen ? "open" : ""}`} aria-label="Realm">
    ${ROOMS.filter(([, , , right]) => !right || may[right]).map(
      ([name, title, icon]) => html`<a href=${link("realms", realm, name)} aria-current=${here === name ? "page" : null} onClick=${onChosen}>
        <${Icon} name=${icon} />${title}
      </a>`,
    )}
  </nav>`;
}

function Offline() {
  if (useSignalValue(isOnline)) return null;
  return html`<div class="banner" role="alert"><${Icon} name="warning" />
    The server cannot be reached. What you see may be old; the console goes on by itself when the server is back.</div>`;
}

/** A screen without a realm, such as the one to log in. */
export function Bare({ children }) {
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${TopBar} /><${Offline} /><main id="main" class="bare" tabindex="-1">${children}</main><${Notices} />`;
}

/** The frame of a realm. */
export function Frame({ realm, catalog, children }) {
  const [isOpen, setOpen] = useState(false);
  const { may, me } = useRealmRights(realm);
  useSearchKey();
  useEffect(() => {
    const close = (event) => event.key === "Escape" && setOpen(false);
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, []);
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${TopBar} realm=${realm} catalog=${catalog} me=${me} isMenuOpen=${isOpen} onMenu=${() => setOpen(!isOpen)} />
    <${Offline} />
    <div class="frame">
      <${Rooms} realm=${realm} may=${may} isOpen=${isOpen} onChosen=${() => setOpen(false)} />
      <main id="main" tabindex="-1">${children}</main>
    </div>
    <${Notices} />`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

/** The key / goes to the field for searching, or to the contents of the catalog, where there is one. */
function useSearchKey() {
  useEffect(() => {
    const seek = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("input,textarea,select,dialog")) return;
      const field = document.querySelector("input[type=search]");
      const [, realm, , catalog] = place.peek().path;
      if (field) field.focus();
      else if (catalog) go(link("realms", realm, "catalogs", catalog, { focus: "search" }));
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", seek);
    return () => document.removeEventListener("keydown", seek);
  }, []);
}

let isFirstHeading = true;

/** The heading of a screen. Whoever comes from another screen begins with it: screen readers read it out. */
export function Heading({ title, icon, note, copied, children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · Headwater`;
    const { activeElement } = document;
    if (isFirstHeading) isFirstHeading = false;
    else if (!activeElement || activeElement === document.body || !activeElement.isConnected) heading.current.focus({ preventScroll: true });
  }, [title]);
  return html`<div class="heading">
    <div class="heading-text">
      <h1 ref=${heading} tabindex="-1">${icon && html`<${Icon} name=${icon} />`}<bdi>${title}</bdi>${copied && html`<${Copied} text=${copied} label="Copy the name" />`}</h1>
      ${note && html`<p class="note">${note}</p>`}
    </div>
    ${children && html`<div class="buttons">${children}</div>`}
  </div>`;
}

/** What is inside of a catalog, and where one is in it. */
export function CatalogFrame({ realm, catalog, tab, children, reference }) {
  const { may } = useCatalogRights(realm, catalog, reference);
  const base = ["realms", realm, "catalogs", catalog];
  const tabs = useRef(null);
  useEffect(() => tabs.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [tab, may]);
  return html`<nav ref=${tabs} class="tabs" aria-label="Catalog">
      ${TABS.filter(([, , right]) => !right || may[right]).map(
        ([name, title]) => html`<a href=${link(...base, name, ...(["tree", "commits"].includes(name) && reference ? [reference] : []))} aria-current=${tab === name ? "page" : null}>${title}</a>`,
      )}
    </nav>
    ${children(may)}`;
}
