// Log in with a client's credentials, or with a token that an identity provider gave.

import { html, useSignalValue, useState } from "../ui.js";
import { address, ApiError, realmPath, request } from "../api.js";
import { useAction } from "../resource.js";
import { go, link, place } from "../router.js";
import { expiryOf, farewell, logIn, server } from "../session.js";
import { Failure } from "../parts/base.js";
import { TextField } from "../parts/fields.js";
import { Heading, Logo } from "../parts/layout.js";

export function LogIn({ wantedRealm = "" }) {
  const { tokenEndpoint } = useSignalValue(server);
  const [isByToken, setByToken] = useState(!tokenEndpoint);
  const why = useSignalValue(farewell);
  return html`<section class="login card">
    <${Logo} />
    <${Heading} title="Log in to Headwater" />
    ${why && html`<p class="hint warn" role="status">${why}</p>`}
    ${tokenEndpoint && html`<div class="choices" role="group" aria-label="How to log in">
      <button type="button" aria-pressed=${!isByToken} onClick=${() => setByToken(false)}>Credentials</button>
      <button type="button" aria-pressed=${isByToken} onClick=${() => setByToken(true)}>Token</button>
    </div>`}
    ${isByToken ? html`<${ByToken} wantedRealm=${wantedRealm} />` : html`<${BySecret} tokenEndpoint=${tokenEndpoint} />`}
    <p class="small quiet">What you log in with stays in this tab: closing it logs you out.</p>
  </section>`;
}

function BySecret({ tokenEndpoint }) {
  const action = useAction(async (form) => {
    const id = form.get("id").trim();
    const realm = id.slice(0, Math.max(0, id.lastIndexOf(".")));
    if (!realm) throw new ApiError(400, "Refused", "A client ID has the realm, a dot and the id: REALM.ID, as the file of credentials has it.");
    const answer = await askForToken(tokenEndpoint, id, form.get("secret"));
    const expires = answer.expires_in ? Date.now() + answer.expires_in * 1000 : expiryOf(answer.access_token);
    begin({ realm, token: answer.access_token, expires });
  });
  return html`<form onSubmit=${(event) => {
    event.preventDefault();
    action.run(new FormData(event.currentTarget));
  }}>
    <label>Client ID<input name="id" required autocomplete="username" spellcheck=${false} autocapitalize="off" placeholder="REALM.ID" /></label>
    <label>Client secret<input name="secret" type="password" required autocomplete="current-password" /></label>
    ${action.error && html`<${Failure} error=${action.error} />`}
    <button class="button primary wide" disabled=${action.isRunning}>${action.isRunning ? "Logging in…" : "Log in"}</button>
  </form>`;
}

/** Be logged in, where one wanted to be, or else at the start of one's own realm. */
function begin(session) {
  const [, wanted] = place.peek().path;
  if (wanted !== session.realm) go(link("realms", session.realm));
  logIn(session);
}

async function askForToken(endpoint, id, secret) {
  const body = new URLSearchParams({ grant_type: "client_credentials", client_id: id, client_secret: secret });
  let answer;
  try {
    answer = await fetch(address(endpoint), { method: "POST", body, cache: "no-store", credentials: "omit" });
  } catch {
    throw new ApiError(0, "Unreachable", "The server was not reached. Try again in a moment.");
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  if (answer.status === 401 || answer.status === 400) {
    throw new ApiError(answer.status, "Refused", said.error_description ?? said.error?.message ?? "The client ID or the secret is wrong.");
  }
  throw new ApiError(answer.status, "Error", said.error_description ?? said.error?.message ?? `The server answered ${answer.status}.`);
}

function ByToken({ wantedRealm }) {
  const action = useAction(async (form) => {
    const [realm, token] = [form.get("realm").trim(), form.get("token").trim()];
    await request("GET", realmPath(realm, "me"), { token });
    begin({ realm, token, expires: expiryOf(token) });
  });
  return html`<form onSubmit=${(event) => {
    event.preventDefault();
    action.run(new FormData(event.currentTarget));
  }}>
    <label>Realm<${TextField} name="realm" required value=${wantedRealm} spellcheck=${false} autocapitalize="off" /></label>
    <label>Token<input name="token" type="password" required autocomplete="off" placeholder="Of your identity provider, or of this server" /></label>
    ${action.error && html`<${Failure} error=${action.error} />`}
    <button class="button primary wide" disabled=${action.isRunning}>${action.isRunning ? "Logging in…" : "Log in"}</button>
  </form>`;
}
