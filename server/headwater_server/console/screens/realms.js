// Realms, where nobody has to prove who calls, and the catalogs of a realm.

import { html, useState } from "../ui.js";
import { catalogPath, get, post, realmPath } from "../api.js";
import { usePages } from "../resource.js";
import { link } from "../router.js";
import { useRealmRights } from "../rights.js";
import { Id, State, Tag, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { PagedTable } from "../parts/rows.js";

export function Realms() {
  const pages = usePages("realms", (pageToken, signal) => get("/api/v1/realms", { pageToken }, signal), (answer) => answer.realms);
  return html`<${Heading} title="Realms" note="This server asks nobody who calls: whoever reaches it may do everything." />
    <${PagedTable} of=${pages} label="Realms" keyOf=${(realm) => realm.key} empty="No realm yet: headwater realm create NAME makes one" columns=${[
      { title: "Realm", isWide: true, of: (realm) => html`<a class="strong" dir="auto" href=${link("realms", realm.id)}>${realm.id}</a>` },
      { title: "State", of: (realm) => html`<${State} of=${realm.state} />` },
      { title: "Maintenance", of: (realm) => (realm.maintenance.suspend ? html`<${Tag} tone="warn">suspended<//>` : realm.maintenance.schedule ?? "weekly") },
      { title: "Created", of: (realm) => html`<${Time} at=${realm.created} />` },
    ]} />`;
}

export function Catalogs({ realm }) {
  const { may } = useRealmRights(realm);
  const [isGone, setGone] = useState(false);
  const [asked, ask] = useState(null);
  const pages = usePages(
    `catalogs ${realm} ${isGone}`,
    (pageToken, signal) => get(realmPath(realm, "catalogs"), { pageToken, deleted: isGone ? "true" : "" }, signal),
    (answer) => answer.catalogs,
  );
  const name = (catalog) => (isGone
    ? html`<span class="strong" dir="auto">${catalog.name}</span>`
    : html`<a class="strong" dir="auto" href=${link("realms", realm, "catalogs", catalog.name)}>${catalog.name}</a>`);
  return html`<${Heading} title="Catalogs">
      ${may.createCatalogs && html`<button type="button" class="button primary" onClick=${() => ask({ kind: "create" })}>New catalog</button>`}
    <//>
    <div class="choices" role="group" aria-label="Which catalogs">
      <button type="button" aria-pressed=${!isGone} onClick=${() => setGone(false)}>Live</button>
      <button type="button" aria-pressed=${isGone} onClick=${() => setGone(true)}>Deleted</button>
    </div>
    <${PagedTable} of=${pages} label="Catalogs" keyOf=${(catalog) => catalog.id} empty=${isGone ? "No deleted catalog that you could undelete" : may.createCatalogs ? "No catalog yet" : "No catalog that you may see"} columns=${[
      { title: "Catalog", isWide: true, of: name },
      { title: "State", of: (catalog) => html`<${State} of=${catalog.state} />` },
      { title: "Id", of: (catalog) => html`<${Id} value=${catalog.id} />` },
      { title: "Created", of: (catalog) => html`<${Time} at=${catalog.created} />` },
      { title: "Changed", of: (catalog) => html`<${Time} at=${catalog.updated} />` },
      ...(isGone ? [{ title: "Kept until", of: (catalog) => html`<${Time} at=${catalog.heldUntil} />` }, { title: "", of: (catalog) => html`<button type="button" class="button small" onClick=${() => ask({ kind: "undelete", catalog })}>Undelete</button>` }] : []),
    ]} />
    ${asked?.kind === "create" && html`<${NewCatalog} realm=${realm} onClose=${() => ask(null)} onDone=${pages.reload} />`}
    ${asked?.kind === "undelete" && html`<${Ask} title=${`Undelete ${asked.catalog.name}`} verb="Undelete" onClose=${() => ask(null)} act=${async () => {
      await post(catalogPath(realm, asked.catalog.id, "undelete"));
      notify(`${asked.catalog.name} is back`);
      pages.reload();
    }}><p>The catalog comes back as it was, with its branches and tables.</p><p>Id: <${Id} value=${asked.catalog.id} /></p><//>`}`;
}

function NewCatalog({ realm, onClose, onDone }) {
  const [wish, setWish] = useState({ name: "", baseLocation: "", defaultBranch: "main" });
  const field = (name, title, more) => html`<label>${title}<input name=${name} value=${wish[name]} onInput=${(event) => setWish({ ...wish, [name]: event.target.value })} spellcheck=${false} required ...${more} /></label>`;
  return html`<${Ask} title="New catalog" verb="Create" onClose=${onClose} act=${async () => {
    await post(realmPath(realm, "catalogs"), wish);
    notify(`${wish.name} was created`);
    onDone();
  }}>
    ${field("name", "Name")}
    ${field("baseLocation", "Base location", { placeholder: "s3://bucket/folder/" })}
    ${field("defaultBranch", "Default branch")}
  <//>`;
}
