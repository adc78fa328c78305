// What is said in passing, at the edge of the screen: screen readers hear it, too.

import { html, signal, useSignalValue } from "../ui.js";

const notices = signal([]);
let last = 0;

/** tone: good, which passes, or warning, which stays until it is dismissed */
export function notify(text, tone = "good") {
  const id = (last += 1);
  notices.value = [...notices.peek().slice(-3), { id, text, tone }];
  if (tone === "good") window.setTimeout(() => drop(id), 7000);
}

const drop = (id) => {
  notices.value = notices.peek().filter((notice) => notice.id !== id);
};

export function Notices() {
  return html`<div class="notices" role="status" aria-live="polite">
    ${useSignalValue(notices).map(
      ({ id, text, tone }) => html`<div key=${id} class=${`notice ${tone}`}>
        <span>${text}</span><button type="button" class="plain" aria-label="Dismiss" onClick=${() => drop(id)}>×</button>
      </div>`,
    )}
  </div>`;
}
