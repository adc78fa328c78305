// Files that nobody refers to: what the last report counted, which they are, and why one file is, or is not, one of them.

import { html } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { go, hereWith } from "../router.js";
import { bytes, count, Empty, Facts, Icon, Shown, Tag, Time } from "../parts/base.js";
import { TextField } from "../parts/fields.js";
import { Heading } from "../parts/layout.js";
import { PagedTable, Table } from "../parts/rows.js";

export function UnusedFiles({ realm, catalog, query }) {
  const where = catalogPath(realm, catalog, "files");
  const report = useResource(`report ${where}`, (signal) => get(`${where}/report`, {}, signal));
  return html`<${Heading} title="Unused files" icon="file" note="Files in the places of the catalog that no snapshot of any branch refers to." />
    <form class="tools" onSubmit=${(event) => {
      event.preventDefault();
      go(hereWith({ url: new FormData(event.currentTarget).get("url").trim() }));
    }}>
      <label class="grow">Why is this file here?<span class="field"><${Icon} name="search" /><${TextField} name="url" type="search" value=${query.url ?? ""} placeholder="s3://bucket/table/data/file.parquet" spellcheck=${false} /></span></label>
      <button class="button">Explain</button>
    </form>
    ${query.url && html`<${Explained} where=${where} url=${query.url} />`}
    ${report.error?.status === 404
      ? html`<${Empty} title="No report yet">${report.error.message}<//>`
      : html`<${Shown} of=${report} label="Loading the report">${(data) => html`<${Report} ...${{ data, where, query }} />`}<//>`}`;
}

function Explained({ where, url }) {
  const answer = useResource(`explain ${where} ${url}`, (signal) => get(`${where}/explain`, { url }, signal));
  return html`<section class="card" aria-label="Explanation"><${Shown} of=${answer} label="Looking for whoever refers to it">${(data) => html`
    <p class="verdict"><${Tag} tone=${data.exists ? "good" : "warn"}>${data.exists ? "the file is there" : "no such file"}<//> <b>${data.code}</b></p>
    <p>${data.why}</p>
    <${Facts} of=${[
      ["URL", html`<code class="long">${data.url}</code>`],
      ["Table", data.table && html`<bdi>${data.table}</bdi>`],
      ["Place", data.place && html`<code class="long">${data.place}</code>`],
      ["Since", data.since && html`<${Time} at=${data.since} isLong />`],
      ["Due", data.due && html`<${Time} at=${data.due} isLong />`],
      ["Referred to by", data.referrers?.length > 0 && html`<ul>${data.referrers.map((each) => html`<li><bdi>${typeof each === "string" ? each : Object.values(each).filter(Boolean).join(" · ")}</bdi></li>`)}</ul>`],
    ]} />`}<//></section>`;
}

function Report({ data, where, query }) {
  const kinds = Object.entries(data.files ?? {});
  const code = query.code ?? "";
  const pages = usePages(`files ${where} ${data.report} ${code}`, (pageToken, signal) => get(where, { code, pageToken }, signal), (answer) => answer.files);
  return html`<div class="figures">
      <div class="figure"><span class="figure-title">Could be freed</span><b>${bytes(data.reclaimableBytes)}</b><span>${count(data.reclaimableFiles)} files</span></div>
      <div class="figure"><span class="figure-title">Due now</span><b>${bytes(data.dueBytes)}</b><span>${count(data.dueFiles)} files</span></div>
      <div class="figure"><span class="figure-title">Report</span><b>${data.report}</b><span><${Time} at=${data.finished} /></span></div>
      <div class="figure"><span class="figure-title">Blocked places</span><b>${count(data.blockedPlaces)}</b><span>looked at as of <${Time} at=${data.liveAsOf} /></span></div>
    </div>
    ${data.blocked?.length > 0 && html`<h2>Blocked places</h2><${Table} label="Blocked places" rows=${data.blocked} columns=${[
      { title: "Place", isWide: true, of: (each) => html`<code class="long">${each.place}</code>` },
      { title: "Why", isWide: true, of: (each) => html`<${Tag} tone="warn">${each.code}<//> ${each.why}` },
    ]} />`}
    <h2>By reason</h2>
    <${Table} label="Files by reason" rows=${kinds} keyOf=${([name]) => name} empty="No file without a referrer" columns=${[
      { title: "Reason", of: ([name]) => html`<a href=${hereWith({ code: name === code ? "" : name })} aria-current=${name === code ? "true" : null}>${name}</a>` },
      { title: "What that means", isWide: true, of: ([, each]) => each.why },
      { title: "Files", isNumber: true, of: ([, each]) => count(each.files) },
      { title: "Size", isNumber: true, of: ([, each]) => bytes(each.bytes) },
    ]} />
    <h2>${code ? html`Files: ${code} <a class="small" href=${hereWith({ code: "" })}>show all</a>` : "Files"}</h2>
    <${PagedTable} of=${pages} label="Files" keyOf=${(each) => each.path} empty="None" columns=${[
      { title: "File", isWide: true, of: (each) => html`<a class="long" href=${hereWith({ url: each.path })}><code>${each.path}</code></a>` },
      { title: "Reason", of: (each) => html`<${Tag} tone=${each.code === "Due" ? "warn" : "calm"}>${each.code}<//>` },
      { title: "Size", isNumber: true, of: (each) => bytes(each.bytes) },
      { title: "Since", of: (each) => html`<${Time} at=${each.since} />` },
      { title: "Due", of: (each) => html`<${Time} at=${each.due} />` },
    ]} />`;
}
