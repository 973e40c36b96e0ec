// The lines of a hunk for display: numbers, colours, changed words. Pure.

/**
 * @typedef {object} Hunk
 * @property {number} old_start @property {number} old_lines @property {number} new_start @property {number} new_lines
 * @property {string} heading @property {string[]} lines
 * @property {[string, number][][] | null} [colours] for each line: pairs of a class and a length
 * @property {number} [number] @property {string} [id]
 */

/** @typedef {{text: string, class: string, changed: boolean}} Piece */
/** @typedef {{kind: "a" | "r" | "c" | "x", old: number | null, new: number | null, text: string, pieces: Piece[]}} Line */

const MOST_WORDS = 120;

/** @param {Hunk} hunk @returns {Line[]} */
export function hunkLines(hunk) {
  let [old, now] = [hunk.old_start, hunk.new_start];
  /** @type {Line[]} */
  const lines = hunk.lines.map((line, index) => {
    const text = line.slice(1);
    const pieces = coloured(text, hunk.colours?.[index]);
    if (line[0] === "+") return { kind: "a", old: null, new: now++, text, pieces };
    if (line[0] === "-") return { kind: "r", old: old++, new: null, text, pieces };
    if (line[0] === "\\")
      return { kind: "x", old: null, new: null, text: line.slice(2), pieces: coloured(line.slice(2)) };
    return { kind: "c", old: old++, new: now++, text, pieces };
  });
  markWords(lines);
  return lines;
}

/** @param {string} text @param {[string, number][]} [colours] @returns {Piece[]} */
export function coloured(text, colours) {
  if (!colours || colours.length === 0) return [{ text, class: "", changed: false }];
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const [name, length] of colours) {
    if (at >= text.length) break;
    const before = pieces.at(-1);
    if (before && before.class === name) before.text += text.slice(at, at + length);
    else pieces.push({ text: text.slice(at, at + length), class: name, changed: false });
    at += length;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), class: "", changed: false });
  return pieces;
}

/** Marks changed words if removed lines are followed by the same number of added lines. @param {Line[]} lines */
function markWords(lines) {
  for (let start = 0; start < lines.length; start++) {
    if (lines[start].kind !== "r") continue;
    let middle = start;
    while (lines[middle]?.kind === "r") middle++;
    let end = middle;
    while (lines[end]?.kind === "a") end++;
    if (end - middle === middle - start) {
      for (let index = 0; index < middle - start; index++) markPair(lines[start + index], lines[middle + index]);
    }
    start = end - 1;
  }
}

/** @param {Line} removed @param {Line} added */
function markPair(removed, added) {
  const [old, now] = [words(removed.text), words(added.text)];
  if (old.length > MOST_WORDS || now.length > MOST_WORDS) return;
  const [keptOld, keptNow] = common(old, now);
  const kept = old.reduce((sum, word, index) => sum + (keptOld[index] ? word.length : 0), 0);
  if (kept * 3 < Math.max(removed.text.length, added.text.length)) return; // a different line, not a changed one
  removed.pieces = withChanges(removed.pieces, old, keptOld);
  added.pieces = withChanges(added.pieces, now, keptNow);
}

/** @param {string} text @returns {string[]} */
function words(text) {
  return text.match(/\w+|\s+|[^\w\s]/gu) ?? [];
}

/** Which words of both are in their longest common subsequence. @param {string[]} old @param {string[]} now */
function common(old, now) {
  const width = now.length + 1;
  const best = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      best[i * width + j] =
        old[i] === now[j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const [keptOld, keptNow] = [new Uint8Array(old.length), new Uint8Array(now.length)];
  for (let i = 0, j = 0; i < old.length && j < now.length;) {
    if (old[i] === now[j]) keptOld[i++] = keptNow[j++] = 1;
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return [keptOld, keptNow];
}

/** @param {Piece[]} pieces @param {string[]} parts @param {Uint8Array} kept @returns {Piece[]} */
function withChanges(pieces, parts, kept) {
  /** @type {Piece[]} */
  const found = [];
  let piece = 0;
  let inPiece = 0;
  parts.forEach((part, index) => {
    let left = part.length;
    while (left > 0 && piece < pieces.length) {
      const take = Math.min(left, pieces[piece].text.length - inPiece);
      const text = pieces[piece].text.slice(inPiece, inPiece + take);
      const [before, changed] = [found.at(-1), kept[index] === 0];
      if (before && before.class === pieces[piece].class && before.changed === changed) before.text += text;
      else found.push({ text, class: pieces[piece].class, changed });
      left -= take;
      inPiece += take;
      if (inPiece === pieces[piece].text.length) [piece, inPiece] = [piece + 1, 0];
    }
  });
  return found;
}

/** Two columns: old on the left, new on the right. @param {Line[]} lines @returns {[Line | null, Line | null][]} */
export function sideBySide(lines) {
  /** @type {[Line | null, Line | null][]} */
  const rows = [];
  for (let index = 0; index < lines.length;) {
    const line = lines[index];
    if (line.kind === "c" || line.kind === "x") {
      rows.push([line, line]);
      index++;
      continue;
    }
    const [removed, added] = [/** @type {Line[]} */ ([]), /** @type {Line[]} */ ([])];
    // A remark, such as a missing line end, belongs to the line before it.
    while (lines[index]?.kind === "r" || (lines[index]?.kind === "x" && removed.length > 0))
      removed.push(lines[index++]);
    while (lines[index]?.kind === "a" || (lines[index]?.kind === "x" && added.length > 0)) added.push(lines[index++]);
    for (let row = 0; row < Math.max(removed.length, added.length); row++)
      rows.push([removed[row] ?? null, added[row] ?? null]);
  }
  return rows;
}

/** The reverse hunk: from the newer side to the older one. @param {Hunk} hunk @returns {Hunk} */
export function reversed(hunk) {
  const lines = /** @type {string[]} */ ([]);
  const colours = /** @type {[string, number][][]} */ ([]);
  /** @type {{removed: number[], added: number[]}} */
  let run = { removed: [], added: [] };
  const flush = () => {
    for (const index of [...run.added, ...run.removed]) {
      lines.push((hunk.lines[index][0] === "+" ? "-" : "+") + hunk.lines[index].slice(1));
      colours.push(hunk.colours?.[index] ?? []);
    }
    run = { removed: [], added: [] };
  };
  hunk.lines.forEach((line, index) => {
    if (line[0] === "-") run.removed.push(index);
    else if (line[0] === "+") run.added.push(index);
    else {
      flush();
      lines.push(line);
      colours.push(hunk.colours?.[index] ?? []);
    }
  });
  flush();
  return {
    ...hunk,
    old_start: hunk.new_start,
    old_lines: hunk.new_lines,
    new_start: hunk.old_start,
    new_lines: hunk.old_lines,
    lines,
    colours,
  };
}

/** The hunk as a patch, to copy. @param {Hunk} hunk @param {string} path */
export function patchText(hunk, path) {
  const place = `@@ -${hunk.old_start},${hunk.old_lines} +${hunk.new_start},${hunk.new_lines} @@ ${hunk.heading}`;
  return [`--- a/${path}`, `+++ b/${path}`, place, ...hunk.lines, ""].join("\n");
}
