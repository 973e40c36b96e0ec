// How many lines each moment in sight added and removed. A moment never changes, so each is asked for once.

import { api } from "./api.js";
import { signal } from "./html.js";
import { changedFiles } from "./timeline-rows.js";

const MOST_FILES = 20;

/** @typedef {{added: number, removed: number}} Lines */

export class LineCounts {
  /** @param {string} session */
  constructor(session) {
    this.session = session;
    /** @type {Map<string, import("./html.js").Signal<Lines | null>>} */
    this.known = new Map();
    /** @type {Set<string>} */
    this.asked = new Set();
    /** @type {string[]} */
    this.wanted = [];
    this.isAsking = false;
  }

  /** Null until it is known, and where the files are too many or have no lines. @param {string} moment */
  of(moment) {
    const found = this.known.get(moment) ?? signal(/** @type {Lines | null} */ (null));
    this.known.set(moment, found);
    return found;
  }

  /** Asks for one after the other, so that a click on a moment waits for one at most. @param {import("./timeline-rows.js").Outline[]} moments */
  async want(moments) {
    this.wanted = moments.filter((one) => hasLines(one) && !this.asked.has(one.id)).map((one) => one.id);
    if (this.isAsking) return;
    this.isAsking = true;
    for (let next = this.wanted.shift(); next; next = this.wanted.shift()) {
      this.asked.add(next);
      try {
        this.of(next).value = linesOf(await api.changesOf(this.session, next, MOST_FILES));
      } catch {
        this.asked.delete(next); // asked for again when it is next in sight
      }
    }
    this.isAsking = false;
  }
}

/** @param {import("./timeline-rows.js").Outline} moment */
function hasLines(moment) {
  const files = changedFiles(moment);
  return files > 0 && files <= MOST_FILES && moment.kind !== "initial" && moment.restores_from === null;
}

/** @param {{files: {added_lines: number | null, removed_lines: number | null}[], next: string | null}} page @returns {Lines | null} */
function linesOf({ files, next }) {
  const lines = { added: 0, removed: 0 };
  for (const { added_lines, removed_lines } of files) {
    if (added_lines === null || removed_lines === null) return null;
    lines.added += added_lines;
    lines.removed += removed_lines;
  }
  return next === null ? lines : null;
}
