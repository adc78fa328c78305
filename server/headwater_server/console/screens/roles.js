// Roles of a realm: what they may do in all of it, and who has them.

import { html, useState } from "../ui.js";
import { get, post, put, realmPath, remove } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { go, link } from "../router.js";
import { useRealmRights } from "../rights.js";
import { Facts, Shown, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { PagedTable } from "../parts/rows.js";
import { NewName } from "./principals.js";

export function Roles({ realm }) {
  const { may } = useRealmRights(realm);
  const [isAsked, ask] = useState(false);
  const where = realmPath(realm, "principal-roles");
  const pages = usePages(`roles ${where}`, (pageToken, signal) => get(where, { pageToken }, signal), (answer) => answer.principalRoles);
  return html`<${Heading} title="Roles" icon="key" note="Roles of the realm. Principals have them, and catalogs give their own roles to them.">
      ${may.manageAccess && html`<button type="button" class="button primary" onClick=${() => ask(true)}>New role</button>`}
    <//>
    <${PagedTable} of=${pages} label="Roles" keyOf=${(each) => each.name} columns=${[
      { title: "Role", isWide: true, of: (each) => html`<a class="strong" dir="auto" href=${link("realms", realm, "roles", each.name)}>${each.name}</a>` },
      { title: "In the whole realm", isWide: true, of: (each) => (each.privileges.length ? each.privileges.map((one) => html`<${Tag}>${one}<//> `) : html`<span class="quiet">–</span>`) },
      { title: "Created", of: (each) => html`<${Time} at=${each.created} />` },
    ]} />
    ${isAsked && html`<${NewName} title="New role" verb="Create" onClose=${() => ask(false)} act=${async (name) => {
      await post(where, { name });
      notify(`${name} was created`);
      pages.reload();
    }} />`}`;
}

export function RoleScreen({ realm, name }) {
  const { may } = useRealmRights(realm);
  const [asked, ask] = useState(null);
  const where = realmPath(realm, "principal-roles", name);
  const found = useResource(`role ${where}`, (signal) => get(where, {}, signal));
  const chips = (items, hrefOf, act, label) => html`<ul class="chips">${items.map((item) => html`<li>${hrefOf ? html`<a href=${hrefOf(item)}><bdi>${item}</bdi></a>` : html`<code>${item}</code>`}
    ${may.manageAccess && html`<button type="button" class="plain" aria-label=${`${label} ${item}`} onClick=${() => ask({ act, item })}>×</button>`}</li>`)}</ul>`;
  return html`<${Shown} of=${found} heading=${name}>${(data) => html`
    <${Heading} title=${name} icon="key" copied=${name}>
      ${may.manageAccess && name !== "service_admin" && html`<button type="button" class="button danger" onClick=${() => ask({ act: "drop" })}>Delete</button>`}
    <//>
    <${Facts} of=${[["Created", html`<${Time} at=${data.created} isLong />`]]} />
    <div class="heading"><h2>May do in the whole realm</h2>${may.manageAccess && html`<button type="button" class="button small" onClick=${() => ask({ act: "grant" })}>Grant a privilege</button>`}</div>
    ${data.privileges.length ? chips(data.privileges, null, "revoke", "Revoke") : html`<p class="quiet">Nothing in the whole realm; catalogs may have given it roles of their own.</p>`}
    <div class="heading"><h2>Who has it</h2>${may.manageAccess && html`<button type="button" class="button small" onClick=${() => ask({ act: "assign" })}>Give it to somebody</button>`}</div>
    ${data.assignedTo.length ? chips(data.assignedTo, (item) => link("realms", realm, "principals", item), "withdraw", "Take it from") : html`<p class="quiet">Nobody</p>`}`}<//>
    ${asked?.act === "grant" && html`<${Grant} realm=${realm} name=${name} onClose=${() => ask(null)} act=${async (privilege) => {
      await put(`${where}/privileges/${encodeURIComponent(privilege)}`);
      found.reload();
    }} />`}
    ${asked?.act === "assign" && html`<${NewName} title=${`Give ${name} to somebody`} label="Principal" verb="Give it" onClose=${() => ask(null)} act=${async (principal) => {
      await put(`${where}/principals/${encodeURIComponent(principal)}`);
      found.reload();
    }} />`}
    ${["revoke", "withdraw"].includes(asked?.act) && html`<${Ask} title=${asked.act === "revoke" ? `Revoke ${asked.item}` : `Take ${name} from ${asked.item}`} verb="Take it" isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(`${where}/${asked.act === "revoke" ? "privileges" : "principals"}/${encodeURIComponent(asked.item)}`);
      found.reload();
    }}><p>It takes effect within seconds.</p><//>`}
    ${asked?.act === "drop" && html`<${Ask} title=${`Delete ${name}`} verb="Delete the role" isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(where);
      notify(`${name} was deleted`);
      go(link("realms", realm, "roles"));
    }}><p>Everybody who has it loses it.</p><//>`}`;
}

function Grant({ realm, name, onClose, act }) {
  const [chosen, setChosen] = useState("");
  const all = useResource(`privileges ${realm}`, (signal) => get(realmPath(realm, "privileges"), {}, signal));
  return html`<${Ask} title=${`Let ${name} do something in the whole realm`} verb="Grant it" isReady=${Boolean(chosen)} onClose=${onClose} act=${() => act(chosen)}>
    <${Shown} of=${all}>${(data) => html`<label>Privilege<select required onChange=${(event) => setChosen(event.target.value)}>
      <option value="">Choose one</option>${data.privileges.filter((each) => each.on.includes("realm")).map((each) => html`<option value=${each.name}>${each.name}</option>`)}</select></label>
      <p class="note">${data.privileges.find((each) => each.name === chosen)?.summary ?? ""}</p>`}<//>
  <//>`;
}
