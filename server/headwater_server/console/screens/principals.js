// Principals: who can log in, with which roles.

import { byName, html, useEffect, useRef, useState } from "../ui.js";
import { get, post, put, realmPath, remove } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { go, link } from "../router.js";
import { useRealmRights } from "../rights.js";
import { Copied, Facts, Id, Shown, State, Tag, Time } from "../parts/base.js";
import { Ask, Dialog } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { PagedTable } from "../parts/rows.js";

export function Principals({ realm }) {
  const told = useTold();
  const { may } = useRealmRights(realm);
  const [asked, ask] = useState(null);
  const where = realmPath(realm, "principals");
  const pages = usePages(`principals ${where}`, (pageToken, signal) => get(where, { pageToken }, signal), (answer) => answer.principals);
  return html`<${Heading} title="Principals" icon="user">
      ${may.manageAccess && html`<button type="button" class="button primary" onClick=${() => ask({ act: "create" })}>New principal</button>`}
    <//>
    <${PagedTable} of=${pages} label="Principals" keyOf=${(each) => each.name} columns=${[
      { title: "Name", isWide: true, of: (each) => html`<a class="strong" dir="auto" href=${link("realms", realm, "principals", each.name)}>${each.name}</a>` },
      { title: "Roles", isWide: true, of: (each) => html`<${RoleTags} realm=${realm} roles=${each.roles} />` },
      { title: "State", of: (each) => html`<${State} of=${each.disabled ? "disabled" : "enabled"} tone=${each.disabled ? "warn" : "good"} />` },
      { title: "Credentials of", of: (each) => html`<${Time} at=${each.renewed ?? each.created} />` },
      { title: "Client id", of: (each) => html`<${Id} value=${each.clientId} length=${14} />` },
    ]} />
    ${asked?.act === "create" && html`<${NewName} title="New principal" verb="Create" onClose=${() => ask(null)} act=${async (name) => {
      const made = await post(where, { name });
      pages.reload();
      return told({ act: "tell", credentials: made.credentials, name });
    }} onDone=${ask}><p>It may do nothing yet: give it a role afterwards.</p><//>`}
    ${asked?.act === "tell" && html`<${Credentials} ...${asked} onClose=${() => ask(null)} />`}`;
}

export const RoleTags = ({ realm, roles }) =>
  (roles.length ? roles.map((role) => html`<a class="ref-tag" href=${link("realms", realm, "roles", role)}><${Tag}><bdi>${role}</bdi><//></a> `) : html`<span class="quiet">none</span>`);

export function NewName({ title, verb, act, onClose, onDone, children, label = "Name" }) {
  const [name, setName] = useState("");
  return html`<${Ask} title=${title} verb=${verb} onClose=${onClose} onDone=${onDone} act=${() => act(name.trim())}>
    ${children}
    <label>${label}<input value=${name} required spellcheck=${false} autocapitalize="off" onInput=${(event) => setName(event.target.value)} /></label>
  <//>`;
}

/** What shows credentials, for a screen that is still there; otherwise whoever left it is told that they are lost. */
function useTold() {
  const isThere = useRef(true);
  useEffect(() => () => {
    isThere.current = false;
  }, []);
  return (tell) => {
    if (isThere.current) return tell;
    notify(`Credentials of ${tell.name} were made, and could not be shown because you left the page: rotate them once more`, "warning");
    return null;
  };
}

function Credentials({ credentials, name, onClose }) {
  const row = (title, value) => html`<div><dt>${title}</dt><dd><code class="long">${value}</code><${Copied} text=${value} label=${`Copy the ${title.toLowerCase()}`} /></dd></div>`;
  return html`<${Dialog} title=${`Credentials of ${name}`} onClose=${onClose}>
    <p class="hint warn">They are shown this once: the store keeps a hash. Copy them before you close this.</p>
    <dl class="facts">${row("Client id", credentials.clientId)}${row("Client secret", credentials.clientSecret)}${row("Credential", credentials.credential)}</dl>
    <div class="buttons"><button type="button" class="button primary" onClick=${onClose}>I have them</button></div>
  <//>`;
}

const ACTIONS = byName({
  rotate: ["Rotate credentials", "Other credentials are made; the former ones hold until the next rotation."],
  reset: ["Reset credentials", "Other credentials are made; the former ones, and all their tokens, hold no more."],
  disable: ["Disable", "It can no longer log in, and its tokens are refused."],
  enable: ["Enable", "It can log in again with the credentials that it had."],
  remove: ["Delete", "The principal goes, and all that it was issued is refused."],
});

export function PrincipalScreen({ realm, name }) {
  const told = useTold();
  const { may } = useRealmRights(realm);
  const [asked, ask] = useState(null);
  const where = realmPath(realm, "principals", name);
  const found = useResource(`principal ${where}`, (signal) => get(where, {}, signal));
  const act = async (action) => {
    if (action === "remove") {
      await remove(where);
      notify(`${name} was deleted`);
      go(link("realms", realm, "principals"));
      return null;
    }
    const { credentials } = await post(`${where}/${action}`);
    // whoever reset its own is refused from now on: nothing is asked before the secret was seen
    if (credentials) return told({ act: "tell", credentials, name });
    found.reload();
    return null;
  };
  const button = (action, tone = "") => html`<button type="button" class=${`button ${tone}`} onClick=${() => ask({ act: action })}>${ACTIONS[action][0]}</button>`;
  return html`<${Shown} of=${found} heading=${name}>${(data) => html`
    <${Heading} title=${name} icon="user" copied=${name}>
      ${may.manageAccess && html`${button("rotate")}${button("reset")}${button(data.disabled ? "enable" : "disable")}${name !== "root" && button("remove", "danger")}`}
    <//>
    <${Facts} of=${[
      ["State", html`<${State} of=${data.disabled ? "disabled" : "enabled"} tone=${data.disabled ? "warn" : "good"} />`],
      ["Client id", html`<${Id} value=${data.clientId} length=${40} />`],
      ["Former client id", data.formerClientId && html`<${Id} value=${data.formerClientId} length=${40} />`],
      ["Former one holds until", data.formerClientId && (data.formerUntil ? html`<${Time} at=${data.formerUntil} isLong />` : "the next rotation")],
      ["Created", html`<${Time} at=${data.created} isLong />`],
      ["Credentials renewed", data.renewed && html`<${Time} at=${data.renewed} isLong />`],
    ]} />
    <div class="heading"><h2>Roles</h2>${may.manageAccess && html`<button type="button" class="button small" onClick=${() => ask({ act: "give" })}>Give a role</button>`}</div>
    <ul class="chips">${data.roles.map((role) => html`<li><a href=${link("realms", realm, "roles", role)}><bdi>${role}</bdi></a>
      ${may.manageAccess && html`<button type="button" class="plain" aria-label=${`Take the role ${role} away`} onClick=${() => ask({ act: "take", role })}>×</button>`}</li>`)}</ul>
    ${!data.roles.length && html`<p class="quiet">No role: it may do nothing.</p>`}
    <p><a class="button" href=${link("realms", realm, "access", { principal: name })}>Explain what ${name} may do</a></p>`}<//>
    ${ACTIONS[asked?.act] && html`<${Ask} title=${`${ACTIONS[asked.act][0]}: ${name}`} verb=${ACTIONS[asked.act][0]} isDangerous=${["reset", "disable", "remove"].includes(asked.act)} onClose=${() => ask(null)} act=${() => act(asked.act)} onDone=${ask}><p>${ACTIONS[asked.act][1]}</p><//>`}
    ${asked?.act === "give" && html`<${NewName} title=${`Give ${name} a role`} label="Role" verb="Give it" onClose=${() => ask(null)} act=${async (role) => {
      await put(realmPath(realm, "principal-roles", role, "principals", name));
      found.reload();
    }} />`}
    ${asked?.act === "take" && html`<${Ask} title=${`Take ${asked.role} from ${name}`} verb="Take it" isDangerous onClose=${() => ask(null)} act=${async () => {
      await remove(realmPath(realm, "principal-roles", asked.role, "principals", name));
      found.reload();
    }}><p>What ${name} may do through this role alone, it may do no longer.</p><//>`}
    ${asked?.act === "tell" && html`<${Credentials} credentials=${asked.credentials} name=${name} onClose=${() => {
      ask(null);
      found.reload();
    }} />`}`;
}
