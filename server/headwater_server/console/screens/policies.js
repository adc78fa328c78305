// Policies of a catalog and its tables, and for a table what holds in the end and where each value comes from.

import { byName, html, useState } from "../ui.js";
import { catalogPath, get, put, remove } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { go, hereWith } from "../router.js";
import { Icon, Shown, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { TextField } from "../parts/fields.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { RefPicker, useReferences } from "../parts/refpicker.js";
import { PagedTable, Table } from "../parts/rows.js";

const FIELDS = byName({ snapshots: "snapshots", "metadata-files": "metadataFiles", "file-collection": "fileCollection" });
const EXAMPLES = byName({
  snapshots: [{ branches: "*", maxAge: "7d", minToKeep: 10 }],
  "metadata-files": { keep: 100 },
  "file-collection": { grace: "72h", mode: "report" },
});

export function Policies({ realm, catalog, query, may }) {
  const all = useReferences(realm, catalog);
  const [asked, ask] = useState(null);
  const where = catalogPath(realm, catalog, "policies");
  const pages = usePages(`policies ${where}`, (pageToken, signal) => get(where, { pageToken }, signal), (answer) => answer.policies);
  const values = useResource(`values ${where} ${query.key ?? ""} ${query.branch ?? ""}`, (signal) =>
    get(catalogPath(realm, catalog, "effective-policies"), { key: query.key, branch: query.branch }, signal));
  const done = () => {
    pages.reload();
    values.reload();
  };
  return html`<${Heading} title="Policies" icon="file" note="How long snapshots and metadata files are kept, and what happens to files that nobody refers to.">
      ${may.manageContent && html`<button type="button" class="button primary" onClick=${() => ask({ act: "set" })}>Set a policy</button>`}
    <//>
    <h2>What holds, and where it comes from</h2>
    <form class="tools" onSubmit=${(event) => {
      event.preventDefault();
      go(hereWith({ key: new FormData(event.currentTarget).get("key").trim() }));
    }}>
      <label>Table<span class="field"><${Icon} name="table" /><${TextField} name="key" value=${query.key ?? ""} placeholder="any that says nothing itself" spellcheck=${false} dir="auto" /></span></label>
      <${RefPicker} label="Branch" value=${query.branch ?? all.default} references=${all.references.filter((each) => each.kind === "branch")} onChosen=${(name) => go(hereWith({ branch: name }))} />
      <button class="button">Show</button>
    </form>
    <${Shown} of=${values}>${(data) => html`
      ${data.notes.map((note) => html`<p class="hint warn">${note}</p>`)}
      <${Table} label="Values that hold" rows=${data.values} columns=${[
        { title: "Kind", of: (each) => html`<${Tag}>${each.kind}<//>` },
        { title: "Value", of: (each) => html`<span>${each.name}</span>${each.ref && html` <span class="quiet">on <bdi>${each.ref}</bdi></span>`}` },
        { title: "Holds", of: (each) => (each.value == null ? html`<span class="quiet">nothing goes by it</span>` : html`<b>${each.value}</b>`) },
        { title: "Comes from", isWide: true, of: (each) => html`<bdi>${each.source}</bdi>` },
      ]} />`}<//>
    <h2>Policies that are set</h2>
    <${PagedTable} of=${pages} label="Policies" empty="None: defaults hold" columns=${[
      { title: "Kind", of: (each) => html`<${Tag}>${each.kind}<//>` },
      { title: "Of", isWide: true, of: (each) => (each.contentId ? html`<bdi>${keyText(each.key) ?? each.contentId}</bdi>${!each.key && html` <${Tag} tone="warn" title="Its policy can be changed where the table is on the default branch">not on the default branch<//>`}` : html`<span class="quiet">the catalog</span>`) },
      { title: "Says", isWide: true, of: (each) => html`<code class="long">${ruleText(each[FIELDS[each.kind]])}</code>` },
      { title: "By", of: (each) => html`<bdi>${each.by || "–"}</bdi>${each.declared && html` <${Tag} title="It comes from the catalog's resource, which puts it back">declared<//>`}` },
      { title: "Changed", of: (each) => html`<${Time} at=${each.updated} />` },
      ...(may.manageContent ? [{ title: "", of: (each) => isReachable(each) && html`<span class="row-buttons">
        <button type="button" class="button small" onClick=${() => ask({ act: "set", policy: each })}>Change</button>
        <button type="button" class="button small" onClick=${() => ask({ act: "remove", policy: each })}>Remove</button></span>` }] : []),
    ]} />
    ${asked?.act === "set" && html`<${SetPolicy} where=${where} policy=${asked.policy} wantedKey=${query.key ?? ""} onClose=${() => ask(null)} onDone=${done} />`}
    ${asked?.act === "remove" && html`<${Ask} title="Remove a policy" verb="Remove it" isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(`${where}/${asked.policy.kind}`, { key: keyText(asked.policy.key) });
      notify("The policy was removed");
      done();
    }}><p>The ${asked.policy.kind} policy of <bdi>${keyText(asked.policy.key) ?? "the catalog"}</bdi> goes; what it said falls to the next wider one, or to the default.</p><//>`}`;
}

/** A policy is named by its table's key, and one of the catalog by none: where a table has no key here, its policy has no name. */
const isReachable = (policy) => !policy.contentId || policy.key;

const keyText = (key) => key?.map((element) => element.replace(/[\\.]/g, "\\$&")).join(".");

function ruleText(rule) {
  const one = (each) => Object.entries(each).filter(([, value]) => value !== null).map(([name, value]) => `${name}: ${value}`).join(", ");
  return Array.isArray(rule) ? rule.map(one).join("\n") : one(rule ?? {});
}

/** policy: one that is to be changed; without it, another is to be set */
function SetPolicy({ where, policy, wantedKey, onClose, onDone }) {
  const [kind, setKind] = useState(policy?.kind ?? "snapshots");
  const [key, setKey] = useState(policy ? keyText(policy.key) ?? "" : wantedKey);
  const [texts, setTexts] = useState(() => Object.fromEntries(Object.keys(FIELDS).map((each) => [each, shownRule(policy?.[FIELDS[each]] ?? EXAMPLES[each])])));
  let [rule, fault] = [null, ""];
  try {
    rule = JSON.parse(texts[kind]);
  } catch (error) {
    fault = error.message;
  }
  return html`<${Ask} title=${policy ? "Change a policy" : "Set a policy"} verb="Set it" isReady=${!fault} onClose=${onClose} act=${async () => {
    await put(`${where}/${kind}`, { [FIELDS[kind]]: rule }, { key: key.trim() });
    notify("The policy was set");
    onDone();
  }}>
    <label>Kind<select value=${kind} disabled=${Boolean(policy)} onChange=${(event) => setKind(event.target.value)}>
      ${Object.keys(FIELDS).map((each) => html`<option value=${each} selected=${each === kind}>${each}</option>`)}</select></label>
    <label>Table<input value=${key} readonly=${Boolean(policy)} placeholder="empty: the whole catalog" spellcheck=${false} onInput=${(event) => setKey(event.target.value)} /></label>
    <label>What it says<textarea rows="7" spellcheck=${false} value=${texts[kind]} onInput=${(event) => setTexts({ ...texts, [kind]: event.target.value })} /></label>
    ${fault && html`<p class="hint warn">${fault}</p>`}
  <//>`;
}

/** What a rule says, without what it does not. */
const shownRule = (rule) => JSON.stringify(rule, (_, value) => value ?? undefined, 2);
