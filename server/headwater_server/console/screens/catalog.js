// A catalog: which of its screens a place has.

import { byName, html } from "../ui.js";
import { CatalogFrame, Heading } from "../parts/layout.js";
import { Tree } from "./tree.js";
import { TableScreen } from "./table.js";
import { References } from "./refs.js";
import { Commits } from "./commits.js";
import { CommitScreen } from "./commit.js";
import { Compare } from "./compare.js";
import { Merge } from "./merge.js";
import { Policies } from "./policies.js";
import { UnusedFiles } from "./files.js";
import { CatalogRoles } from "./catalog_roles.js";
import { Definition } from "./definition.js";

const TABS = byName({ table: "tree", commit: "commits" });

export function CatalogScreen({ realm, catalog, parts: [screen = "tree", ref = "-", rest], query }) {
  const given = { realm, catalog, query };
  const tab = TABS[screen] ?? screen;
  const reference = ["tree", "table", "commits", "commit"].includes(screen) ? ref : query.ref;
  return html`<${CatalogFrame} realm=${realm} catalog=${catalog} tab=${tab} reference=${reference === "-" ? undefined : reference}>
    ${(may) => {
      if (screen === "tree") return html`<${Tree} ...${given} reference=${ref} may=${may} />`;
      if (screen === "table" && rest) return html`<${TableScreen} ...${given} reference=${ref} name=${rest} may=${may} />`;
      if (screen === "refs") return html`<${References} ...${given} may=${may} />`;
      if (screen === "commits") return html`<${Commits} ...${given} reference=${ref} />`;
      if (screen === "commit" && rest) return html`<${CommitScreen} ...${given} reference=${ref} hash=${rest} />`;
      if (screen === "compare") return html`<${Compare} ...${given} may=${may} />`;
      if (screen === "merge") return html`<${Merge} ...${given} />`;
      if (screen === "policies") return html`<${Policies} ...${given} may=${may} />`;
      if (screen === "files") return html`<${UnusedFiles} ...${given} />`;
      if (screen === "roles") return html`<${CatalogRoles} ...${given} may=${may} role=${ref === "-" ? undefined : ref} />`;
      if (screen === "definition") return html`<${Definition} ...${given} may=${may} />`;
      return html`<${Heading} title="Not found" note="The console has no such page of a catalog." />`;
    }}
  <//>`;
}
