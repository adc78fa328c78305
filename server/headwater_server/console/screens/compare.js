// What differs between two references, key by key.

import { html } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { usePages } from "../resource.js";
import { go, hereWith, link } from "../router.js";
import { count, Empty, Icon, Id, State } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { RefPicker, useReferences } from "../parts/refpicker.js";
import { PagedTable } from "../parts/rows.js";

export function Compare({ realm, catalog, query, may }) {
  const all = useReferences(realm, catalog);
  const before = query.before ?? all.default;
  const after = query.after ?? "";
  const base = ["realms", realm, "catalogs", catalog];
  const isAsked = before && after;
  const pages = usePages(
    isAsked ? `diff ${realm} ${catalog} ${before} ${after}` : null,
    (pageToken, signal) => get(catalogPath(realm, catalog, "diff"), { before, after, details: "true", pageToken }, signal),
    (answer) => answer.differences,
  );
  return html`<${Heading} title="Compare">
      ${isAsked && may.writeTables && html`<a class="button primary" href=${link(...base, "merge", { source: after, into: before })}>Merge ${after} into ${before}</a>`}
    <//>
    <div class="tools">
      <${RefPicker} label="Before" value=${before} references=${all.references} onChosen=${(name) => go(hereWith({ before: name }))} />
      <button type="button" class="button swap" aria-label="Swap both sides" title="Swap both sides" disabled=${!isAsked} onClick=${() => go(hereWith({ before: after, after: before }))}>⇄</button>
      <${RefPicker} label="After" value=${after} references=${all.references} onChosen=${(name) => go(hereWith({ after: name }))} />
    </div>
    ${isAsked
      ? html`<p class="hint" role="status">${pages.isLoading ? "Comparing…" : pages.error ? "" : `${count(pages.items.length)}${pages.isOver ? "" : "+"} differences`}</p>
        <${PagedTable} of=${pages} label="Differences" keyOf=${(each) => each.name} empty="Both have the same contents" columns=${[
          { title: "Change", of: (each) => html`<${State} of=${each.renamedTo || each.renamedFrom ? "RENAMED" : each.change} />` },
          { title: "Key", isWide: true, of: (each) => html`<a dir="auto" href=${link(...base, "table", each.after ? after : before, each.name)}>${each.name}</a>
            ${each.renamedTo && html`<span class="quiet small">is now <bdi>${each.renamedTo}</bdi></span>`}${each.renamedFrom && html`<span class="quiet small">was <bdi>${each.renamedFrom}</bdi></span>`}` },
          { title: "Before", of: (each) => html`<${Side} of=${each.before} />` },
          { title: "After", of: (each) => html`<${Side} of=${each.after} />` },
        ]} />`
      : html`<${Empty} title="Choose two references">Branches, tags, or commits as name@hash and name~2.<//>`}`;
}

/** What stands at a key on one side. */
export function Side({ of: entry }) {
  if (!entry) return html`<span class="quiet">not there</span>`;
  const kind = entry.type.replaceAll("_", " ").toLowerCase();
  return html`<span class="side"><${Icon} name=${entry.type === "NAMESPACE" ? "folder" : "table"} label=${kind} />
    ${entry.snapshotId ? html`<span>snapshot <${Id} value=${entry.snapshotId} length=${12} /></span>` : html`<span>${kind}</span>`}
    ${entry.schemaId != null && html`<span class="quiet small">schema ${entry.schemaId}</span>`}</span>`;
}
