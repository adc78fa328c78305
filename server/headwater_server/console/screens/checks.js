// Checks of a realm by fsck: submit one, and see what the last ones found.

import { html, useRef, useState } from "../ui.js";
import { get, post, realmPath } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { link } from "../router.js";
import { useRealmRights } from "../rights.js";
import { count, Empty, seconds, State, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { PagedTable, Table } from "../parts/rows.js";

const POLL_MS = 2500;

export function Checks({ realm }) {
  const { may } = useRealmRights(realm);
  const [isAsked, ask] = useState(false);
  const pages = usePages(`checks ${realm}`, (pageToken, signal) => get(realmPath(realm, "runs"), { kind: "fsck", pageToken }, signal), (answer) => answer.runs);
  const isAwaited = useRef(false);
  const waiting = useResource(`waiting checks ${realm}`, async (signal) => {
    const { tasks } = await get(realmPath(realm, "tasks"), { kind: "fsck" }, signal);
    const busy = tasks.filter((task) => ["WAITING", "RUNNING"].includes(task.state));
    if (isAwaited.current && !busy.length) pages.reload();
    isAwaited.current = busy.length > 0;
    return busy;
  }, { every: (busy) => (busy.length ? POLL_MS : null) });
  const last = pages.items[0];
  return html`<${Heading} title="Checks" icon="check" note="A check reads all rows of the realm and says what is damaged, in trouble, or left over. It changes nothing.">
      ${may.manageTasks && html`<button type="button" class="button primary" onClick=${() => ask(true)}>Check the realm</button>`}
    <//>
    ${waiting.data?.map((task) => html`<p class="hint" role="status"><${State} of=${task.state} /> A check was submitted <${Time} at=${task.created} />: <a href=${link("realms", realm, "tasks", task.id)}>show the task</a></p>`)}
    ${last && html`<h2>The last check</h2><p class="note">Finished <${Time} at=${last.finished} isLong />, in ${seconds(last.seconds)}</p><${Findings} of=${last} />`}
    <h2>All checks</h2>
    <${PagedTable} of=${pages} label="Checks" keyOf=${(run) => run.id} empty="Nobody has checked this realm yet" columns=${[
      { title: "Finished", of: (run) => html`<a href=${link("realms", realm, "runs", run.id)}><${Time} at=${run.finished} isLong /></a>` },
      { title: "Damage", isNumber: true, of: (run) => count(run.counts.damage) },
      { title: "Trouble", isNumber: true, of: (run) => count(run.counts.trouble) },
      { title: "Left over", isNumber: true, of: (run) => count(run.counts.leftover) },
      { title: "Took", isNumber: true, of: (run) => seconds(run.seconds) },
    ]} />
    ${isAsked && html`<${Ask} title="Check the realm" verb="Submit the check" onClose=${() => ask(false)} act=${async () => {
      await post(realmPath(realm, "tasks"), { kind: "fsck" });
      notify("The check was submitted");
      isAwaited.current = true; // it may be over before anybody looks
      waiting.reload();
    }}><p>A worker reads all rows of <b>${realm}</b>. That takes a while for a large realm, and changes nothing.</p><//>`}`;
}

/** What a check found, heaviest first. */
export function Findings({ of: run }) {
  const { counts } = run;
  const findings = counts.first ?? [];
  if (run.error) return null;
  return html`<div class="figures">
      ${[["Damage", counts.damage, "DAMAGE"], ["Trouble", counts.trouble, "TROUBLE"], ["Left over", counts.leftover, "LEFTOVER"]].map(([title, number, weight]) => html`<div class="figure">
        <span class="figure-title">${title}</span><b class=${number ? `weight-${weight.toLowerCase()}` : ""}>${count(number)}</b></div>`)}
    </div>
    ${counts.isCut && html`<p class="hint">The first ${count(findings.length)} of ${count(counts.findings)} findings are shown.</p>`}
    ${counts.findings === 0
      ? html`<${Empty} title="All is well">The check found nothing.<//>`
      : html`<${Table} label="Findings" rows=${findings} empty="None" columns=${[
        { title: "Weight", of: (each) => html`<${State} of=${each.weight} />` },
        { title: "Code", of: (each) => html`<code>${each.code}</code>` },
        { title: "Subject", isWide: true, of: (each) => html`<bdi>${each.subject}</bdi>` },
        { title: "What was found", isWide: true, of: (each) => html`<span class="long">${each.message}</span>` },
        { title: "How to mend it", isWide: true, of: (each) => html`<span class="long">${each.repair}</span>` },
      ]} />`}`;
}
