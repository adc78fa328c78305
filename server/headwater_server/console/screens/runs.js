// Runs: what each try of a task did, with the report of a collection.

import { html, useEffect, useRef, useState } from "../ui.js";
import { get, getText, realmPath } from "../api.js";
import { usePages, useResource } from "../resource.js";
import { hereWith, link } from "../router.js";
import { drawReport, saveReport } from "../report.js";
import { count, Facts, Id, seconds, Shown, State, Time } from "../parts/base.js";
import { Heading } from "../parts/layout.js";
import { PagedTable, Table } from "../parts/rows.js";
import { Findings } from "./checks.js";

const KINDS = ["", "gc", "fsck", "import", "export", "expire", "files-report"];

export function Runs({ realm, query }) {
  const kind = query.kind ?? "";
  const pages = usePages(`runs ${realm} ${kind}`, (pageToken, signal) => get(realmPath(realm, "runs"), { kind, pageToken }, signal), (answer) => answer.runs);
  const kinds = [...new Set([...KINDS.slice(0, 3), kind, ...pages.items.map((run) => run.kind)])].filter((name, at) => name || at === 0);
  return html`<${Heading} title="Runs" icon="file" note="What the tasks of the realm did, newest first." />
    <div class="choices" role="group" aria-label="Which runs">${kinds.map((name) => html`<a class="choice" aria-current=${kind === name ? "true" : null} href=${hereWith({ kind: name })}>${name || "All"}</a>`)}</div>
    <${PagedTable} of=${pages} label="Runs" keyOf=${(run) => run.id} empty="No task has run yet" columns=${[
      { title: "Run", of: (run) => html`<a class="strong" href=${link("realms", realm, "runs", run.id)}>${run.kind}</a>` },
      { title: "Subject", isWide: true, of: (run) => html`<bdi>${run.subject}</bdi>` },
      { title: "Outcome", of: (run) => html`<${State} of=${run.error ? "FAILED" : "SUCCEEDED"} />` },
      { title: "Finished", of: (run) => html`<${Time} at=${run.finished} />` },
      { title: "Took", isNumber: true, of: (run) => seconds(run.seconds) },
      { title: "Id", of: (run) => html`<${Id} value=${run.id} length=${8} />` },
    ]} />`;
}

export function RunScreen({ realm, name }) {
  const where = realmPath(realm, "runs", name);
  const found = useResource(`run ${where}`, (signal) => get(where, {}, signal));
  return html`<${Shown} of=${found} heading=${name}>${(run) => html`
    <${Heading} title=${`${run.kind} ${run.subject}`} icon="file" />
    <${Facts} of=${[
      ["Outcome", html`<${State} of=${run.error ? "FAILED" : "SUCCEEDED"} />`],
      ["Id", html`<${Id} value=${run.id} length=${24} />`],
      ["Task", run.task && html`<a href=${link("realms", realm, "tasks", run.task)}><code>${run.task}</code></a>, try ${run.attempt}`],
      ["Started", html`<${Time} at=${run.started} isLong />`],
      ["Finished", html`<${Time} at=${run.finished} isLong />`],
      ["Took", seconds(run.seconds)],
    ]} />
    ${run.error && html`<div class="failure" role="alert"><div><p class="failure-title">Why it ended</p><p class="failure-text">${run.error}</p></div></div>`}
    ${run.notes.map((note) => html`<p class="hint">${note}</p>`)}
    ${run.kind === "gc" && html`<${Report} where=${where} name=${name} />`}
    ${run.kind === "fsck" ? html`<${Findings} of=${run} />` : html`<${Counts} of=${run.counts} />`}`}<//>`;
}

function Counts({ of: counts }) {
  const all = Object.entries(counts).filter(([, value]) => value !== null && typeof value !== "object");
  const [areZerosShown, showZeros] = useState(false);
  const rows = areZerosShown ? all : all.filter(([, value]) => value !== 0 && value !== false);
  const rest = Object.entries(counts).filter(([, value]) => value !== null && typeof value === "object");
  return html`<div class="heading"><h2>What it counted</h2>
      ${(areZerosShown || rows.length < all.length) && html`<button type="button" class="button small" aria-pressed=${areZerosShown} onClick=${() => showZeros(!areZerosShown)}>${areZerosShown ? "Hide zeros" : `Show ${all.length - rows.length} zeros`}</button>`}</div>
    <${Table} label="Counts" rows=${rows} keyOf=${([name]) => name} empty="Nothing" columns=${[
      { title: "What", isWide: true, of: ([name]) => words(name) },
      { title: "", isNumber: true, of: ([, value]) => shownCount(value) },
    ]} />
    ${rest.length > 0 && html`<details><summary>Details</summary><pre class="plain-text">${JSON.stringify(Object.fromEntries(rest), null, 2)}</pre></details>`}`;
}

function shownCount(value) {
  if (typeof value === "number") return count(value);
  return /^\d{4}-\d\d-\d\dT/.test(value) ? html`<${Time} at=${value} isLong />` : String(value);
}

const words = (name) => name.replace(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();

function Report({ where, name }) {
  const room = useRef(null);
  const report = useResource(`report ${where}`, (signal) => getText(`${where}/report`, signal));
  useEffect(() => {
    if (report.data !== undefined) drawReport(room.current, report.data);
  }, [report.data]);
  if (report.error?.status === 404) return html`<p class="hint">This run left no report.</p>`;
  return html`<h2>Report</h2>
    <${Shown} of=${report} label="Loading the report">${(text) => html`<div class="buttons"><button type="button" class="button" onClick=${() => saveReport(text, `${name}.html`)}>Save as a file</button></div>`}<//>
    <div ref=${room} class="report" aria-label="Report of the collection"></div>`;
}
