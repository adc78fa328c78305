// The console begins here: what the server asks for, who is logged in, and which screen a place has.

import { byName, html, render, useEffect, useErrorBoundary, useSignalValue } from "./ui.js";
import { endSession, get } from "./api.js";
import { useResource } from "./resource.js";
import { go, link, place } from "./router.js";
import { server, session, watchExpiry } from "./session.js";
import "./theme.js";
import { Failure, Spinner } from "./parts/base.js";
import { Bare, Frame, Heading } from "./parts/layout.js";
import { LogIn } from "./screens/login.js";
import { Catalogs, Realms } from "./screens/realms.js";
import { CatalogScreen } from "./screens/catalog.js";
import { TaskScreen, Tasks } from "./screens/tasks.js";
import { RunScreen, Runs } from "./screens/runs.js";
import { Checks } from "./screens/checks.js";
import { Maintenance } from "./screens/maintenance.js";
import { PrincipalScreen, Principals } from "./screens/principals.js";
import { RoleScreen, Roles } from "./screens/roles.js";
import { Access } from "./screens/access.js";

const ROOMS = byName({
  tasks: [Tasks, TaskScreen],
  runs: [Runs, RunScreen],
  checks: [Checks],
  maintenance: [Maintenance],
  principals: [Principals, PrincipalScreen],
  roles: [Roles, RoleScreen],
  access: [Access],
});

function Console() {
  const held = useSignalValue(session);
  const { path, query } = useSignalValue(place);
  const config = useResource("config", (signal) => get("/api/v1/config", {}, signal));
  if (config.data && server.peek() !== config.data) server.value = config.data;
  const [root, realm, room, name, ...more] = path;
  const isOut = config.data?.authentication && !held;
  useEffect(() => {
    if (config.data?.authentication && held && !root) go(link("realms", held.realm));
  }, [config.data, held, root]);
  if (config.error && !config.data) return html`<${Bare}><${Failure} error=${config.error} retry=${config.reload} /><//>`;
  if (!config.data) return html`<main class="beginning"><${Spinner} label="The console is starting" /></main>`;
  if (isOut) return html`<${Bare}><${LogIn} wantedRealm=${realm} /><//>`;
  if (!root) return config.data.authentication ? null : html`<${Bare}><${Realms} /><//>`;
  if (root !== "realms" || !realm) return html`<${Bare}><${Nowhere} /><//>`;
  if (config.data.authentication && held.realm !== realm) return html`<${Bare}><${OtherRealm} realm=${realm} own=${held.realm} /><//>`;
  const isCatalog = (room ?? "catalogs") === "catalogs";
  const [List, One] = ROOMS[room] ?? [];
  const Screen = name === undefined ? List : One;
  const where = [realm, room, name, ...more].join("\n");
  return html`<${Frame} key=${realm} realm=${realm} catalog=${isCatalog ? name : undefined}>
    <${Guarded} key=${where}>
      ${isCatalog && name === undefined && html`<${Catalogs} realm=${realm} />`}
      ${isCatalog && name !== undefined && html`<${CatalogScreen} realm=${realm} catalog=${name} parts=${more} query=${query} />`}
      ${!isCatalog && Screen && !more.length && html`<${Screen} realm=${realm} name=${name} query=${query} />`}
      ${!isCatalog && (!Screen || more.length > 0) && html`<${Nowhere} />`}
    <//>
  <//>`;
}

/** A fault of one screen leaves the others alone. */
function Guarded({ children }) {
  const [fault, again] = useErrorBoundary((error) => console.error(error));
  if (!fault) return children;
  return html`<${Heading} title="The console has a fault" />
    <${Failure} error=${{ status: -1, message: `${fault}. Nothing was changed by it.` }} retry=${again} />`;
}

const Nowhere = () => html`<${Heading} title="Not found" note="The console has no such page." /><p><a href="#/">Go to the start</a></p>`;

/** A session is of one realm: to ask another one with its token might end it. */
const OtherRealm = ({ realm, own }) => html`<${Heading} title=${`Realm ${realm}`} note=${`You are logged in to the realm ${own}.`} />
  <div class="buttons"><a class="button primary" href=${link("realms", own)}>${`Go to ${own}`}</a>
    <button type="button" class="button" onClick=${endSession}>${`Log in to ${realm}`}</button></div>`;

watchExpiry();
render(html`<${Console} />`, document.getElementById("app"));
