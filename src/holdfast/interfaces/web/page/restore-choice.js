// Which parts of a plan are restored: a checkbox per path, and one per directory for its content. Pure.
//
//   one row per path → also a row for a directory with several paths → its checkbox covers the paths below it

import { countWords } from "./words.js";

/** @typedef {{type: string, path: string}} Operation */
/**
 * @typedef {object} ChoiceRow
 * @property {string} path
 * @property {string | null} type its change; null for an unchanged directory with several changed paths
 * @property {boolean} isDirectory
 * @property {string[]} leaves the paths that its checkbox covers: its own, or those below it
 */

/** @param {{operations: Operation[], affected_files: string[]}} plan @returns {ChoiceRow[]} a directory before its content */
export function choiceRows({ operations, affected_files }) {
  const files = new Set(affected_files);
  // If a file replaces a directory or the reverse, the last step creates the new one.
  const types = new Map(operations.map((one) => [one.path, one.type]));
  /** @type {Map<string, Set<string>>} */
  const children = new Map();
  for (const path of types.keys())
    for (let below = path, above = parent(path); above; [below, above] = [above, parent(above)])
      children.set(above, (children.get(above) ?? new Set()).add(below));
  /** @type {Map<string, string[]>} */
  const leaves = new Map();
  for (const path of types.keys()) {
    if (children.has(path)) continue;
    for (let above = path; above; above = parent(above)) {
      const found = leaves.get(above) ?? [];
      found.push(path);
      leaves.set(above, found);
    }
  }
  const groups = [...children].flatMap(([path, below]) => (below.size > 1 && !types.has(path) ? [path] : []));
  return [...types.keys(), ...groups].sort(byPlace).map((path) => {
    const type = types.get(path) ?? null;
    return {
      path,
      type,
      isDirectory: type === null || type === "mkdir" || type === "rmdir" || !files.has(path),
      leaves: leaves.get(path) ?? [],
    };
  });
}

/** Whether nothing below it changes. @param {ChoiceRow} row */
export function isLeaf(row) {
  return row.leaves[0] === row.path;
}

/** How much of a row is chosen. @param {ChoiceRow} row @param {Set<string>} left @returns {"all" | "some" | "none"} */
export function chosenPart(row, left) {
  const kept = row.leaves.filter((path) => left.has(path)).length;
  return kept === 0 ? "all" : kept < row.leaves.length ? "some" : "none";
}

/** The effective rows: a directory is created for any path in it, and deleted or changed only with all of them. @param {ChoiceRow[]} rows @param {Set<string>} left */
export function chosenRows(rows, left) {
  return rows.filter((row) => {
    const part = chosenPart(row, left);
    return row.type !== null && (part === "all" || (part === "some" && row.type === "mkdir"));
  });
}

/** The same as request paths. Directories that are created for a path in them need not be listed. @param {ChoiceRow[]} rows @param {Set<string>} left */
export function chosenPaths(rows, left) {
  return chosenRows(rows, left)
    .filter((row) => row.type !== "mkdir" || isLeaf(row))
    .map((row) => row.path);
}

/** Excludes the paths of a row, or includes all of them again. @param {ChoiceRow} row @param {Set<string>} left */
export function toggled(row, left) {
  const next = new Set(left);
  const isChosen = chosenPart(row, left) === "all";
  for (const path of row.leaves) isChosen ? next.add(path) : next.delete(path);
  return next;
}

/** The paths to exclude if only deleted ones are restored. @param {ChoiceRow[]} rows */
export function presentPaths(rows) {
  return rows.filter((row) => isLeaf(row) && deed(row.type ?? "") !== "create").map((row) => row.path);
}

/** @param {string} type @returns {"create" | "delete" | "rewrite"} */
export function deed(type) {
  if (type === "create" || type === "mkdir") return "create";
  return type === "delete" || type === "rmdir" ? "delete" : "rewrite";
}

/** The changes of a plan or restore: "37 files and 2 directories". @param {{operations: Operation[], affected_files: string[]}} plan */
export function changedWords(plan) {
  return rowWords(choiceRows(plan).filter((row) => row.type !== null));
}

/** @param {ChoiceRow[]} rows */
export function rowWords(rows) {
  const directories = rows.filter((row) => row.isDirectory).length;
  return countWords(rows.length - directories, directories);
}

/** @param {string} path */
function parent(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Sorts a directory directly before its content. @param {string} one @param {string} other */
function byPlace(one, other) {
  const [first, second] = [one.replaceAll("/", "\0"), other.replaceAll("/", "\0")];
  return first < second ? -1 : first > second ? 1 : 0;
}
