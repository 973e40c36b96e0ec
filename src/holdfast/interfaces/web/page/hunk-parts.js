// The changes inside a hunk that can be restored one by one, and those that later changes have replaced.
//
//   the hunk's changes, without context lines → the changes between its older side and now
//   → a change with the same name still exists
//
// The name of a change depends on its position on the older side and on its lines.

import { api } from "./api.js";
import { useLoaded } from "./load.js";

/** @typedef {import("./diff-lines.js").Hunk} Hunk */

/**
 * @typedef {object} ChosenLines the hunk that the user wants to restore, as shown
 * @property {string} path
 * @property {Hunk} hunk
 * @property {string | null} newer the moment on its newer side; null for the current workspace
 */

/**
 * @param {string} session @param {string} older @param {ChosenLines | undefined} lines
 * @returns {import("./load.js").Loaded<{there: Hunk[], gone: Hunk[]}>} empty if no lines are chosen
 */
export function useHunkParts(session, older, lines) {
  return useLoaded(
    async (stop) => {
      if (!lines) return { there: [], gone: [] };
      const changesUpTo = (/** @type {string | null} */ newer) =>
        changesWithin(lines, (from) =>
          api.diff(session, { older, newer }, { path: lines.path, context: 0, hunks_from: from }, stop),
        );
      const now = await changesUpTo(null);
      const shown = lines.newer === null ? now : await changesUpTo(lines.newer);
      const known = new Set(now.map((one) => one.id));
      return {
        there: shown.filter((one) => known.has(one.id)),
        gone: shown.filter((one) => !known.has(one.id)),
      };
    },
    [session, older, lines?.hunk.id, lines?.newer],
  );
}

/**
 * The changes inside the chosen hunk. A large difference comes in pieces, which may split a change.
 * @param {ChosenLines} lines @param {(from: string | null) => Promise<any>} ask @returns {Promise<Hunk[]>}
 */
async function changesWithin({ hunk }, ask) {
  /** @type {Map<string | undefined, Hunk>} */
  const found = new Map();
  /** @type {string | null} */
  let next = null;
  do {
    const file = /** @type {{hunks: Hunk[], hunks_next: string | null} | undefined} */ ((await ask(next)).files[0]);
    const hunks = file?.hunks ?? [];
    for (const one of hunks) {
      const known = found.get(one.id);
      if (known) found.set(one.id, { ...known, lines: [...known.lines, ...one.lines] });
      else if (isInside(one, hunk)) found.set(one.id, one);
    }
    const isPast = (hunks.at(-1)?.old_start ?? 0) > hunk.old_start + hunk.old_lines;
    next = isPast ? null : (file?.hunks_next ?? null);
  } while (next !== null);
  return [...found.values()];
}

/** @param {Hunk} part @param {Hunk} whole */
function isInside(part, whole) {
  const [inner, outer] = [oldRange(part), oldRange(whole)];
  return outer[0] <= inner[0] && inner[1] <= outer[1];
}

/** Its lines on the older side, counted from 0. @param {Hunk} hunk @returns {[number, number]} */
function oldRange(hunk) {
  const first = hunk.old_start - (hunk.old_lines > 0 ? 1 : 0);
  return [first, first + hunk.old_lines];
}
