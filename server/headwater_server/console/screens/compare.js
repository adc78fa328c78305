// What differs between two references, key by key.

import { byName, html } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { usePages } from "../resource.js";
import { go, hereWith, link } from "../router.js";
import { count, Empty, Icon, Id, State } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { RefPicker, useReferences } from "../parts/refpicker.js";
import { PagedTable } from "../parts/rows.js";

const GAPS = byName({
  NO_COMMON_ANCESTOR: "the two have no common ancestor that is still known, so that a merge needs a base.",
  TOO_MANY_CHANGES: "there are too many changes since their common ancestor. The merge page shows it before anything is written.",
  HIDDEN_CONTENTS: "you may not list everything in both.",
});

export function Compare({ realm, catalog, query, may }) {
  const all = useReferences(realm, catalog);
  const before = query.before ?? all.default;
  const after = query.after ?? "";
  const base = ["realms", realm, "catalogs", catalog];
  const isAsked = before && after;
  const pages = usePages(
    isAsked ? `diff ${realm} ${catalog} ${before} ${after}` : null,
    (pageToken, signal) => get(catalogPath(realm, catalog, "diff"), { before, after, details: "true", merge: "true", pageToken }, signal),
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
          ...(pages.last?.mergeGap ? [] : [{ title: `Merging ${after} into ${before}`, of: (each) => html`<${MergeEffect} of=${each.merge} into=${before} />` }]),
        ]} />
        ${GAPS[pages.last?.mergeGap] && html`<p class="hint">What merging ${after} into ${before} would do is not shown: ${GAPS[pages.last.mergeGap]}</p>`}`
      : html`<${Empty} title="Choose two references">Branches, tags, or commits as name@hash and name~2.<//>`}`;
}

/** What a merge would do to a key of the branch that it changes. */
function MergeEffect({ of: effect, into }) {
  if (!effect) return "–";
  if (effect === "CONFLICT") return html`<${State} of="CONFLICT" tone="bad" />`;
  return effect === "PUT" ? "brings it" : effect === "REMOVED" ? "removes it" : html`<span class="quiet">leaves it as it is on ${into}</span>`;
}

/** What stands at a key on one side. */
export function Side({ of: entry }) {
  if (!entry) return html`<span class="quiet">not there</span>`;
  const kind = entry.type.replaceAll("_", " ").toLowerCase();
  return html`<span class="side"><${Icon} name=${entry.type === "NAMESPACE" ? "folder" : "table"} label=${kind} />
    ${entry.snapshotId ? html`<span>snapshot <${Id} value=${entry.snapshotId} length=${12} /></span>` : html`<span>${kind}</span>`}
    ${entry.schemaId != null && html`<span class="quiet small">schema ${entry.schemaId}</span>`}</span>`;
}
