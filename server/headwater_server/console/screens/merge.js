// Merge one reference into a branch: tried first, with what both sides did to each key in conflict; then done, after a question.

import { byName, html, useState } from "../ui.js";
import { catalogPath, post, request } from "../api.js";
import { useResource } from "../resource.js";
import { go, hereWith, link } from "../router.js";
import { useCatalogRights } from "../rights.js";
import { Empty, Failure, Icon, Id, Person, plural, Spinner, State, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { RefPicker, useReferences } from "../parts/refpicker.js";
import { Table } from "../parts/rows.js";
import { Side } from "./compare.js";

const isPlain = (ref) => !/[@~*^]/.test(ref);

export function Merge({ realm, catalog, query }) {
  const all = useReferences(realm, catalog);
  const [into, source] = [query.into ?? all.default, query.source ?? ""];
  return html`<${Heading} title="Merge" icon="branch" />
    <div class="tools">
      <${RefPicker} label="Merge" value=${source} references=${all.references} onChosen=${(name) => go(hereWith({ source: name }))} />
      <span class="arrow" aria-hidden="true">→</span>
      <${RefPicker} label="into the branch" value=${into} references=${all.references.filter((each) => each.kind === "branch")} onChosen=${(name) => go(hereWith({ into: name }))} />
    </div>
    ${!source && html`<${Empty} title="Choose what to merge">It is tried first: nothing is written before you confirm.<//>`}
    ${into && source && html`<${Trial} key=${JSON.stringify([into, source])} ...${{ realm, catalog, into, source }} />`}`;
}

/** One source and one branch: what a merge would do with the choices so far, and the merge itself. */
function Trial({ realm, catalog, into, source }) {
  const where = catalogPath(realm, catalog, "references", into, "merge");
  const { may } = useCatalogRights(realm, catalog, into);
  const [modes, setModes] = useState(byName());
  const [tryModes, setTryModes] = useState(byName());
  const [asked, ask] = useState(null); // what was shown when the question was asked: that is merged, or nothing
  const [done, setDone] = useState(null);
  const wish = (isDry, chosen) => ({ source, dryRun: isDry, keys: Object.fromEntries(Object.entries(chosen).filter(([, mode]) => mode !== "NORMAL")) });
  const trial = useResource(
    done?.status === "MERGED" ? null : JSON.stringify(tryModes),
    async (signal) => ({ ...(await request("POST", where, { body: wish(true, tryModes), signal })), modes: tryModes }),
    { keeps: true },
  );
  const tried = done ?? trial.data;

  const isStale = tried && JSON.stringify(tried.modes) !== JSON.stringify(modes);
  const decide = (more) => setModes(byName({ ...modes, ...more }));
  const tryAgain = () => {
    setDone(null);
    if (JSON.stringify(tryModes) === JSON.stringify(modes)) trial.reload();
    else setTryModes(modes);
  };
  const merge = async (message) => {
    const answer = await post(where, { ...wish(false, asked.modes), expected: asked.onto, message });
    setDone({ ...answer, modes: asked.modes });
    if (answer.status === "CONFLICTS") throw Object.assign(new Error("The branch changed since the merge was tried: look at the conflicts again. Nothing was written."), { status: 409 });
    notify(answer.status === "UP_TO_DATE" ? `${into} has all of ${source} already` : `${source} was merged into ${into}`);
  };
  return html`${trial.error && html`<${Failure} error=${trial.error} retry=${trial.reload} />`}
    ${trial.isLoading && html`<p class=${tried ? "hint" : "hint waiting"}><${Spinner} label="Trying the merge" /> Trying the merge; nothing is written…</p>`}
    ${tried && html`<${Outcome} tried=${tried} into=${into} source=${source} base=${["realms", realm, "catalogs", catalog]} />
      ${tried.conflicts.length > 0 && html`<${Conflicts} of=${tried.conflicts} ...${{ into, source, modes, decide }} />`}
      ${tried.conflicts.length === 0 && Object.keys(modes).length > 0 && tried.status === "WOULD_MERGE" && html`<${Decided} ...${{ modes, decide, into, source }} />`}
      ${["WOULD_MERGE", "CONFLICTS"].includes(tried.status) && html`<div class="buttons sticky-buttons">
        ${(isStale || tried.status === "CONFLICTS") && html`<button type="button" class="button" disabled=${trial.isLoading} onClick=${tryAgain}>Try with these choices</button>`}
        ${may.writeTables && isPlain(into) && html`<button type="button" class="button primary" disabled=${isStale || trial.isLoading || tried.status !== "WOULD_MERGE"} onClick=${() => ask(tried)}>Merge…</button>`}
        ${!may.writeTables && html`<p class="hint">You may look at this merge. To make it takes the right to write the tables on ${into}.</p>`}
      </div>`}
      <${Keys} of=${tried.keys} />`}
    ${asked && html`<${Confirm} ...${{ into, source, tried: asked, modes: asked.modes, merge }} onClose=${() => ask(null)} />`}`;
}

function Outcome({ tried, into, source, base }) {
  const text = {
    WOULD_MERGE: `${source} can be merged into ${into}: ${plural(tried.keys.length, "key")} would change.`,
    MERGED: `${source} was merged into ${into}.`,
    UP_TO_DATE: `${into} has all of ${source} already: there is nothing to merge.`,
    CONFLICTS: `${plural(tried.conflicts.length, "conflict")}: ${tried.conflicts.every((each) => each.undone) ? `${into} had all of ${source}, and a restoration took it back` : "both sides changed the same"}. Nothing was written.`,
  }[tried.status];
  return html`<div class=${`outcome ${tried.status.toLowerCase()}`} role="status">
    <${State} of=${tried.status} /><p>${text}</p>
    ${tried.status === "MERGED" && tried.head && html`<a href=${link(...base, "commit", into, tried.head)}>Show the commit</a>`}
    ${tried.base && html`<span class="quiet small">Changes are counted from <${Id} value=${tried.base} length=${10} href=${link(...base, "commit", "@", tried.base)} /></span>`}
  </div>`;
}

const MODES = (into, source) => [["NORMAL", "Decide later"], ["FORCE", `Take ${source}`], ["DROP", `Keep ${into}`]];

function Choice({ name, mode, decide, into, source }) {
  return html`<div class="choices" role="group" aria-label=${`What to do with ${name}`}>
    ${MODES(into, source).map(([id, title]) => html`<button type="button" aria-pressed=${mode === id} title=${id} onClick=${() => decide({ [name]: id })}>${title}</button>`)}
  </div>`;
}

function Conflicts({ of: conflicts, into, source, modes, decide }) {
  const decidable = conflicts.filter((each) => each.name);
  const decideAll = (mode) => decide(Object.fromEntries(decidable.map((each) => [each.name, mode])));
  return html`<section aria-label="Conflicts">
    ${decidable.length > 1 && html`<div class="tools"><span class="quiet">All of them:</span>
      <button type="button" class="button small" onClick=${() => decideAll("FORCE")}>Take ${source}</button>
      <button type="button" class="button small" onClick=${() => decideAll("DROP")}>Keep ${into}</button></div>`}
    ${conflicts.map((each) => html`<article key=${each.name ?? each.message} class="conflict card">
      <header><h2><bdi>${each.name ?? "The whole merge"}</bdi></h2>${each.name && html`<${Choice} name=${each.name} mode=${modes[each.name] ?? "NORMAL"} ...${{ decide, into, source }} />`}</header>
      <p class="note" title=${each.message}>${each.undone ? UNDONE(into) : REASONS[each.kind] ?? each.message}</p>
      <div class="sides">
        <${ConflictSide} title=${`On ${into}`} side=${each.ours} isLost=${modes[each.name] === "FORCE"} />
        <${ConflictSide} title=${`On ${source}`} side=${each.theirs} isLost=${modes[each.name] === "DROP"} />
      </div>
    </article>`)}
  </section>`;
}

const SUMMARY = [
  ["added-records", "row", "added"],
  ["deleted-records", "row", "deleted"],
  ["added-data-files", "file", "added"],
  ["deleted-data-files", "file", "deleted"],
  ["total-records", "row", "in all"],
];
const UNDONE = (into) => `It was merged before, and ${into} was restored to what it held until then: choose whether it comes again.`;
const REASONS = byName({ VALUE_DIFFERS: "Both sides changed it since their common ancestor." });

function ConflictSide({ title, side, isLost }) {
  return html`<div class=${`conflict-side ${isLost ? "lost" : ""}`}>
    <h3><bdi>${title}</bdi>${isLost && html` <span class="tag bad">dropped</span>`}</h3>
    ${!side && html`<p class="quiet">Not shown: there are more conflicts than are looked into, or you may not see this side.</p>`}
    ${side && html`<p><${Side} of=${side.entry} /></p>
      ${side.commit && html`<p class="one-line"><bdi>${side.commit.message || "(no message)"}</bdi></p><p class="small quiet"><${Person} of=${side.commit} /> · <${Time} at=${side.commit.time} /></p>`}
      <p class="small">${SUMMARY.filter(([name]) => side.summary?.[name]).map(([name, what, how]) => `${plural(Number(side.summary[name]), what)} ${how}`).join(" · ")}</p>`}
  </div>`;
}

function Decided({ modes, decide, into, source }) {
  return html`<section aria-label="Your choices"><h2>Your choices</h2>
    ${Object.entries(modes).map(([name, mode]) => html`<div class="decided" key=${name}><bdi class="strong">${name}</bdi><${Choice} ...${{ name, mode, decide, into, source }} /></div>`)}
  </section>`;
}

function Keys({ of: keys }) {
  if (!keys.length) return null;
  return html`<h2>What becomes of each key</h2><${Table} label="Keys" rows=${keys} keyOf=${(each) => each.name} columns=${[
    { title: "Key", isWide: true, of: (each) => html`<bdi>${each.name}</bdi>` },
    { title: "Choice", of: (each) => html`<code>${each.mode}</code>` },
    { title: "Outcome", of: (each) => html`<${State} of=${each.outcome} tone=${{ CONFLICT: "bad", DROPPED: "warn", PUT: "good" }[each.outcome]} />` },
  ]} />`;
}

function Confirm({ into, source, tried, modes, merge, onClose }) {
  const [message, setMessage] = useState("");
  const chosen = (mode) => Object.entries(modes).filter(([, each]) => each === mode).map(([name]) => name);
  const list = (names) => html`<ul>${names.map((name) => html`<li><bdi>${name}</bdi></li>`)}</ul>`;
  const [forced, dropped] = [chosen("FORCE"), chosen("DROP")];
  return html`<${Ask} title=${`Merge ${source} into ${into}`} verb="Merge" isDangerous=${forced.length + dropped.length > 0} onClose=${onClose} act=${() => merge(message)}>
    <p>${plural(tried.keys.length, "key")} of <b dir="auto">${into}</b> will change, in one commit.</p>
    ${forced.length > 0 && html`<div class="hint warn"><p><${Icon} name="warning" /> What <b dir="auto">${into}</b> has here is dropped, for what ${source} has:</p>${list(forced)}</div>`}
    ${dropped.length > 0 && html`<div class="hint warn"><p><${Icon} name="warning" /> What <b dir="auto">${source}</b> has here is dropped; ${into} stays as it is:</p>${list(dropped)}</div>`}
    <label>Message<input value=${message} placeholder="Left empty: the server's own" onInput=${(event) => setMessage(event.target.value)} /></label>
  <//>`;
}
