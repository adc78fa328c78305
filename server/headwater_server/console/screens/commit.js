// One commit: who made it, when, and every key that it changed.

import { html } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { usePages } from "../resource.js";
import { link } from "../router.js";
import { Facts, Failure, Id, plural, Spinner, State, Time } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { PagedTable } from "../parts/rows.js";

export function CommitScreen({ realm, catalog, reference, hash }) {
  const through = reference === "@" ? `@${hash}` : reference;
  const where = catalogPath(realm, catalog, "references", through, "commits", hash);
  const pages = usePages(`commit ${where}`, (pageToken, signal) => get(where, { pageToken }, signal), (answer) => answer.operations);
  const base = ["realms", realm, "catalogs", catalog];
  const commit = pages.first?.commit;
  if (pages.error && !commit) return html`<${Heading} title=${hash} /><${Failure} error=${pages.error} retry=${pages.reload} />`;
  if (!commit) return html`<div class="waiting"><${Spinner} label="Loading the commit" /></div>`;
  const other = (value) => html`<${Id} value=${value} href=${link(...base, "commit", "@", value)} />`;
  return html`<${Heading} title=${commit.hidden ? "A commit with changes that you may not see" : commit.message || "(no message)"}>
      <a class="button" href=${link(...base, "tree", `@${hash}`)}>Browse at this commit</a>
      ${commit.parent && html`<a class="button" href=${link(...base, "compare", { before: `@${commit.parent}`, after: `@${hash}` })}>Compare with its parent</a>`}
    <//>
    <${Facts} of=${[
      ["Hash", html`<${Id} value=${commit.hash} />`],
      ["Parent", commit.parent && other(commit.parent)],
      ["Merged", commit.merged.length > 0 && commit.merged.map(other)],
      ["When", html`<${Time} at=${commit.time} isLong />`],
      ["Committed by", commit.committer ? html`<bdi>${commit.committer}</bdi>` : "unknown"],
      ["Authors, as the request named them", commit.authors.length > 0 && html`<bdi>${commit.authors.join(", ")}</bdi>`],
      ["Number", commit.seq],
      ...Object.entries(commit.properties ?? {}).map(([name, values]) => [html`Property <bdi>${name}</bdi>`, html`<bdi>${values.join(", ")}</bdi>`]),
    ]} />
    <h2>${plural(commit.changes, "change")}</h2>
    <${PagedTable} of=${pages} label="Changes" keyOf=${(each) => `${each.action} ${each.name}`} empty="It changed nothing that you may see" columns=${[
      { title: "What", of: (each) => html`<${State} of=${each.action} />` },
      { title: "Key", isWide: true, of: (each) => (each.action === "PUT" ? html`<a dir="auto" href=${link(...base, "table", `@${hash}`, each.name)}>${each.name}</a>` : html`<bdi>${each.name}</bdi>`) },
      { title: "Type", of: (each) => (each.type ? each.type.replaceAll("_", " ").toLowerCase() : "–") },
      { title: "Content id", of: (each) => html`<${Id} value=${each.contentId} length=${8} />` },
    ]} />`;
}
