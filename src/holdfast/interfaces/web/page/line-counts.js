// The lines that each visible moment added and removed, and its directories. A moment never changes, so each is requested once.

import { api } from "./api.js";
import { signal } from "./html.js";
import { changedFiles } from "./timeline-rows.js";

const MOST_FILES = 20;

/** @typedef {{added: number, removed: number, directories: number}} Lines lines of text, and the number of directories */

export class LineCounts {
  /** @param {string} session */
  constructor(session) {
    this.session = session;
    /** @type {Map<string, import("./html.js").Signal<Lines | null>>} */
    this.known = new Map();
    /** @type {Set<string>} */
    this.asked = new Set();
    /** @type {import("./timeline-rows.js").Outline[]} */
    this.wanted = [];
    this.isAsking = false;
  }

  /** Null until known; without lines if there are too many files or none has lines. @param {string} moment */
  of(moment) {
    const found = this.known.get(moment) ?? signal(/** @type {Lines | null} */ (null));
    this.known.set(moment, found);
    return found;
  }

  /** Sends one request at a time, so that a click on a moment waits for one at most. @param {import("./timeline-rows.js").Outline[]} moments */
  async want(moments) {
    this.wanted = moments.filter((one) => hasChanges(one) && !this.asked.has(one.id));
    if (this.isAsking) return;
    this.isAsking = true;
    for (let next = this.wanted.shift(); next; next = this.wanted.shift()) {
      this.asked.add(next.id);
      try {
        const limit = changedFiles(next) > MOST_FILES ? 1 : MOST_FILES;
        this.of(next.id).value = linesOf(await api.changesOf(this.session, next.id, limit));
      } catch {
        this.asked.delete(next.id); // requested again when it is next visible
      }
    }
    this.isAsking = false;
  }
}

/** @param {import("./timeline-rows.js").Outline} moment */
function hasChanges(moment) {
  return changedFiles(moment) > 0 && moment.kind !== "initial" && moment.restores_from === null;
}

/** @param {{files: {added_lines: number | null, removed_lines: number | null}[], next: string | null, total_directories: number}} page @returns {Lines} */
function linesOf({ files, next, total_directories }) {
  const lines = { added: 0, removed: 0, directories: total_directories };
  if (next !== null) return lines;
  const isKnown = files.every(({ added_lines, removed_lines }) => added_lines !== null && removed_lines !== null);
  for (const { added_lines, removed_lines } of isKnown ? files : []) {
    lines.added += added_lines ?? 0;
    lines.removed += removed_lines ?? 0;
  }
  return lines;
}
