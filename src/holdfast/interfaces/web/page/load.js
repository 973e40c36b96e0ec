// Asking the server for what a view shows: the answer, the failure, and only the newest of each.

import { useEffect, useRef, useState } from "./html.js";

/**
 * @template T
 * @typedef {object} Loaded
 * @property {T | null} value the last answer; it stays while the next one is on its way
 * @property {unknown} error
 * @property {boolean} busy
 * @property {() => void} again
 */

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | null} ask null where there is nothing to ask for
 * @param {unknown[]} inputs asks anew when one of them changes
 * @param {{keep?: boolean}} [how] whether the old answer stays until the new one is there
 * @returns {Loaded<T>}
 */
export function useLoaded(ask, inputs, how = {}) {
  const [state, setState] = useState(
    /** @type {{value: T | null, error: unknown, busy: boolean}} */ ({ value: null, error: null, busy: true }),
  );
  const [round, setRound] = useState(0);
  const inputsBefore = useRef(/** @type {unknown[]} */ ([]));
  useEffect(() => {
    const isSame =
      inputsBefore.current.length === inputs.length &&
      inputs.every((one, index) => one === inputsBefore.current[index]);
    inputsBefore.current = inputs;
    const stop = new AbortController();
    const asked = ask(stop.signal);
    if (asked === null) {
      setState({ value: null, error: null, busy: false });
      return;
    }
    setState((now) => ({ value: how.keep || isSame ? now.value : null, error: null, busy: true }));
    asked.then(
      (value) => stop.signal.aborted || setState({ value, error: null, busy: false }),
      (error) => stop.signal.aborted || setState((now) => ({ value: isSame ? now.value : null, error, busy: false })),
    );
    return () => stop.abort();
  }, [...inputs, round]);
  return { ...state, again: () => setRound((now) => now + 1) };
}
