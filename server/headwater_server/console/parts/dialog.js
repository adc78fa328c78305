// Dialogs: the browser's own, which keeps the focus inside, closes by Escape and gives the focus back.

import { html, useEffect, useLayoutEffect, useRef } from "../ui.js";
import { useAction } from "../resource.js";
import { Failure } from "./base.js";
import { notify } from "./notices.js";

let dialogs = 0;

export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  const name = useRef(`dialog-${(dialogs += 1)}`);
  useLayoutEffect(() => {
    const [dialog, opener] = [element.current, document.activeElement];
    dialog.showModal();
    return () => {
      dialog.close(); // as long as it is open, nothing else can have the focus
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return html`<dialog ref=${element} aria-labelledby=${name.current} onCancel=${(event) => {
    event.preventDefault();
    onClose();
  }}>
    <header><h2 id=${name.current}>${title}</h2><button type="button" class="plain" aria-label="Close" onClick=${onClose}>×</button></header>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/**
 * Ask before something is done, and show why it cannot be. Whoever closes it meanwhile does not stop it, and is told all the same.
 *
 * act      () => promise
 * onDone   what to do with its answer; without it, the dialog closes
 */
export function Ask({ title, children, verb, isDangerous = false, act, onClose, onDone, isReady = true }) {
  const action = useAction(act);
  const isOpen = useRef(true);
  useEffect(() => () => {
    isOpen.current = false;
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    const end = await action.run();
    if (!end) return;
    if (end.error) {
      if (!isOpen.current) notify(`${title}: ${end.error.message}`, "warning");
    } else if (onDone && (isOpen.current || end.answer)) onDone(end.answer);
    else if (isOpen.current) onClose();
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit}>
      ${children}
      ${action.error && html`<${Failure} error=${action.error} />`}
      <div class="buttons">
        <button type="button" class="button" onClick=${onClose}>Leave it</button>
        <button type="submit" class=${`button ${isDangerous ? "danger" : "primary"}`} disabled=${action.isRunning || !isReady}>
          ${action.isRunning ? "Working…" : verb}
        </button>
      </div>
    </form>
  <//>`;
}
