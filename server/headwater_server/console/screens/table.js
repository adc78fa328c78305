// One table, view or namespace of a reference: what its metadata says, its snapshots, files and history.

import { byName, html } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { hereWith, link } from "../router.js";
import { Bars } from "../parts/bars.js";
import { bytes, count, Empty, Facts, Icon, Id, Person, plural, seconds, Shown, State, Tag, Time } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { PagedTable, Table } from "../parts/rows.js";
import { partitionText, SchemaTable, sortText } from "./schema.js";

const ICONS = byName({ NAMESPACE: "folder", ICEBERG_VIEW: "view", UDF: "file" });
const NAMES = byName({ ICEBERG_TABLE: "Iceberg table", ICEBERG_VIEW: "Iceberg view", DELTA_LAKE_TABLE: "Delta Lake table", NAMESPACE: "Namespace", UDF: "Function" });

export function TableScreen({ realm, catalog, reference, name, query, may }) {
  const where = catalogPath(realm, catalog, "references", reference, "tables", name);
  const table = useResource(`table ${where}`, (signal) => get(where, {}, signal));
  return html`<nav class="path" aria-label="Path"><a href=${link("realms", realm, "catalogs", catalog, "tree", reference)}><${Icon} name="branch" />${reference === "-" ? "default branch" : reference}</a></nav>
    <${Shown} of=${table} label="Loading the table" heading=${name}>${(data) => html`<${Details} ...${{ realm, catalog, reference, name, where, query, may, data }} />`}<//>`;
}

function Details({ realm, catalog, reference, name, where, query, may, data }) {
  const isTable = data.type === "ICEBERG_TABLE";
  const tabs = [
    ["schema", "Schema", (isTable || data.type === "ICEBERG_VIEW") && data.schemas?.length],
    ["snapshots", `Snapshots (${count(data.snapshots ?? 0)})`, isTable],
    ["refs", "Branches of the table", isTable],
    ["files", "Files", isTable],
    ["versions", "Versions", data.type === "ICEBERG_VIEW"],
    ["history", "History", may.readHistory],
    ["properties", "Properties", true],
  ].filter(([, , is]) => is);
  const tab = tabs.some(([id]) => id === query.tab) ? query.tab : tabs[0][0];
  const given = { realm, catalog, reference, where, data, query };
  return html`<${Heading} title=${name} icon=${ICONS[data.type] ?? "table"} copied=${name} note=${NAMES[data.type] ?? data.type}>
      ${may.manageMetadata && isTable && html`<a class="button" href=${link("realms", realm, "catalogs", catalog, "policies", { key: name, branch: reference === "-" ? "" : reference })}>Policies</a>`}
    <//>
    <${Facts} of=${[
      ["Location", data.location && html`<code class="long">${data.location}</code>`],
      ["Metadata file", data.metadataLocation && html`<code class="long">${data.metadataLocation}</code>`],
      ["Format", data.formatVersion && `version ${data.formatVersion}`],
      ["Last updated", data.lastUpdated && html`<${Time} at=${data.lastUpdated} isLong />`],
      ["Current snapshot", data.currentSnapshotId && html`<${Id} value=${data.currentSnapshotId} length=${20} />`],
      ["Content id", html`<${Id} value=${data.contentId} length=${36} />`],
      ["UUID", data.uuid && data.uuid !== data.contentId && html`<${Id} value=${data.uuid} length=${36} />`],
    ]} />
    <nav class="tabs inner" aria-label="Table">${tabs.map(([id, title]) => html`<a href=${hereWith({ tab: id })} aria-current=${tab === id ? "page" : null}>${title}</a>`)}</nav>
    ${tab === "schema" && html`<${Schema} ...${given} />`}
    ${tab === "snapshots" && html`<${Snapshots} ...${given} />`}
    ${tab === "refs" && html`<${TableRefs} ...${given} />`}
    ${tab === "files" && html`<${Files} ...${given} />`}
    ${tab === "versions" && html`<${Versions} ...${given} />`}
    ${tab === "history" && html`<${History} ...${given} />`}
    ${tab === "properties" && html`<${Properties} of=${data.properties} />`}`;
}

function Schema({ data, query }) {
  const idOf = (schema) => String(schema["schema-id"] ?? 0);
  const wanted = query.schema ?? String(data.currentSchemaId ?? idOf(data.schemas.at(-1)));
  const schema = data.schemas.find((each) => idOf(each) === wanted) ?? data.schemas.at(-1);
  return html`${data.schemas.length > 1 && html`<div class="choices" role="group" aria-label="Which schema">
      ${data.schemas.map((each) => html`<a class="choice" aria-current=${each === schema ? "true" : null} href=${hereWith({ schema: idOf(each) })}>schema ${idOf(each)}${Number(idOf(each)) === data.currentSchemaId ? ", current" : ""}</a>`)}
    </div>`}
    <${SchemaTable} schema=${schema} />
    <${Facts} of=${[
      ["Partitioned by", data.type === "ICEBERG_TABLE" && partitionText(data, schema)],
      ["Sorted by", data.type === "ICEBERG_TABLE" && sortText(data, schema)],
    ]} />`;
}

function Snapshots({ where }) {
  const pages = usePages(`snapshots ${where}`, (pageToken, signal) => get(`${where}/snapshots`, { pageToken }, signal), (answer) => answer.snapshots);
  return html`<${PagedTable} of=${pages} label="Snapshots" keyOf=${(each) => each.snapshotId} empty="No snapshot yet: nothing was written" columns=${[
    { title: "Snapshot", of: (each) => html`<${Id} value=${each.snapshotId} length=${20} />${each.isCurrent && html` <${Tag} tone="good">current<//>`}${each.refs.filter((ref) => ref !== "main" || !each.isCurrent).map((ref) => html` <${Tag}>${ref}<//>`)}` },
    { title: "When", of: (each) => html`<${Time} at=${each.time} />` },
    { title: "Operation", of: (each) => html`<${State} of=${each.operation} />` },
    { title: "Rows", isNumber: true, of: (each) => delta(each.summary, "records") },
    { title: "Files", isNumber: true, of: (each) => delta(each.summary, "data-files") },
    { title: "Total rows", isNumber: true, of: (each) => count(each.summary["total-records"] && Number(each.summary["total-records"])) },
    { title: "", of: (each) => html`<a class="button small" href=${hereWith({ tab: "files", snapshot: each.snapshotId })}>Files</a>` },
  ]} />`;
}

function delta(summary, what) {
  const [added, deleted] = [Number(summary[`added-${what}`] ?? 0), Number(summary[`deleted-${what}`] ?? 0)];
  if (!added && !deleted) return html`<span class="quiet">–</span>`;
  return html`${added > 0 && html`<span class="plus">+${count(added)}</span>`} ${deleted > 0 && html`<span class="minus">−${count(deleted)}</span>`}`;
}

function TableRefs({ data }) {
  return html`<${Table} label="Branches and tags of the table" rows=${data.refs ?? []} keyOf=${(ref) => ref.name} empty="The table has no branch or tag of its own" columns=${[
    { title: "Name", isWide: true, of: (ref) => html`<${Icon} name=${ref.type} label=${ref.type} /> <bdi>${ref.name}</bdi>` },
    { title: "Snapshot", of: (ref) => html`<${Id} value=${ref.snapshotId} length=${20} />` },
    { title: "Kept for", of: (ref) => (ref.maxRefAgeMs ? seconds(ref.maxRefAgeMs / 1000) : html`<span class="quiet">always</span>`) },
    { title: "Snapshots kept", of: (ref) => ref.minSnapshotsToKeep ?? html`<span class="quiet">–</span>` },
  ]} />`;
}

function Files({ where, query }) {
  const files = useResource(`files ${where} ${query.snapshot ?? ""}`, (signal) => get(`${where}/files`, { snapshot: query.snapshot }, signal));
  return html`<${Shown} of=${files} label="Reading the manifests">${(data) => {
    if (!data.snapshotId) return html`<${Empty} title="No files: nothing was written yet" />`;
    const label = ({ fromBytes, belowBytes }) => (belowBytes == null ? `from ${bytes(fromBytes)}` : fromBytes === 0 ? `below ${bytes(belowBytes)}` : `${bytes(fromBytes)} – ${bytes(belowBytes)}`);
    return html`${!data.isComplete && html`<p class="hint warn">Not all was counted: ${data.why}</p>`}
      <p class="note">Snapshot <${Id} value=${data.snapshotId} length=${20} /> ${query.snapshot && html`<a href=${hereWith({ snapshot: "" })}>show the current one</a>`}</p>
      <div class="figures">
        ${[["Data", data.data], ["Position deletes", data.positionDeletes], ["Equality deletes", data.equalityDeletes]].map(([title, total]) => html`<div class="figure">
          <span class="figure-title">${title}</span><b>${plural(total.files, "file")}</b><span>${bytes(total.bytes)} · ${plural(total.records, "row")}</span></div>`)}
        <div class="figure"><span class="figure-title">Manifests read</span><b>${count(data.manifestsRead)}</b><span>of ${count(data.manifests)}</span></div>
      </div>
      <h2>Data files by size</h2>
      <${Bars} title="Data files by size" bars=${data.sizes.map((each) => ({ label: label(each), value: each.files, note: each.files ? `${count(each.files)} · ${bytes(each.bytes)}` : "0" }))} />`;
  }}<//>`;
}

function Versions({ data }) {
  return html`<${Table} label="Versions" rows=${[...(data.versions ?? [])].reverse()} keyOf=${(each) => each["version-id"]} empty="No version" columns=${[
    { title: "Version", of: (each) => html`${each["version-id"]} ${each["version-id"] === data.currentVersionId && html`<${Tag} tone="good">current<//>`}` },
    { title: "When", of: (each) => html`<${Time} at=${each["timestamp-ms"]} />` },
    { title: "SQL", isWide: true, of: (each) => (each.representations ?? []).map((one) => html`<pre class="sql">${one.sql}<span class="quiet"> (${one.dialect})</span></pre>`) },
  ]} />`;
}

function History({ realm, catalog, reference, where }) {
  const pages = usePages(`history ${where}`, (pageToken, signal) => get(`${where}/history`, { pageToken }, signal), (answer) => answer.changes);
  return html`<${PagedTable} of=${pages} label="History of the table" keyOf=${(each) => each.commit.hash} empty="No commit that you may see changed it" columns=${[
    { title: "What", of: (each) => html`<${State} of=${each.action} />` },
    { title: "Commit", isWide: true, of: (each) => html`<a class="one-line" dir="auto" href=${link("realms", realm, "catalogs", catalog, "commit", reference, each.commit.hash)}>${each.commit.message || "(no message)"}</a>
      ${each.renamedFrom && html`<span class="quiet small">was <bdi>${each.renamedFrom}</bdi></span>`}` },
    { title: "Who", of: (each) => html`<${Person} of=${each.commit} />` },
    { title: "When", of: (each) => html`<${Time} at=${each.commit.time} />` },
    { title: "Hash", of: (each) => html`<${Id} value=${each.commit.hash} length=${10} />` },
  ]} />${pages.isOver && pages.last?.end === "CUT" && html`<p class="hint">Older history was collected.</p>`}`;
}

function Properties({ of: properties }) {
  return html`<${Table} label="Properties" rows=${Object.entries(properties ?? {}).sort()} keyOf=${([name]) => name} empty="No properties are set" columns=${[
    { title: "Name", of: ([name]) => html`<code>${name}</code>` },
    { title: "Value", isWide: true, of: ([, value]) => html`<code class="long">${value}</code>` },
  ]} />`;
}
