// The commits of a catalog as a graph: of all its branches, or of those that are chosen.

import { html, useMemo, useRef } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { usePages } from "../resource.js";
import { go, link } from "../router.js";
import { layCommits, noLanes } from "../lanes.js";
import { Empty, Failure, Id, Person, plural, Spinner, Tag, Time } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { RefPicker, useReferences } from "../parts/refpicker.js";
import { LongList } from "../parts/rows.js";

const [ROW_HEIGHT, LANE, MOST_LANES, COLOURS] = [48, 14, 16, 6];

export function Commits({ realm, catalog, reference, query }) {
  const all = useReferences(realm, catalog);
  const isWhole = reference === "-" && query.only !== "default";
  const ref = isWhole ? [] : [reference === "-" ? all.default : reference];
  const pages = usePages(
    isWhole || ref[0] ? `graph ${realm} ${catalog} ${ref}` : null,
    (pageToken, signal) => get(catalogPath(realm, catalog, "graph"), { ref, pageToken, pageSize: 100 }, signal),
    (answer) => answer.commits,
  );
  const base = ["realms", realm, "catalogs", catalog];
  return html`<${Heading} title="Commits" icon="branch" />
    <div class="tools">
      <div class="choices" role="group" aria-label="Which commits">
        <a class="choice" aria-current=${isWhole ? "true" : null} href=${link(...base, "commits")}>All branches</a>
        <a class="choice" aria-current=${isWhole ? null : "true"} href=${link(...base, "commits", "-", { only: "default" })}>One reference</a>
      </div>
      ${!isWhole && html`<${RefPicker} isInline label="Reference" value=${ref[0]} references=${all.references} onChosen=${(name) => go(link(...base, "commits", name))} />`}
    </div>
    ${pages.first?.referencesCut && html`<p class="hint">There are more branches than the graph shows: choose one to see it.</p>`}
    <${Graph} pages=${pages} base=${base} />`;
}

function Graph({ pages, base }) {
  const rows = useLanes(pages.items);
  const heads = useMemo(() => {
    const byHash = new Map();
    for (const ref of pages.first?.references ?? []) byHash.set(ref.head, [...(byHash.get(ref.head) ?? []), ref]);
    return byHash;
  }, [pages.first]);
  const width = Math.min(MOST_LANES, Math.max(1, ...rows.slice(-400).map((row) => row.width))) * LANE + 10;
  if (pages.error && !pages.items.length) return html`<${Failure} error=${pages.error} retry=${pages.reload} />`;
  if (pages.isLoading && !pages.items.length) return html`<div class="waiting"><${Spinner} label="Loading commits" /></div>`;
  if (!pages.items.length) return html`<${Empty} title="No commit that you may see">Every change to a table is a commit of its branch.<//>`;
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("[data-at]");
    if (!step || !row) return;
    event.preventDefault();
    event.currentTarget.querySelector(`[data-at="${Number(row.dataset.at) + step}"] a`)?.focus();
  };
  return html`<${LongList} size=${pages.items.length} rowHeight=${ROW_HEIGHT} onEnd=${pages.more} role="list" aria-label="Commits, newest first" tabindex="0" onKeyDown=${onKeyDown}
      draw=${(at) => html`<${Row} key=${pages.items[at].hash} at=${at} commit=${pages.items[at]} lanes=${rows[at]} width=${width} refs=${heads.get(pages.items[at].hash) ?? []} base=${base} />`}>
      ${pages.isLoading && html`<div class="more"><${Spinner} label="Loading older commits" /></div>`}
    <//>
    ${pages.error && html`<${Failure} error=${pages.error} retry=${pages.retry} />`}`;
}

/** Rows of lanes; those that were laid stay as they are when a page is added. */
function useLanes(commits) {
  const kept = useRef({ commits: [], rows: [], open: noLanes() });
  return useMemo(() => {
    const before = kept.current;
    const isLonger = before.commits.length && commits.length >= before.commits.length && commits[0] === before.commits[0];
    const from = isLonger ? before : { commits: [], rows: [], open: noLanes() };
    const [added, open] = layCommits(commits.slice(from.commits.length), from.open);
    kept.current = { commits, rows: [...from.rows, ...added], open };
    return kept.current.rows;
  }, [commits]);
}

function Row({ at, commit, lanes, width, refs, base }) {
  const through = refs[0]?.name ?? "-";
  const message = commit.hidden ? html`<i class="quiet">changed something that you may not see</i>` : commit.message || "(no message)";
  return html`<div class="commit-row" role="listitem" data-at=${at} style=${{ height: `${ROW_HEIGHT}px` }}>
    <${Lanes} row=${lanes} width=${width} isMerge=${commit.parents.length > 1} />
    <div class="commit-text">
      <p class="commit-title"><a dir="auto" href=${link(...base, "commit", "@", commit.hash)}>${message}</a>
        ${refs.map((ref) => html` <a class="ref-tag" href=${link(...base, "commits", ref.name)}><${Tag} tone=${ref.isDefault ? "good" : ref.kind === "tag" ? "warn" : "busy"}><bdi>${ref.name}</bdi><//></a>`)}</p>
      <p class="commit-note"><${Person} of=${commit} /> · <${Time} at=${commit.time} /> · ${plural(commit.changes, "change")}${commit.parents.length > 1 ? " · merge" : ""}</p>
    </div>
    <${Id} value=${commit.hash} length=${10} />
  </div>`;
}

function Lanes({ row, width, isMerge }) {
  const x = (lane) => Math.min(lane, MOST_LANES - 1) * LANE + 12;
  const middle = ROW_HEIGHT / 2;
  const line = ([from, to], top, end, colour) => html`<path class=${`lane lane-${colour % COLOURS}`} d=${from === to
    ? `M${x(from)} ${top}V${end}` : `M${x(from)} ${top}C${x(from)} ${(top + end) / 2} ${x(to)} ${(top + end) / 2} ${x(to)} ${end}`} />`;
  return html`<svg class="lanes" width=${width} height=${ROW_HEIGHT} aria-hidden="true">
    ${row.before.map((edge) => line(edge, 0, middle, edge[0]))}
    ${row.after.map((edge) => line(edge, middle, ROW_HEIGHT, Math.max(edge[0], edge[1])))}
    <circle class=${`lane-dot lane-${row.lane % COLOURS} ${isMerge ? "merge" : ""}`} cx=${x(row.lane)} cy=${middle} r=${isMerge ? 4 : 5} />
  </svg>`;
}
