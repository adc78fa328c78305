// What screens are made of: Preact with its hooks, htm's templates, and signals. Nothing else imports the vendored files.

import { effect } from "./vendor/signals-core-1.14.5.js";
import { useLayoutEffect, useState } from "./vendor/htm-preact-standalone-3.1.1.js";

export {
  html,
  render,
  useCallback,
  useEffect,
  useErrorBoundary,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "./vendor/htm-preact-standalone-3.1.1.js";
export { batch, computed, effect, signal } from "./vendor/signals-core-1.14.5.js";

/** What is looked up by a name from outside: a plain object would have names of its own, such as constructor. */
export const byName = (entries = {}) => Object.assign(Object.create(null), entries);

/** The value of a signal; the component is drawn again when it changes. */
export function useSignalValue(source) {
  const [, redraw] = useState(0);
  const drawn = source.peek();
  useLayoutEffect(() => {
    let last = drawn;
    return effect(() => {
      const value = source.value;
      if (value !== last) {
        last = value;
        redraw((count) => count + 1);
      }
    });
  }, [source]);
  return drawn;
}
