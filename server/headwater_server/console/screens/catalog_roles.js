// Roles of a catalog, what they may do on what, and which roles of the realm have them.

import { html, useState } from "../ui.js";
import { catalogPath, get, post, put, realmPath, remove } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { go, link } from "../router.js";
import { Facts, Shown, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { PagedTable } from "../parts/rows.js";
import { NewName, RoleTags } from "./principals.js";

export function CatalogRoles({ realm, catalog, role, may }) {
  return role === undefined ? html`<${Roles} ...${{ realm, catalog, may }} />` : html`<${Role} ...${{ realm, catalog, role, may }} />`;
}

function Roles({ realm, catalog, may }) {
  const [isAsked, ask] = useState(false);
  const where = catalogPath(realm, catalog, "roles");
  const pages = usePages(`catalog roles ${where}`, (pageToken, signal) => get(where, { pageToken }, signal), (answer) => answer.catalogRoles);
  return html`<${Heading} title="Roles and grants" icon="key" note="A role of the catalog holds grants; roles of the realm have it.">
      ${may.manageAccess && html`<button type="button" class="button primary" onClick=${() => ask(true)}>New role</button>`}
    <//>
    <${PagedTable} of=${pages} label="Roles of the catalog" keyOf=${(each) => each.name} empty="No role: nobody but those who may do it in the whole realm may do anything here" columns=${[
      { title: "Role", isWide: true, of: (each) => html`<a class="strong" dir="auto" href=${link("realms", realm, "catalogs", catalog, "roles", each.name)}>${each.name}</a>` },
      { title: "Given to", isWide: true, of: (each) => html`<${RoleTags} realm=${realm} roles=${each.assignedTo} />` },
      { title: "Created", of: (each) => html`<${Time} at=${each.created} />` },
    ]} />
    ${isAsked && html`<${NewName} title="New role of the catalog" verb="Create" onClose=${() => ask(false)} act=${async (name) => {
      await post(where, { name });
      pages.reload();
    }} />`}`;
}

function Role({ realm, catalog, role, may }) {
  const [asked, ask] = useState(null);
  const where = catalogPath(realm, catalog, "roles", role);
  const found = useResource(`catalog role ${where}`, (signal) => get(where, {}, signal));
  const grants = usePages(`grants ${where}`, (pageToken, signal) => get(`${where}/grants`, { pageToken }, signal), (answer) => answer.grants);
  return html`<nav class="path" aria-label="Path"><a href=${link("realms", realm, "catalogs", catalog, "roles")}>Roles and grants</a></nav>
    <${Heading} title=${role} icon="key" copied=${role}>
      ${may.manageAccess && html`<button type="button" class="button primary" onClick=${() => ask({ act: "grant" })}>Add a grant</button>
        <button type="button" class="button danger" onClick=${() => ask({ act: "drop" })}>Delete</button>`}
    <//>
    <${Shown} of=${found}>${(data) => html`<${Facts} of=${[["Created", html`<${Time} at=${data.created} isLong />`]]} />
      <div class="heading"><h2>Given to</h2>${may.manageAccess && html`<button type="button" class="button small" onClick=${() => ask({ act: "give" })}>Give it to a role of the realm</button>`}</div>
      <ul class="chips">${data.assignedTo.map((name) => html`<li><a href=${link("realms", realm, "roles", name)}><bdi>${name}</bdi></a>${may.manageAccess && html`<button type="button" class="plain" aria-label=${`Take it from ${name}`} onClick=${() => ask({ act: "take", name })}>×</button>`}</li>`)}</ul>
      ${!data.assignedTo.length && html`<p class="quiet">Nobody has it.</p>`}`}<//>
    <h2>Grants</h2>
    <${PagedTable} of=${grants} label="Grants" empty="It may do nothing yet" columns=${[
      { title: "Privilege", of: (each) => html`<${Tag}>${each.privilege}<//>` },
      { title: "On", isWide: true, of: (each) => html`<bdi>${each.on}</bdi>` },
      { title: "Branches", of: (each) => (each.branches ? html`<code>${each.branches}</code>` : html`<span class="quiet">the default one</span>`) },
      { title: "Since", of: (each) => html`<${Time} at=${each.created} />` },
      { title: "", of: (each) => may.manageAccess && html`<span class="row-buttons"><button type="button" class="button small" onClick=${() => ask({ act: "revoke", grant: each })}>Revoke</button></span>` },
    ]} />
    ${asked?.act === "grant" && html`<${NewGrant} realm=${realm} onClose=${() => ask(null)} act=${async (grant) => {
      await post(`${where}/grants`, { grants: [grant] });
      grants.reload();
    }} />`}
    ${asked?.act === "revoke" && html`<${Ask} title="Revoke a grant" verb="Revoke it" isDangerous onClose=${() => ask(null)} act=${async () => {
      const { privilege, on, branches } = asked.grant;
      await post(`${where}/grants/revoke`, { grants: [{ privilege, on, branches }] });
      grants.reload();
    }}><p><b>${asked.grant.privilege}</b> on <bdi>${asked.grant.on}</bdi> is taken back. It takes effect within seconds.</p><//>`}
    ${asked?.act === "give" && html`<${NewName} title=${`Give ${role} to a role of the realm`} label="Role of the realm" verb="Give it" onClose=${() => ask(null)} act=${async (name) => {
      await put(`${where}/principal-roles/${encodeURIComponent(name)}`);
      found.reload();
    }} />`}
    ${asked?.act === "take" && html`<${Ask} title=${`Take ${role} from ${asked.name}`} verb="Take it" isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(`${where}/principal-roles/${encodeURIComponent(asked.name)}`);
      found.reload();
    }}><p>It takes effect within seconds.</p><//>`}
    ${asked?.act === "drop" && html`<${Ask} title=${`Delete ${role}`} verb="Delete the role" isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(where);
      notify(`${role} was deleted`);
      go(link("realms", realm, "catalogs", catalog, "roles"));
    }}><p>All that was granted to it goes with it.</p><//>`}`;
}

function NewGrant({ realm, onClose, act }) {
  const [wish, setWish] = useState({ privilege: "", on: "catalog", branches: "" });
  const all = useResource(`privileges ${realm}`, (signal) => get(realmPath(realm, "privileges"), {}, signal));
  return html`<${Ask} title="Add a grant" verb="Add it" isReady=${Boolean(wish.privilege)} onClose=${onClose} act=${() => act({ ...wish, branches: wish.branches || null })}>
    <${Shown} of=${all}>${(data) => html`<label>Privilege<select required onChange=${(event) => setWish({ ...wish, privilege: event.target.value })}>
        <option value="">Choose one</option>${data.privileges.filter((each) => each.on.some((kind) => kind !== "realm")).map((each) => html`<option value=${each.name} selected=${each.name === wish.privilege}>${each.name}</option>`)}</select></label>
      <p class="note">${data.privileges.find((each) => each.name === wish.privilege)?.summary ?? ""}</p>`}<//>
    <label>On<input value=${wish.on} required spellcheck=${false} placeholder="catalog, namespace:sales, table:sales.orders, reference:dev*" onInput=${(event) => setWish({ ...wish, on: event.target.value })} /></label>
    <label>Branches<input value=${wish.branches} spellcheck=${false} placeholder="a pattern such as dev*; empty: the default branch" onInput=${(event) => setWish({ ...wish, branches: event.target.value })} /></label>
  <//>`;
}
