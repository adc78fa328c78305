// Tasks of a realm, live: what waits, runs and ended.

import { html, useRef, useState } from "../ui.js";
import { get, post, realmPath } from "../api.js";
import { useResource, whileActive } from "../resource.js";
import { go, hereWith, link } from "../router.js";
import { useRealmRights } from "../rights.js";
import { count, Facts, Id, plural, Shown, State, Time } from "../parts/base.js";
import { Ask } from "../parts/dialog.js";
import { Heading } from "../parts/layout.js";
import { notify } from "../parts/notices.js";
import { Table } from "../parts/rows.js";

const STATES = ["", "WAITING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"];
const isActive = (task) => ["WAITING", "RUNNING"].includes(task.state);

export function Tasks({ realm, query }) {
  const { may } = useRealmRights(realm);
  const [isAsked, ask] = useState(false);
  const [state, kind] = [query.state ?? "", query.kind ?? ""];
  const where = realmPath(realm, "tasks");
  const key = `tasks ${where} ${state} ${kind}`;
  const wanted = useRef({ key, pages: 1 });
  if (wanted.current.key !== key) wanted.current = { key, pages: 1 };
  const { pages } = wanted.current;
  // all that is shown is live: tasks move from page to page while they run and end
  const all = useResource(key, (signal) => readTasks(where, { state, kind }, wanted.current.pages, signal), {
    every: (data) => whileActive(({ tasks }) => tasks.some(isActive))(data) * pages,
  });
  const more = () => {
    wanted.current.pages += 1;
    all.reload();
  };
  return html`<${Heading} title="Tasks" icon="task" note="The list renews itself.">
      ${may.manageTasks && html`<button type="button" class="button primary" onClick=${() => ask(true)}>Collect garbage</button>`}
    <//>
    <div class="choices" role="group" aria-label="Which tasks">${STATES.map((name) => html`<a class="choice" aria-current=${state === name ? "true" : null} href=${hereWith({ state: name })}>${name ? name[0] + name.slice(1).toLowerCase() : "All"}</a>`)}</div>
    <${Shown} of=${all}>${(data) => html`
      <${TaskTable} realm=${realm} tasks=${data.tasks} empty=${state || kind ? "No such task" : "No task yet"} />
      ${!data.isOver && html`<div class="more"><button type="button" class="button" disabled=${data.pages < pages} onClick=${more}>Show more</button></div>`}`}<//>
    ${isAsked && html`<${Ask} title="Collect garbage" verb="Submit the task" onClose=${() => ask(false)} act=${async () => {
      const task = await post(where, { kind: "gc" });
      notify("The collection was submitted");
      go(link("realms", realm, "tasks", task.id));
    }}><p>A worker looks for rows of <b>${realm}</b> that nothing refers to any more, and removes those whose grace is over. Files of tables are not touched.</p><//>`}`;
}

/** So many pages of tasks, each task once: one may have moved while they were read. */
async function readTasks(where, asked, pages, signal) {
  const tasks = new Map();
  let token;
  for (let number = 1; ; number += 1) {
    const answer = await get(where, { ...asked, pageToken: token }, signal);
    for (const task of answer.tasks) tasks.set(task.id, task);
    token = answer.nextPageToken;
    if (!token || number >= pages) return { tasks: [...tasks.values()], isOver: !token, pages };
  }
}

function TaskTable({ realm, tasks, empty }) {
  return html`<${Table} label="Tasks" rows=${tasks} keyOf=${(task) => task.id} empty=${empty} columns=${[
    { title: "Task", of: (task) => html`<a class="strong" href=${link("realms", realm, "tasks", task.id)}>${task.kind}</a>` },
    { title: "Subject", isWide: true, of: (task) => html`<bdi>${task.subject}</bdi>` },
    { title: "State", of: (task) => html`<${State} of=${task.stopRequested && task.state === "RUNNING" ? "stopping" : task.state} />` },
    { title: "Progress", of: (task) => (isActive(task) ? html`<${Progress} of=${task.progress} isRunning=${task.state === "RUNNING"} />` : html`<span>${outcomeText(task)}</span>`) },
    { title: "Tries", isNumber: true, of: (task) => `${task.attempt} of ${task.maxAttempts}` },
    { title: "When", of: (task) => (task.finished ? html`<${Time} at=${task.finished} />` : html`due <${Time} at=${task.due} />`) },
    { title: "Id", of: (task) => html`<${Id} value=${task.id} length=${8} />` },
  ]} />`;
}

// What came of a task that has ended, in its largest counts; the page of the task has all of it
function outcomeText(task) {
  const counts = Object.entries(task.outcome ?? {}).map(([name, value]) => [name, value?.total ?? value]);
  return counts.filter(([, number]) => Number.isInteger(number) && number > 0).slice(0, 5).map(([name, number]) => `${count(number)} ${name}`).join(", ") || "–";
}

function Progress({ of: progress, isRunning }) {
  if (!progress) return html`<span class="quiet">–</span>`;
  const { done, total, unit } = progress;
  return html`<span class="progress">${isRunning && (total ? html`<progress max=${total} value=${done} aria-label="Progress"></progress>` : html`<progress aria-label="Progress"></progress>`)}
    <span>${count(done)}${total ? ` of ${count(total)}` : ""} ${unit}</span></span>`;
}

export function TaskScreen({ realm, name }) {
  const { may } = useRealmRights(realm);
  const [asked, ask] = useState(null);
  const where = realmPath(realm, "tasks", name);
  const found = useResource(`task ${where}`, (signal) => get(where, {}, signal), { every: (task) => (isActive(task) ? 1500 : null) });
  const actions = {
    cancel: ["Cancel the task", "A task that waits is cancelled at once; one that runs is asked to stop."],
    retry: ["Try it once more", "The task becomes due again, with another try."],
    "run-now": ["Run it now", "The task becomes due: the next free worker takes it."],
  };
  return html`<${Shown} of=${found} heading=${name}>${(task) => html`
    <${Heading} title=${`${task.kind} ${task.subject}`} icon="task">
      ${may.manageTasks && task.state === "WAITING" && html`<button type="button" class="button" onClick=${() => ask("run-now")}>Run now</button>`}
      ${may.manageTasks && ["FAILED", "CANCELLED"].includes(task.state) && html`<button type="button" class="button primary" onClick=${() => ask("retry")}>Retry</button>`}
      ${may.manageTasks && isActive(task) && !task.stopRequested && html`<button type="button" class="button danger" onClick=${() => ask("cancel")}>Cancel</button>`}
    <//>
    <${Facts} of=${[
      ["State", html`<${State} of=${task.stopRequested && task.state === "RUNNING" ? "stopping" : task.state} />`],
      ["Outcome", !isActive(task) && outcomeText(task)],
      ["Progress", task.progress && html`<${Progress} of=${task.progress} isRunning=${task.state === "RUNNING"} />`],
      ["Id", html`<${Id} value=${task.id} />`],
      ["Worker", task.owner && html`<code>${task.owner}</code>`],
      ["Created", html`<${Time} at=${task.created} isLong />`],
      ["Due", html`<${Time} at=${task.due} isLong />`],
      ["Finished", task.finished && html`<${Time} at=${task.finished} isLong />`],
      ["After", task.after && html`<a href=${link("realms", realm, "tasks", task.after)}><code>${task.after}</code></a>`],
      ["Then", task.followUp && `${task.followUp.kind} ${task.followUp.subject}`],
    ]} />
    ${task.error && html`<div class="failure" role="alert"><div><p class="failure-title">Why it ended</p><p class="failure-text">${task.error}</p></div></div>`}
    <h2>${plural(task.attempts.length, "try", "tries")}</h2>
    <${Table} label="Tries" rows=${[...task.attempts].reverse()} keyOf=${(each) => each.number} empty="No worker took it yet" columns=${[
      { title: "#", isNumber: true, of: (each) => each.number },
      { title: "Outcome", of: (each) => html`<${State} of=${each.outcome || "RUNNING"} />` },
      { title: "Started", of: (each) => html`<${Time} at=${each.started} />` },
      { title: "Ended", of: (each) => html`<${Time} at=${each.ended} />` },
      { title: "Worker", of: (each) => html`<code>${each.owner}</code>` },
      { title: "Why it ended", isWide: true, of: (each) => html`<span class="long">${each.error ?? ""}</span>` },
      { title: "", of: (each) => each.ended && html`<a class="button small" href=${link("realms", realm, "runs", `${task.id}-${each.number}`)}>Run</a>` },
    ]} />
    ${Object.keys(task.arguments).length > 0 && html`<${Details} title="Arguments" of=${task.arguments} />`}
    ${task.outcome && html`<${Details} title="Outcome" of=${task.outcome} />`}
    ${asked && html`<${Ask} title=${actions[asked][0]} verb=${actions[asked][0]} isDangerous=${asked === "cancel"} onClose=${() => ask(null)} act=${async () => {
      await post(`${where}/${asked}`);
      found.reload();
    }}><p>${actions[asked][1]}</p><//>`}`}<//>`;
}

const Details = ({ title, of: said }) => html`<details><summary>${title}</summary><pre class="plain-text">${JSON.stringify(said, null, 2)}</pre></details>`;
