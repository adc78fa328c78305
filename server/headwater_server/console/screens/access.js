// Why may X do Y: the grant that allows it, or what comes near.

import { html } from "../ui.js";
import { get, realmPath } from "../api.js";
import { useResource } from "../resource.js";
import { go, hereWith } from "../router.js";
import { useRealmRights } from "../rights.js";
import { Facts, Icon, Shown, Tag, Time } from "../parts/base.js";
import { TextField } from "../parts/fields.js";
import { Heading } from "../parts/layout.js";
import { RoleTags } from "./principals.js";

const FIELDS = ["principal", "privilege", "catalog", "kind", "key", "reference"];

export function Access({ realm, query }) {
  const { may, me } = useRealmRights(realm);
  const privileges = useResource(`privileges ${realm}`, (signal) => get(realmPath(realm, "privileges"), {}, signal));
  const isAsked = query.privilege && (query.principal || me);
  const asked = {
    privilege: query.privilege, principal: query.principal, catalog: query.catalog, reference: query.reference,
    ...(query.key ? { [query.kind ?? "table"]: query.key } : {}),
  };
  const answer = useResource(isAsked ? `access ${realm} ${JSON.stringify(asked)}` : null, (signal) => get(realmPath(realm, "access"), asked, signal));
  return html`<${Heading} title="Explain access" icon="shield" note="Why a principal may, or may not, do something." />
    <${Shown} of=${privileges}>${(data) => html`<form class="question card" onSubmit=${(event) => {
      event.preventDefault();
      const form = new FormData(event.currentTarget);
      go(hereWith(Object.fromEntries(FIELDS.map((name) => [name, String(form.get(name) ?? "").trim()]))));
    }}>
      <label>May<${TextField} name="principal" value=${query.principal ?? me?.principal ?? ""} readonly=${!may.manageAccess} title=${may.manageAccess ? null : "You may ask about yourself"} spellcheck=${false} placeholder="principal" required /></label>
      <label>use<select name="privilege" required>${data.privileges.map((each) => html`<option value=${each.name} selected=${each.name === query.privilege} title=${each.summary}>${each.name}</option>`)}</select></label>
      <label>in the catalog<${TextField} name="catalog" value=${query.catalog ?? ""} placeholder="none: the realm" spellcheck=${false} /></label>
      <label>on the<select name="kind">${["table", "view", "namespace"].map((kind) => html`<option value=${kind} selected=${kind === query.kind}>${kind}</option>`)}</select></label>
      <label>called<${TextField} name="key" value=${query.key ?? ""} placeholder="none: the whole catalog" spellcheck=${false} dir="auto" /></label>
      <label>on the reference<${TextField} name="reference" value=${query.reference ?? ""} placeholder="the default branch" spellcheck=${false} /></label>
      <button class="button primary">Explain</button>
    </form>
    <p class="note">${data.privileges.find((each) => each.name === query.privilege)?.summary ?? ""}</p>`}<//>
    ${isAsked && html`<${Shown} of=${answer} label="Looking for a grant">${(data) => html`<section class="card answer" role="status" aria-label="Answer">
      <p class="verdict ${data.allowed ? "good" : "bad"}"><${Icon} name=${data.allowed ? "check" : "shield"} /><b dir="auto">${data.principal}</b> ${data.allowed ? "may" : "may not"} use <code>${data.privilege}</code> on <bdi>${data.on}</bdi>${data.reference && html` at <bdi>${data.reference}</bdi>`}</p>
      <${Facts} of=${[
        ["Disabled since", data.disabled && html`<${Time} at=${data.disabled} isLong />`],
        ["Allowed by", data.rule && html`<bdi>${data.rule}</bdi>`],
        ["What comes near", data.near.length > 0 && html`<ul>${data.near.map((each) => html`<li><bdi>${each}</bdi></li>`)}</ul>`],
        ["Roles that count", html`<${RoleTags} realm=${realm} roles=${data.roles} />`],
      ]} />
      ${!data.allowed && !data.near.length && html`<p>No grant comes near it: none of its roles has this privilege, or one that includes it. <${Tag} tone="warn">needs a grant<//></p>`}
    </section>`}<//>`}`;
}
