// What a screen shows of the server: loaded, loaded again, and left alone when another question was asked meanwhile.

import { useCallback, useEffect, useRef, useSignalValue, useState } from "./ui.js";
import { revivals } from "./api.js";

const WAITING = { data: undefined, error: null, isLoading: true };
const NOTHING = { data: undefined, error: null, isLoading: false };
const NO_PAGES = { items: [], first: null, last: null, token: undefined, isLoading: true, isOver: false, error: null };
const POLL_MS = 2000;

/**
 * Load something. Of several questions the last one counts: answers to earlier ones are cancelled, and never shown as one to it.
 *
 * key      a text; another one is another question. null: there is nothing to ask yet
 * load     (AbortSignal) => promise
 * every    reload after so many milliseconds, while the tab is visible; a function of the data may say so, or null
 * keeps    show the answer to the question before until there is another
 */
export function useResource(key, load, { every = null, keeps = false } = {}) {
  const [state, setState] = useState({ ...WAITING, of: key });
  const [round, setRound] = useState(0);
  const revived = useSignalValue(revivals);
  useEffect(() => {
    if (key === null) {
      setState({ ...NOTHING, of: key });
      return undefined;
    }
    const stopper = new AbortController();
    setState((now) => (now.of === key || keeps ? { ...now, isLoading: true, of: key } : { ...WAITING, of: key }));
    load(stopper.signal).then(
      (data) => !stopper.signal.aborted && setState({ data, error: null, isLoading: false, of: key }),
      (error) => !stopper.signal.aborted && setState((now) => ({ ...now, error, isLoading: false })),
    );
    return () => stopper.abort();
  }, [key, round, revived]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  const shown = state.of === key || keeps ? state : key === null ? NOTHING : WAITING;
  const wait = typeof every === "function" ? (shown.data === undefined ? null : every(shown.data)) : every;
  useTicks(shown.isLoading ? null : wait, reload);
  return { data: shown.data, error: shown.error, isLoading: shown.isLoading, key, reload };
}

/** Call a function after a while, again and again, but not while nobody looks. */
function useTicks(wait, call) {
  useEffect(() => {
    if (wait === null) return undefined;
    let timer = 0;
    const begin = () => {
      window.clearTimeout(timer);
      if (document.visibilityState === "visible") timer = window.setTimeout(call, wait);
    };
    const look = () => (document.visibilityState === "visible" ? call() : window.clearTimeout(timer));
    begin();
    document.addEventListener("visibilitychange", look);
    return () => {
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [wait, call]);
}

export const whileActive = (isActive) => (data) => (isActive(data) ? POLL_MS : POLL_MS * 5);

/**
 * A list that comes in pages: {items, first, last, isLoading, isOver, error, more, retry, reload}. What is loaded again stays until it is there.
 *
 * load     (pageToken or undefined, AbortSignal) => promise of an answer with nextPageToken
 * itemsOf  the items of an answer. Empty pages that are not the last are passed over, as many as patience allows; then more goes on
 */
export function usePages(key, load, itemsOf, { patience = 50 } = {}) {
  const [state, setState] = useState({ ...NO_PAGES, of: key });
  const [round, setRound] = useState(0);
  const reading = useRef(null);
  const revived = useSignalValue(revivals);

  const read = async (from, before) => {
    const own = new AbortController();
    reading.current = own;
    let { items, first } = before;
    let token = from;
    try {
      for (let number = 1; ; number += 1) {
        const answer = await load(token, own.signal);
        if (own.signal.aborted) return;
        const added = itemsOf(answer);
        first = first ?? answer;
        items = added.length ? [...items, ...added] : items;
        token = answer.nextPageToken ?? undefined;
        const isOver = token === undefined;
        const isEnough = isOver || added.length > 0 || number >= patience;
        if (isEnough) reading.current = null;
        setState((now) => ({ items: items.length || isEnough ? items : now.items, first, last: answer, token, isLoading: !isEnough, isOver, error: null, of: key }));
        if (isEnough) return;
      }
    } catch (error) {
      if (own.signal.aborted) return;
      reading.current = null;
      setState((now) => ({ ...now, token, isLoading: false, error }));
    }
  };
  useEffect(() => {
    if (key === null) return undefined;
    setState((now) => (now.of === key ? { ...now, token: undefined, isLoading: true, error: null } : { ...NO_PAGES, of: key }));
    read(undefined, { items: [], first: null });
    return () => {
      reading.current?.abort();
      reading.current = null;
    };
  }, [key, round, revived]);

  const goOn = () => {
    if (reading.current || state.of !== key) return;
    setState({ ...state, isLoading: true, error: null });
    read(state.token, state);
  };
  const reload = useCallback(() => setRound((number) => number + 1), []);
  return {
    ...(state.of === key ? state : NO_PAGES),
    more: () => !state.isOver && !state.error && goOn(),
    retry: () => (state.token === undefined ? reload() : goOn()),
    reload,
  };
}

/**
 * Do something once at a time: {run, isRunning, error}.
 *
 * run      (…) => promise of how it ended: {answer} or {error}; of null where it was not begun, as it is still being done
 */
export function useAction(act) {
  const [state, setState] = useState({ isRunning: false, error: null });
  const running = useRef(false);
  const run = async (...given) => {
    if (running.current) return null;
    running.current = true;
    setState({ isRunning: true, error: null });
    try {
      const answer = await act(...given);
      setState({ isRunning: false, error: null });
      return { answer };
    } catch (error) {
      setState({ isRunning: false, error });
      return { error };
    } finally {
      running.current = false;
    }
  };
  return { ...state, run };
}
