// Choosing a branch, a tag or any other reference: a field with the names as suggestions.

import { html, useState } from "../ui.js";
import { catalogPath, get } from "../api.js";
import { useResource } from "../resource.js";
import { Icon } from "./base.js";

/** The first branches and tags of a catalog: {references, default}. */
export function useReferences(realm, catalog) {
  const all = useResource(`refs ${realm} ${catalog}`, (signal) => get(catalogPath(realm, catalog, "references"), { pageSize: 1000 }, signal));
  const references = all.data?.references ?? [];
  return { references, isLoading: all.isLoading, error: all.error, default: references.find((each) => each.isDefault)?.name ?? "" };
}

let pickers = 0;

export function RefPicker({ label, value, references, onChosen, isInline = false }) {
  const [typed, setTyped] = useState(null); // null: nobody is typing
  const [name] = useState(() => `refs-${(pickers += 1)}`);
  const choose = (text) => {
    setTyped(null);
    if (text.trim() && text.trim() !== value) onChosen(text.trim());
  };
  return html`<label class=${`ref-picker ${isInline ? "inline" : ""}`}>
    <span class=${isInline ? "hidden" : ""}>${label}</span>
    <span class="field"><${Icon} name="branch" />
      <input list=${name} value=${typed ?? value} spellcheck=${false} autocapitalize="off" dir="auto"
        title="A branch, a tag, name@hash, name~2 or name*2026-01-31T12:00:00Z"
        onInput=${(event) => {
          // a suggestion that was taken is a choice; a name that was typed may be the beginning of a longer one
          const isTaken = !event.inputType || event.inputType === "insertReplacementText";
          if (isTaken && references.some((each) => each.name === event.target.value)) choose(event.target.value);
          else setTyped(event.target.value);
        }}
        onFocus=${(event) => event.target.select()}
        onBlur=${() => setTyped(null)}
        onChange=${(event) => choose(event.target.value)} />
    </span>
    <datalist id=${name}>${references.map((each) => html`<option value=${each.name}>${each.kind}${each.isDefault ? ", default" : ""}</option>`)}</datalist>
  </label>`;
}
