// Fields whose text is read when their form is sent.

import { html, useLayoutEffect, useRef } from "../ui.js";

/** It takes a value over when that changes, and leaves what somebody types alone in between: drawing a screen again must not wipe it. */
export function TextField({ value = "", ...more }) {
  const field = useRef(null);
  useLayoutEffect(() => {
    field.current.value = value;
  }, [value]);
  return html`<input ref=${field} ...${more} />`;
}
