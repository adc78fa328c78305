// The definition of a catalog: where it keeps its tables, and its properties.

import { html, useState } from "../ui.js";
import { catalogPath, get, patch, remove } from "../api.js";
import { useResource } from "../resource.js";
import { go, link } from "../router.js";
import { Facts, Id, Shown, State, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { Table } from "../parts/rows.js";

export function Definition({ realm, catalog, may }) {
  const where = catalogPath(realm, catalog);
  const found = useResource(`catalog ${where}`, (signal) => get(where, {}, signal));
  const [asked, ask] = useState(null);
  const places = (list) => list.length > 0 && html`<ul class="bare-list">${list.map((each) => html`<li><code class="long">${each}</code></li>`)}</ul>`;
  return html`<${Heading} title=${catalog} icon="catalog">
      ${may.writeDefinition && html`<button type="button" class="button" onClick=${() => ask({ act: "set", name: "", value: "" })}>Set a property</button>`}
      ${may.drop && html`<button type="button" class="button danger" onClick=${() => ask({ act: "drop" })}>Delete</button>`}
    <//>
    <${Shown} of=${found}>${(data) => html`
      <${Facts} of=${[
        ["State", html`<${State} of=${data.state} />`],
        ["Id", html`<${Id} value=${data.id} />`],
        ["Base location", html`<code class="long">${data.baseLocation}</code>`],
        ["Further locations", places(data.allowedLocations)],
        ["Places of files", places(data.filePlaces)],
        ["Default branch", html`<${Tag} tone="good"><bdi>${data.defaultBranch}</bdi><//>`],
        ["Protected from deletion", data.deletionProtection ? "yes" : "no"],
        ["Hold after deletion", data.hold],
        ["Expiry of snapshots", scheduled(data.maintenance.expireSnapshots)],
        ["Reports of files", scheduled(data.maintenance.reportFiles)],
        ["Managed by", data.manager && `${data.manager.namespace}/${data.manager.name}`],
        ["Created", html`<${Time} at=${data.created} isLong />`],
        ["Changed", html`<${Time} at=${data.updated} isLong />`],
      ]} />
      <h2>Properties</h2>
      <${Table} label="Properties" rows=${Object.entries(data.properties).sort()} keyOf=${([name]) => name} empty="No properties are set" columns=${[
        { title: "Name", of: ([name]) => html`<code>${name}</code>` },
        { title: "Value", isWide: true, of: ([, value]) => html`<code class="long">${value}</code>` },
        ...(may.writeDefinition ? [{ title: "", of: ([name, value]) => html`<span class="row-buttons"><button type="button" class="button small" onClick=${() => ask({ act: "set", name, value })}>Change</button></span>` }] : []),
      ]} />
      ${asked?.act === "drop" && html`<${Drop} catalog=${catalog} data=${data} onClose=${() => ask(null)} act=${async () => {
        await remove(where);
        notify(`${catalog} was deleted; until its hold is over it can be undeleted`);
        go(link("realms", realm, "catalogs"));
      }} />`}`}<//>
    ${asked?.act === "set" && html`<${SetProperty} given=${asked} onClose=${() => ask(null)} act=${async (name, value) => {
      await patch(where, { properties: { [name]: value === "" ? null : value } });
      notify(`${name} was ${value === "" ? "removed" : "set"}`);
      found.reload();
    }} />`}`;
}

const scheduled = (work) => work && (work.suspend ? "suspended" : work.schedule ?? "at a time spread by catalog");

function SetProperty({ given, onClose, act }) {
  const [wish, setWish] = useState(given);
  return html`<${Ask} title=${given.name ? `Change ${given.name}` : "Set a property"} verb="Set it" onClose=${onClose} act=${() => act(wish.name, wish.value)}>
    <label>Name<input value=${wish.name} required readonly=${Boolean(given.name)} spellcheck=${false} onInput=${(event) => setWish({ ...wish, name: event.target.value })} /></label>
    <label>Value<input value=${wish.value} placeholder="empty: remove it" spellcheck=${false} onInput=${(event) => setWish({ ...wish, value: event.target.value })} /></label>
  <//>`;
}

function Drop({ catalog, data, onClose, act }) {
  const [typed, setTyped] = useState("");
  return html`<${Ask} title=${`Delete ${catalog}`} verb="Delete the catalog" isDangerous isReady=${typed === catalog} onClose=${onClose} act=${act}>
    <p>All branches and tables of <b dir="auto">${catalog}</b> go with it${data.hold ? `; for ${data.hold} it can be undeleted` : ""}.</p>
    <label>Type its name<input value=${typed} spellcheck=${false} autocomplete="off" onInput=${(event) => setTyped(event.target.value)} /></label>
  <//>`;
}
