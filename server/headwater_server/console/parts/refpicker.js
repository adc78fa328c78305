// Choosing a branch, a tag or any other reference: a field with the names as suggestions.

import { html, useEffect, useState } from "../ui.js";
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
  const [text, setText] = useState(value);
  const [name] = useState(() => `refs-${(pickers += 1)}`);
  useEffect(() => setText(value), [value]);
  const choose = (chosen) => chosen.trim() && chosen.trim() !== value && onChosen(chosen.trim());
  return html`<label class=${`ref-picker ${isInline ? "inline" : ""}`}>
    <span class=${isInline ? "hidden" : ""}>${label}</span>
    <span class="field"><${Icon} name="branch" />
      <input list=${name} value=${text} spellcheck="false" autocapitalize="off" dir="auto"
        title="A branch, a tag, name@hash, name~2 or name*2026-01-31T12:00:00Z"
        onInput=${(event) => {
          setText(event.target.value);
          if (references.some((each) => each.name === event.target.value)) choose(event.target.value);
        }}
        onFocus=${(event) => event.target.select()}
        onChange=${(event) => choose(event.target.value)} />
    </span>
    <datalist id=${name}>${references.map((each) => html`<option value=${each.name}>${each.kind}${each.isDefault ? ", default" : ""}</option>`)}</datalist>
  </label>`;
}
