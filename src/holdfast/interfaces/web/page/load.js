// Loads a view's data: the newest answer and the newest error.

import { useEffect, useState } from "./html.js";

/**
 * @template T
 * @typedef {object} Loaded
 * @property {T | null} value the last answer; kept while the next one is loading
 * @property {unknown} error
 * @property {boolean} busy
 * @property {() => void} again
 */

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | null} ask null if there is nothing to load
 * @param {unknown[]} inputs reloads when one of them changes
 * @param {{keep?: boolean}} [how] whether to keep the old answer until the new one arrives
 * @returns {Loaded<T>}
 */
export function useLoaded(ask, inputs, how = {}) {
  const [state, setState] = useState(
    /** @type {{value: T | null, error: unknown, busy: boolean, inputs: unknown[]}} */ ({
      value: null,
      error: null,
      busy: true,
      inputs,
    }),
  );
  const [round, setRound] = useState(0);
  // Effects run after the render; until then, the state belongs to the previous inputs.
  const isCurrent = areSame(state.inputs, inputs);
  const known = isCurrent || how.keep ? state.value : null;
  useEffect(() => {
    const stop = new AbortController();
    const asked = ask(stop.signal);
    if (asked === null) {
      setState({ value: null, error: null, busy: false, inputs });
      return;
    }
    setState({ value: known, error: null, busy: true, inputs });
    asked.then(
      (value) => stop.signal.aborted || setState({ value, error: null, busy: false, inputs }),
      (error) => stop.signal.aborted || setState({ value: known, error, busy: false, inputs }),
    );
    return () => stop.abort();
  }, [...inputs, round]);
  const { value, error, busy } = isCurrent ? state : { value: known, error: null, busy: true };
  return { value, error, busy, again: () => setRound((now) => now + 1) };
}

/** @param {unknown[]} one @param {unknown[]} other */
function areSame(one, other) {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}
