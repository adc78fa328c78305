// Namespaces and tables of a reference: as a tree that loads what is opened, and as what a search finds.

import { byName, html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { catalogPath, get, pause } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { go, hereWith, link, replace } from "../router.js";
import { count, Empty, Failure, Icon, Spinner } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { RefPicker, useReferences } from "../parts/refpicker.js";
import { LongList } from "../parts/rows.js";

const ROW_HEIGHT = 32;
const PAGE = 200;
const TYPING_MS = 180;
const KINDS = byName({ ICEBERG_TABLE: "Iceberg table", ICEBERG_VIEW: "view", DELTA_LAKE_TABLE: "Delta table", NAMESPACE: "namespace", UDF: "function" });
const ICONS = byName({ ICEBERG_TABLE: "table", ICEBERG_VIEW: "view", DELTA_LAKE_TABLE: "table", NAMESPACE: "folder", UDF: "file" });

export function Tree({ realm, catalog, reference, query }) {
  const all = useReferences(realm, catalog);
  const shown = reference === "-" ? all.default : reference;
  const [text, match] = [query.q ?? "", query.match ?? "substring"]; // the address alone has them: a copy of them would lag behind who types fast
  const field = useRef(null);
  useEffect(() => {
    if (query.focus === "search") {
      field.current.focus();
      replace(hereWith({ focus: "" }));
    }
  }, [query.focus]);
  const write = (q, kind) => replace(hereWith({ q, match: kind === "substring" ? "" : kind }));
  return html`<${Heading} title=${catalog} icon="catalog" copied=${`${realm}/${catalog}`} />
    <div class="tools">
      <${RefPicker} isInline label="Reference" value=${shown} references=${all.references} onChosen=${(name) => go(link("realms", realm, "catalogs", catalog, "tree", name, { q: text }))} />
      <label class="search-field"><span class="hidden">Search tables, views and namespaces</span><span class="field"><${Icon} name="search" />
        <input ref=${field} type="search" value=${text} placeholder="Search tables, views and namespaces" spellcheck=${false} dir="auto"
          onInput=${(event) => write(event.target.value, match)}
          onKeyDown=${(event) => {
            if (event.key === "Escape" && text) write("", match);
            else if (event.key === "ArrowDown") document.querySelector(".long-list")?.focus();
            else return;
            event.preventDefault();
          }} /><kbd>/</kbd></span></label>
      <label class="inline-check"><input type="checkbox" checked=${match === "prefix"} onChange=${(event) => write(text, event.target.checked ? "prefix" : "substring")} />Begins with</label>
    </div>
    ${text.trim()
      ? html`<${Hits} realm=${realm} catalog=${catalog} reference=${reference} q=${text.trim()} match=${match} />`
      : html`<${Branches} key=${reference} realm=${realm} catalog=${catalog} reference=${reference} />`}`;
}

const keyLink = (realm, catalog, reference, entry) => link("realms", realm, "catalogs", catalog, "table", reference, entry.name);

/** What a search finds. It goes on by itself until a screen is full; the newest question alone is answered. */
function Hits({ realm, catalog, reference, q, match }) {
  const [asked, setAsked] = useState(q);
  useEffect(() => {
    const timer = window.setTimeout(() => setAsked(q), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [q]);
  const looked = useRef(0);
  const key = `${reference}\n${match}\n${asked}`;
  const pages = usePages(
    key,
    async (pageToken, signal) => {
      const answer = await get(catalogPath(realm, catalog, "references", reference, "search"), { q: asked, match, pageToken, pageSize: PAGE }, signal);
      looked.current = (pageToken ? looked.current : 0) + (answer.looked ?? 0);
      await pause(0, signal);
      return answer;
    },
    (answer) => answer.entries,
    { patience: 100 },
  );
  const [active, setActive] = useState(-1);
  useEffect(() => setActive(-1), [key]);
  const { items, isLoading, isOver, error, last } = pages;
  const open = (at) => items[at] && go(keyLink(realm, catalog, reference, items[at]));
  const onKeyDown = (event) => moveIn(event, active, items.length, setActive, () => open(active));
  const state = asked !== q || isLoading ? "Searching" : isOver ? "" : items.length ? "There is more: scroll down" : "";
  return html`<p class="hint" role="status" aria-live="polite">
      ${(asked !== q || isLoading) && html`<${Spinner} label="Searching" /> `}${count(items.length)}${isOver ? "" : "+"} found
      ${match === "substring" && looked.current ? `, ${count(looked.current)}${last?.total ? ` of ${count(last.total)}` : ""} names looked at` : ""}${state && !isLoading ? ` · ${state}` : ""}
    </p>
    ${error && html`<${Failure} error=${error} retry=${pages.retry} />`}
    ${!items.length && !isOver && !isLoading && !error && html`<div class="more"><button type="button" class="button" onClick=${pages.more}>Search on</button></div>`}
    ${!items.length && isOver && html`<${Empty} title="Nothing has such a name">${match === "prefix" ? "Names are compared from their beginning, with upper and lower case. Without “Begins with” the text may stand anywhere." : "The text may stand anywhere in a dotted name, in upper or lower case."}<//>`}
    ${items.length > 0 && html`<${LongList} size=${items.length} rowHeight=${ROW_HEIGHT} active=${active} onEnd=${pages.more}
      role="listbox" aria-label="What was found" tabindex="0" aria-activedescendant=${active >= 0 ? `hit-${active}` : null} onKeyDown=${onKeyDown}
      draw=${(at) => html`<a key=${items[at].name} id=${`hit-${at}`} role="option" aria-selected=${at === active} aria-posinset=${at + 1} aria-setsize=${isOver ? items.length : -1}
        tabindex="-1" class=${`list-row ${at === active ? "active" : ""}`} href=${keyLink(realm, catalog, reference, items[at])}>
        <${Icon} name=${ICONS[items[at].type] ?? "file"} label=${KINDS[items[at].type]} /><${Marked} text=${items[at].name} q=${asked} /></a>`} />`}`;
}

function Marked({ text, q }) {
  const low = text.toLowerCase();
  const at = low.indexOf(q.toLowerCase());
  if (at < 0 || low.length !== text.length) return html`<bdi class="name">${text}</bdi>`;
  return html`<bdi class="name">${text.slice(0, at)}<mark>${text.slice(at, at + q.length)}</mark>${text.slice(at + q.length)}</bdi>`;
}

/** The tree: the rows in sight of a flat list of all that is open. */
function Branches({ realm, catalog, reference }) {
  const [folders, setFolders] = useState(byName());
  const setFolder = (name, change) => setFolders((now) => byName({ ...now, [name]: { ...now[name], ...change } }));
  const [active, setActive] = useState(0);
  const stopper = useRef(null);
  if (!stopper.current) stopper.current = new AbortController();
  useEffect(() => () => stopper.current.abort(), []);
  const top = useResource(`entries ${realm} ${catalog} ${reference}`, (signal) => page("", undefined, signal));

  function page(parent, pageToken, signal) {
    return get(catalogPath(realm, catalog, "references", reference, "entries"), { parent, pageToken, pageSize: PAGE }, signal);
  }
  useEffect(() => {
    if (top.data) setFolder("", { entries: top.data.entries, token: top.data.nextPageToken, isOpen: true });
  }, [top.data]);

  const load = async (name) => {
    const before = folders[name] ?? { entries: [], token: undefined };
    if (before.isLoading) return;
    setFolder(name, { ...before, isOpen: true, isLoading: true, error: null });
    try {
      let [answer, entries] = [null, before.entries];
      do {
        answer = await page(name, answer?.nextPageToken ?? before.token ?? undefined, stopper.current.signal);
        entries = [...entries, ...answer.entries];
      } while (answer.nextPageToken && entries.length === before.entries.length);
      setFolder(name, { entries, token: answer.nextPageToken, isLoading: false });
    } catch (error) {
      if (!stopper.current.signal.aborted) setFolder(name, { isLoading: false, error });
    }
  };
  const toggle = (name) => {
    const folder = folders[name];
    if (!folder || folder.error) load(name);
    else setFolder(name, { isOpen: !folder.isOpen });
  };
  const rows = useMemo(() => flat(folders), [folders]);
  const row = rows[Math.min(active, rows.length - 1)];
  const open = () => {
    if (!row?.entry) return row?.folder !== undefined && load(row.folder);
    return row.entry.type === "NAMESPACE" ? toggle(row.entry.name) : go(keyLink(realm, catalog, reference, row.entry));
  };
  const onKeyDown = (event) => {
    const isFolder = row?.entry?.type === "NAMESPACE";
    const isOpen = isFolder && folders[row.entry.name]?.isOpen;
    if (event.key === "ArrowRight" && isFolder) {
      if (!isOpen) toggle(row.entry.name);
      else setActive(Math.min(active + 1, rows.length - 1));
    } else if (event.key === "ArrowLeft" && row) {
      if (isOpen) toggle(row.entry.name);
      else if (row.parent >= 0) setActive(row.parent);
    } else {
      moveIn(event, active, rows.length, setActive, open);
      return;
    }
    event.preventDefault();
  };
  if (top.data === undefined && top.error) return html`<${Failure} error=${top.error} retry=${top.reload} />`;
  if (!folders[""]) return html`<div class="waiting"><${Spinner} /></div>`;
  if (!rows.length) return html`<${Empty} title="Nothing stands here yet">Tables that engines create on this reference appear here.<//>`;
  return html`<${LongList} size=${rows.length} rowHeight=${ROW_HEIGHT} active=${active}
    role="tree" aria-label="Namespaces and tables" tabindex="0" aria-activedescendant=${`node-${rows.indexOf(row)}`} onKeyDown=${onKeyDown}
    draw=${(at) => html`<${Node} key=${rows[at].id} row=${rows[at]} at=${at} isActive=${rows[at] === row} folders=${folders}
      href=${rows[at].entry && keyLink(realm, catalog, reference, rows[at].entry)} onSeen=${() => rows[at].folder !== undefined && !folders[rows[at].folder].error && load(rows[at].folder)}
      onToggle=${() => {
        setActive(at);
        if (rows[at].entry) toggle(rows[at].entry.name);
        else load(rows[at].folder);
      }} />`} />`;
}

/** [{id, entry, level, parent}], and {folder} where more of a namespace is to be loaded */
function flat(folders) {
  const rows = [];
  const walk = (name, level, parent) => {
    const folder = folders[name];
    for (const entry of folder.entries) {
      const at = rows.push({ id: entry.name, entry, level, parent }) - 1;
      if (entry.type === "NAMESPACE" && folders[entry.name]?.isOpen) walk(entry.name, level + 1, at);
    }
    if (folder.token || folder.isLoading || folder.error) rows.push({ id: `${name} …`, folder: name, level, parent });
    else if (!folder.entries.length && name) rows.push({ id: `${name} –`, note: "empty", level, parent });
  };
  if (folders[""]) walk("", 1, -1);
  return rows;
}

function Node({ row: { entry, folder, note, level }, at, isActive, folders, href, onToggle, onSeen }) {
  const indent = { paddingInlineStart: `${(Math.min(level, 12) - 1) * 18 + 8}px` };
  const more = { id: `node-${at}`, role: "treeitem", "aria-level": level, "aria-selected": isActive, class: `list-row ${isActive ? "active" : ""}`, style: indent };
  useEffect(() => {
    if (folder !== undefined) onSeen();
  }, [folder, folders]);
  if (note) return html`<div ...${more} class="list-row quiet">${note}</div>`;
  if (!entry) {
    const { error } = folders[folder];
    return html`<div ...${more} onClick=${onToggle}>${error ? html`<${Icon} name="warning" /><span class="name">${error.message} Click to try again.</span>` : html`<${Spinner} /><span class="quiet">loading more</span>`}</div>`;
  }
  if (entry.type !== "NAMESPACE") {
    return html`<a ...${more} tabindex="-1" href=${href}><span class="twist"></span><${Icon} name=${ICONS[entry.type] ?? "file"} label=${KINDS[entry.type]} /><bdi class="name" title=${entry.name}>${entry.key.at(-1)}</bdi></a>`;
  }
  const isOpen = Boolean(folders[entry.name]?.isOpen);
  return html`<div ...${more} aria-expanded=${isOpen} onClick=${onToggle}>
    <span class=${`twist ${isOpen ? "open" : ""}`}><${Icon} name="chevron" /></span><${Icon} name="folder" label="namespace" /><bdi class="name" title=${entry.name}>${entry.key.at(-1)}</bdi>
    <a class="row-action" tabindex="-1" href=${href} onClick=${(event) => event.stopPropagation()}>properties</a>
  </div>`;
}

function moveIn(event, active, size, setActive, open) {
  const target = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: size - 1, PageDown: active + 15, PageUp: active - 15 }[event.key];
  if (target !== undefined) setActive(Math.max(0, Math.min(size - 1, target)));
  else if (event.key === "Enter" || event.key === " ") open();
  else return;
  event.preventDefault();
}
