// Which parts of a plan are restored: each path with a tick, and directories that stand for what is in them. Pure.
//
//   one row per path → a directory with several of them is a row too → a row's tick stands for the paths without rows below

import { countWords } from "./words.js";

/** @typedef {{type: string, path: string}} Operation */
/**
 * @typedef {object} ChoiceRow
 * @property {string} path
 * @property {string | null} type what happens to it; null for a directory that stays and has several paths that change
 * @property {boolean} isDirectory
 * @property {string[]} leaves the paths that its tick stands for: its own, or those below it
 */

/** @param {{operations: Operation[], affected_files: string[]}} plan @returns {ChoiceRow[]} a directory before its content */
export function choiceRows({ operations, affected_files }) {
  const files = new Set(affected_files);
  // Where a file takes the place of a directory or the other way round, the last step makes the new one.
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

/** The rows that happen: a directory comes to be for anything in it, and goes or changes with all of it. @param {ChoiceRow[]} rows @param {Set<string>} left */
export function chosenRows(rows, left) {
  return rows.filter((row) => {
    const part = chosenPart(row, left);
    return row.type !== null && (part === "all" || (part === "some" && row.type === "mkdir"));
  });
}

/** The same as paths to ask for. Directories that come to be for a path in them need not be named. @param {ChoiceRow[]} rows @param {Set<string>} left */
export function chosenPaths(rows, left) {
  return chosenRows(rows, left)
    .filter((row) => row.type !== "mkdir" || isLeaf(row))
    .map((row) => row.path);
}

/** Without the paths of a row, or with all of them again. @param {ChoiceRow} row @param {Set<string>} left */
export function toggled(row, left) {
  const next = new Set(left);
  const isChosen = chosenPart(row, left) === "all";
  for (const path of row.leaves) isChosen ? next.add(path) : next.delete(path);
  return next;
}

/** The paths that stay where only missing ones come back. @param {ChoiceRow[]} rows */
export function presentPaths(rows) {
  return rows.filter((row) => isLeaf(row) && deed(row.type ?? "") !== "create").map((row) => row.path);
}

/** @param {string} type @returns {"create" | "delete" | "rewrite"} */
export function deed(type) {
  if (type === "create" || type === "mkdir") return "create";
  return type === "delete" || type === "rmdir" ? "delete" : "rewrite";
}

/** What a plan or a restore changes: "37 files and 2 directories". @param {{operations: Operation[], affected_files: string[]}} plan */
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

/** A directory stands right before its content. @param {string} one @param {string} other */
function byPlace(one, other) {
  const [first, second] = [one.replaceAll("/", "\0"), other.replaceAll("/", "\0")];
  return first < second ? -1 : first > second ? 1 : 0;
}
