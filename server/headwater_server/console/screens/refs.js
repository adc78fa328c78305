// Branches and tags: where they are, how they stand to the default branch, and what can be done with them.

import { html, useState } from "../ui.js";
import { catalogPath, get, post, put, remove } from "../api.js";
import { usePages } from "../resource.js";
import { link } from "../router.js";
import { Icon, Id, plural, State, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { PagedTable } from "../parts/rows.js";

const KINDS = [["", "All"], ["branch", "Branches"], ["tag", "Tags"], ["deleted", "Deleted"]];

export function References({ realm, catalog, may }) {
  const [kind, setKind] = useState("");
  const [asked, ask] = useState(null);
  const base = ["realms", realm, "catalogs", catalog];
  const isGone = kind === "deleted";
  const where = catalogPath(realm, catalog, "references");
  const pages = usePages(
    `references ${realm} ${catalog} ${kind}`,
    (pageToken, signal) => get(where, { pageToken, kind: isGone ? "" : kind, deleted: isGone ? "true" : "" }, signal),
    (answer) => answer.references,
  );
  const done = (text) => {
    notify(text);
    pages.reload();
  };
  const columns = [
    { title: "Name", isWide: true, of: (ref) => html`<span class="ref-name"><${Icon} name=${ref.kind === "tag" ? "tag" : "branch"} label=${ref.kind} />
      ${isGone ? html`<bdi>${ref.name}</bdi>` : html`<a class="strong" dir="auto" href=${link(...base, "tree", ref.name)}>${ref.name}</a>`}${ref.isDefault && html`<${Tag} tone="good">default<//>`}</span>` },
    { title: "Last commit", isWide: true, of: (ref) => (ref.lastCommit
      ? html`<a class="one-line" dir="auto" href=${link(...base, "commit", ref.name, ref.lastCommit.hash)}>${ref.lastCommit.hidden ? "hidden" : ref.lastCommit.message || "(no message)"}</a>` : html`<span class="quiet">–</span>`) },
    { title: "When", of: (ref) => html`<${Time} at=${isGone ? ref.deletedAt : ref.lastCommit?.time} />` },
    { title: "Head", of: (ref) => html`<${Id} value=${ref.head} length=${10} href=${ref.head && !isGone ? link(...base, "commits", ref.name) : undefined} />` },
    { title: "To the default", of: (ref) => (ref.ahead == null ? html`<span class="quiet">–</span>`
      : html`<a href=${link(...base, "compare", { before: pages.items.find((each) => each.isDefault)?.name, after: ref.name })} title="Compare">${ref.ahead} ahead, ${ref.behind} behind</a>`) },
    { title: "", of: (ref) => html`<span class="row-buttons">
      ${!isGone && !ref.isDefault && ref.kind === "branch" && may.writeTables && html`<a class="button small" href=${link(...base, "merge", { source: ref.name })}>Merge</a>`}
      ${isGone && html`<button type="button" class="button small" onClick=${() => ask({ act: "undelete", ref })}>Undelete</button>`}
      ${!isGone && may.assignReference && html`<button type="button" class="button small" onClick=${() => ask({ act: "assign", ref })}>Move</button>`}
      ${!isGone && may.dropReference && !ref.isDefault && html`<button type="button" class="button small" onClick=${() => ask({ act: "drop", ref })}>Delete</button>`}
    </span>` },
  ];
  return html`<${Heading} title="Branches and tags" icon="branch">
      ${may.createReference && html`<button type="button" class="button primary" onClick=${() => ask({ act: "create" })}>New branch or tag</button>`}
    <//>
    <div class="choices" role="group" aria-label="Which references">${KINDS.map(([name, title]) => html`<button type="button" aria-pressed=${kind === name} onClick=${() => setKind(name)}>${title}</button>`)}</div>
    <${PagedTable} of=${pages} label="Branches and tags" keyOf=${(ref) => `${ref.kind} ${ref.name}`} columns=${columns} empty=${isGone ? "Nothing that you could undelete" : "No branch or tag that you may see"} />
    ${asked?.act === "create" && html`<${NewReference} where=${where} sources=${pages.items} onClose=${() => ask(null)} onDone=${done} />`}
    ${asked?.act === "assign" && html`<${Move} where=${where} reference=${asked.ref} onClose=${() => ask(null)} onDone=${done} />`}
    ${asked?.act === "drop" && html`<${Ask} title=${`Delete ${asked.ref.name}`} verb=${`Delete the ${asked.ref.kind}`} isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(`${where}/${encodeURIComponent(asked.ref.name)}`, { expected: asked.ref.head });
      done(`${asked.ref.name} was deleted; until its grace is over it can be undeleted`);
    }}><p>The ${asked.ref.kind} <b dir="auto">${asked.ref.name}</b> goes${asked.ref.ahead ? html`, with <b>${plural(asked.ref.ahead, "commit")}</b> that the default branch does not have` : ""}. It can be undeleted until its grace is over.</p><//>`}
    ${asked?.act === "undelete" && html`<${Ask} title=${`Undelete ${asked.ref.name}`} verb="Undelete" onClose=${() => ask(null)} act=${async () => {
      await post(`${where}/${encodeURIComponent(asked.ref.name)}/undelete`, null, { kind: asked.ref.kind });
      done(`${asked.ref.name} is back`);
    }}><p>It comes back at <code>${asked.ref.head ?? "no commit"}</code>.</p><//>`}`;
}

function NewReference({ where, sources, onClose, onDone }) {
  const [wish, setWish] = useState({ name: "", kind: "branch", source: sources.find((each) => each.isDefault)?.name ?? "-" });
  return html`<${Ask} title="New branch or tag" verb="Create" onClose=${onClose} act=${async () => {
    await post(where, wish);
    onDone(`${wish.name} was created`);
  }}>
    <div class="choices" role="group" aria-label="What to create">${["branch", "tag"].map((kind) => html`<button type="button" aria-pressed=${wish.kind === kind} onClick=${() => setWish({ ...wish, kind })}>${kind}</button>`)}</div>
    <label>Name<input value=${wish.name} required spellcheck=${false} onInput=${(event) => setWish({ ...wish, name: event.target.value })} /></label>
    <label>From<input value=${wish.source} required spellcheck=${false} list="sources" onInput=${(event) => setWish({ ...wish, source: event.target.value })} /></label>
    <datalist id="sources">${sources.map((each) => html`<option value=${each.name} />`)}</datalist>
  <//>`;
}

function Move({ where, reference, onClose, onDone }) {
  const [target, setTarget] = useState("");
  return html`<${Ask} title=${`Move ${reference.name}`} verb="Move it" isDangerous onClose=${onClose} act=${async () => {
    await put(`${where}/${encodeURIComponent(reference.name)}`, { target, expected: reference.head });
    onDone(`${reference.name} was moved`);
  }}>
    <p>Commits that only this ${reference.kind} has are no longer in any history, and are collected later. <${State} of="from" /> <code>${reference.head ?? "no commit"}</code></p>
    <label>To<input value=${target} required spellcheck=${false} placeholder="dev, dev~2, @hash" onInput=${(event) => setTarget(event.target.value)} /></label>
  <//>`;
}
