// What a screen shows of the server: loaded, loaded again, and left alone when another question was asked meanwhile.

import { useCallback, useEffect, useRef, useSignalValue, useState } from "./ui.js";
import { revivals } from "./api.js";

const WAITING = { data: undefined, error: null, isLoading: true };
const POLL_MS = 2000;

/**
 * Load something. Of several questions the last one counts: answers to earlier ones are cancelled.
 *
 * key      a text; another one is another question. null: there is nothing to ask yet
 * load     (AbortSignal) => promise
 * every    reload after so many milliseconds, while the tab is visible; a function of the data may say so, or null
 */
export function useResource(key, load, { every = null, keeps = false } = {}) {
  const [state, setState] = useState(WAITING);
  const [round, setRound] = useState(0);
  const shown = useRef(null);
  const revived = useSignalValue(revivals);
  useEffect(() => {
    if (key === null) {
      setState({ data: undefined, error: null, isLoading: false });
      return undefined;
    }
    const stopper = new AbortController();
    const isSame = shown.current === key;
    shown.current = key;
    setState((before) => (isSame || keeps ? { ...before, isLoading: true } : WAITING));
    load(stopper.signal).then(
      (data) => !stopper.signal.aborted && setState({ data, error: null, isLoading: false }),
      (error) => {
        if (stopper.signal.aborted) return;
        setState((before) => ({ data: isSame ? before.data : undefined, error, isLoading: false }));
      },
    );
    return () => stopper.abort();
  }, [key, round, revived]);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  const wait = typeof every === "function" ? (state.data === undefined ? null : every(state.data)) : every;
  useTicks(state.isLoading ? null : wait, reload);
  return { ...state, key, reload };
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
 * A list that comes in pages: {items, first, isLoading, isOver, error, more, reload}.
 *
 * load     (pageToken or undefined, AbortSignal) => promise of an answer with nextPageToken
 * itemsOf  the items of an answer. Empty pages that are not the last are passed over, as many as patience allows
 */
export function usePages(key, load, itemsOf, { patience = 50 } = {}) {
  const [state, setState] = useState({ items: [], first: null, token: undefined, isLoading: true, isOver: false, error: null });
  const [round, setRound] = useState(0);
  const stopper = useRef(null);
  const revived = useSignalValue(revivals);

  const read = useCallback(
    async (from, before) => {
      const own = new AbortController();
      stopper.current = own;
      let { items, first } = before;
      let token = from;
      try {
        for (let number = 0; number < patience; number += 1) {
          const answer = await load(token ?? undefined, own.signal);
          if (own.signal.aborted) return;
          const added = itemsOf(answer);
          first = first ?? answer;
          items = added.length ? [...items, ...added] : items;
          token = answer.nextPageToken;
          const isOver = token == null;
          const isEnough = isOver || added.length > 0 || number === patience - 1;
          setState({ items, first, last: answer, token, isLoading: !isEnough, isOver, error: null });
          if (isEnough) return;
        }
      } catch (error) {
        if (!own.signal.aborted) setState({ items, first, token, isLoading: false, isOver: false, error });
      }
    },
    [key],
  );

  useEffect(() => {
    if (key === null) return undefined;
    setState({ items: [], first: null, token: undefined, isLoading: true, isOver: false, error: null });
    read(undefined, { items: [], first: null });
    return () => stopper.current?.abort();
  }, [key, round, revived]);

  const more = () => {
    if (!state.isLoading && !state.isOver && !state.error) {
      setState({ ...state, isLoading: true });
      read(state.token, state);
    }
  };
  return { ...state, more, reload: useCallback(() => setRound((number) => number + 1), []) };
}

/** Do something once at a time: {run, isRunning, error, clear}. run resolves to true where it succeeded. */
export function useAction(act) {
  const [state, setState] = useState({ isRunning: false, error: null });
  const running = useRef(false);
  const run = async (...given) => {
    if (running.current) return false;
    running.current = true;
    setState({ isRunning: true, error: null });
    try {
      await act(...given);
      setState({ isRunning: false, error: null });
      return true;
    } catch (error) {
      setState({ isRunning: false, error });
      return false;
    } finally {
      running.current = false;
    }
  };
  return { ...state, run, clear: () => setState({ isRunning: false, error: null }) };
}
