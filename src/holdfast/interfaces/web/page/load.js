// Asking the server for what a view shows: the answer, the failure, and only the newest of each.

import { useEffect, useState } from "./html.js";

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
    /** @type {{value: T | null, error: unknown, busy: boolean, inputs: unknown[]}} */ ({
      value: null,
      error: null,
      busy: true,
      inputs,
    }),
  );
  const [round, setRound] = useState(0);
  // Effects run after the picture: until then, the state still belongs to the inputs before.
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
