// Tables and long lists. The arrows go from row to row; of a long list only the rows in sight are in the page.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../ui.js";
import { Empty, Failure, Spinner } from "./base.js";

/** The focus goes to the link of the row above or below. */
export function byArrows(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || event.target.closest("input,select,textarea")) return;
  const rows = [...event.currentTarget.querySelectorAll("[data-row]")];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const target = rows[at + step]?.querySelector("a,button,[tabindex='0']");
  if (target) {
    event.preventDefault();
    target.focus();
  }
}

/** columns: [{title, of: (row) => what is shown, isNumber, isWide}]; rows with a key of their own */
export function Table({ label, columns, rows, keyOf, empty = "Nothing here" }) {
  if (!rows.length) return html`<${Empty} title=${empty} />`;
  return html`<div class="table-frame" tabindex="-1" onKeyDown=${byArrows}>
    <table aria-label=${label}>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.isNumber ? "number" : ""}>${column.title || html`<span class="hidden">${column.isNumber ? "Value" : "Actions"}</span>`}</th>`)}</tr></thead>
      <tbody>
        ${rows.map(
          (row, at) => html`<tr key=${keyOf ? keyOf(row) : at} data-row>
            ${columns.map((column) => html`<td class=${`${column.isNumber ? "number" : ""} ${column.isWide ? "wide" : ""}`}>${column.of(row)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** A table of a list that comes in pages. */
export function PagedTable({ of: pages, ...table }) {
  if (pages.error && !pages.items.length) return html`<${Failure} error=${pages.error} retry=${pages.retry} />`;
  if (pages.isLoading && !pages.items.length) return html`<div class="waiting"><${Spinner} /></div>`;
  const isUnknown = !pages.items.length && !pages.isOver;
  return html`${isUnknown ? html`<p class="hint">Nothing was found so far.</p>` : html`<${Table} ...${table} rows=${pages.items} />`}<${More} of=${pages} />`;
}

export function More({ of: pages }) {
  if (pages.error) return html`<${Failure} error=${pages.error} retry=${pages.retry} />`;
  if (pages.isOver) return null;
  return html`<div class="more"><button type="button" class="button" disabled=${pages.isLoading} onClick=${pages.more}>
    ${pages.isLoading ? html`<${Spinner} /> Loading` : "Show more"}
  </button></div>`;
}

/**
 * A long list of rows of one height. onEnd is called when its end comes into sight.
 *
 * draw     (at) => the row's picture
 */
export function LongList({ size, rowHeight, draw, onEnd, active = -1, children, ...more }) {
  const frame = useRef(null);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const look = () => {
    const { scrollTop, clientHeight } = frame.current;
    setSeen((before) => (before.top === scrollTop && before.height === clientHeight ? before : { top: scrollTop, height: clientHeight }));
  };
  useLayoutEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(seen.top / rowHeight) - 8);
  const last = Math.min(size, Math.ceil((seen.top + seen.height) / rowHeight) + 8);
  useEffect(() => {
    if (last >= size) onEnd?.();
  });
  useEffect(() => {
    if (active < 0) return;
    const { scrollTop, clientHeight } = frame.current;
    if (active * rowHeight < scrollTop) frame.current.scrollTop = active * rowHeight;
    else if ((active + 1) * rowHeight > scrollTop + clientHeight) frame.current.scrollTop = (active + 1) * rowHeight - clientHeight;
  }, [active]);
  const rows = [];
  for (let at = first; at < last; at += 1) rows.push(draw(at));
  return html`<div ref=${frame} class="long-list" onScroll=${look} ...${more}>
    <div class="long-list-room" role="presentation" style=${{ height: `${size * rowHeight}px` }}>
      <div class="long-list-rows" role="presentation" style=${{ transform: `translateY(${first * rowHeight}px)` }}>${rows}</div>
    </div>
    ${children}
  </div>`;
}
