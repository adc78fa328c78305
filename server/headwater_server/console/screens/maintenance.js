// The stop switch: where expiry of snapshots and reports of files are stopped.

import { html, useState } from "../ui.js";
import { get, post, realmPath } from "../api.js";
import { useResource } from "../resource.js";
import { useRealmRights } from "../rights.js";
import { Shown, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { Table } from "../parts/rows.js";

export function Maintenance({ realm }) {
  const { may } = useRealmRights(realm);
  const [asked, ask] = useState(null);
  const where = realmPath(realm, "maintenance");
  const stops = useResource(`stops ${where}`, (signal) => get(where, {}, signal));
  return html`<${Heading} title="Maintenance" icon="stop" note="While it is stopped, no snapshot expires and no file is reported or collected.">
      ${may.manageTasks && html`<button type="button" class="button danger" onClick=${() => ask({ act: "stop" })}>Stop maintenance</button>`}
    <//>
    <${Shown} of=${stops}>${(data) => html`<${Table} label="Stops" rows=${data.stops} empty="Nothing is stopped" columns=${[
      { title: "Of", isWide: true, of: (stop) => (stop.catalog ? html`catalog <b dir="auto">${stop.catalog}</b>` : stop.realm ? html`the realm <b dir="auto">${stop.realm}</b>` : html`<${Tag} tone="warn">the whole store<//>`) },
      { title: "Why", isWide: true, of: (stop) => html`<bdi>${stop.reason || "no reason was given"}</bdi>` },
      { title: "By", of: (stop) => html`<bdi>${stop.by}</bdi>` },
      { title: "Since", of: (stop) => html`<${Time} at=${stop.at} />` },
      { title: "", of: (stop) => may.manageTasks && stop.realm && html`<button type="button" class="button small" onClick=${() => ask({ act: "resume", stop })}>Resume</button>` },
    ]} />`}<//>
    ${asked?.act === "stop" && html`<${Stop} realm=${realm} onClose=${() => ask(null)} act=${async (wish) => {
      await post(`${where}/stop`, wish);
      notify("Maintenance is stopped");
      stops.reload();
    }} />`}
    ${asked?.act === "resume" && html`<${Ask} title="Resume maintenance" verb="Resume" onClose=${() => ask(null)} act=${async () => {
      await post(`${where}/resume`, asked.stop.catalog ? { catalog: asked.stop.catalog } : {});
      notify("Maintenance goes on");
      stops.reload();
    }}><p>What is due since ${html`<${Time} at=${asked.stop.at} />`} is done at the next turn of the workers.</p><//>`}`;
}

function Stop({ realm, onClose, act }) {
  const [wish, setWish] = useState({ catalog: "", reason: "" });
  return html`<${Ask} title="Stop maintenance" verb="Stop it" isDangerous onClose=${onClose} act=${() => act({ reason: wish.reason, ...(wish.catalog ? { catalog: wish.catalog } : {}) })}>
    <label>Catalog<input value=${wish.catalog} placeholder=${`empty: all of ${realm}`} spellcheck=${false} onInput=${(event) => setWish({ ...wish, catalog: event.target.value })} /></label>
    <label>Why<input value=${wish.reason} maxlength="300" placeholder="Others will read this" onInput=${(event) => setWish({ ...wish, reason: event.target.value })} /></label>
  <//>`;
}
