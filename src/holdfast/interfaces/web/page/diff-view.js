// The changes between two moments: the comparison, the list of files, and each file's lines.
//
// The left side is always the older state, and "Restore" always restores the left side.

import { Problem, api } from "./api.js";
import { DiffFile, KindMark, LineCounts, canRestoreLines, shownPath } from "./diff-file.js";
import { plural } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { left, oneColumn, twoColumns } from "./icons.js";
import { useKeys } from "./keys.js";
import { useLoaded } from "./load.js";
import { PathName } from "./path-name.js";
import { Empty, Loading, Refused } from "./states.js";
import { sayProblem } from "./toast.js";
import { countWords } from "./words.js";

/** @typedef {import("./diff-file.js").ChangedFile} ChangedFile */
/** @typedef {"before" | "message" | "now" | "first" | string} Comparison */
/** @typedef {(moment: string, choice: import("./api.js").RestoreChoice, lines?: import("./hunk-parts.js").ChosenLines) => void} Restore */

const NAMED = ["before", "message", "now", "first"];

const FILES_AT_ONCE = 100;
const OPEN_LINES = 600;
const LIST_FROM = 2;
const SPLIT_KEY = "holdfast-split";

/**
 * @param {object} props
 * @param {string} props.session
 * @param {{id: string, parent: string | null, changed: any} | null} props.moment
 * @param {Comparison} props.comparison
 * @param {(comparison: Comparison) => void} props.compare
 * @param {number} props.workspaceVersion increases when the workspace may have changed
 * @param {string} props.backTo
 * @param {string | null} props.asked the state before the last message to the agent
 * @param {() => void} props.pick lets the user choose another moment to compare with
 * @param {Restore} props.restore
 */
export function DiffView({ session, moment, comparison, compare, asked, pick, workspaceVersion, backTo, restore }) {
  const ends = moment && endsOf(moment, comparison, asked);
  const version = ends?.newer === null ? workspaceVersion : 0;
  // A comparison with now is reloaded while an agent works: as many files as were shown, in place.
  const shown = useRef({ ends: "", files: FILES_AT_ONCE });
  const key = `${ends?.older} ${ends?.newer}`;
  if (shown.current.ends !== key) shown.current = { ends: key, files: FILES_AT_ONCE };
  const loaded = useLoaded(
    (stop) =>
      ends
        ? api
            .diff(session, ends, { limit: shown.current.files }, stop)
            .then((/** @type {any} */ found) => ({ key, found }))
        : null,
    [session, ends?.older, ends?.newer, version],
    { keep: true },
  );
  const [split, setSplit] = useState(() => stored() === "split");
  const chooseSplit = (/** @type {boolean} */ chosen) => (setSplit(chosen), store(chosen ? "split" : "unified"));
  const isOther = !NAMED.includes(comparison);
  /** @param {Comparison} one @param {string} words @param {string} why */
  const choice = (one, words, why) =>
    html`<button aria-pressed=${comparison === one} title=${why} onClick=${() => compare(one)}>${words}</button>`;
  const found = loaded.value?.key === key ? loaded.value.found : null;
  return html`<section class="pane changes" aria-label="Changes" tabindex="-1">
    <a class="back" href=${backTo}>${left} Moment</a>
    <div class="diff-bar">
      <div class="choice" role="group" aria-label="Compare with">
        ${choice("before", "Previous step", "What this step changed")}
        ${asked && choice("message", "Message", "What changed between your message and this moment")}
        ${choice("now", "Now", "What has changed since")}
        ${choice("first", "Start", "What the session has changed up to here")}
        <button aria-pressed=${isOther} title="Choose another moment (or Shift-click it)" onClick=${pick}>Other…</button>
      </div>
      <span class="sum" aria-live="polite">${found && ends && sumWords(found, comparison)}</span>
      <div class="choice" role="group" aria-label="Layout">
        <button class="icon-button" aria-pressed=${!split} aria-label="Unified" title="Unified: one column"
          onClick=${() => chooseSplit(false)}>${oneColumn}</button>
        <button class="icon-button" aria-pressed=${split} aria-label="Split" title="Split: before and after side by side"
          onClick=${() => chooseSplit(true)}>${twoColumns}</button>
      </div>
    </div>
    ${
      !moment
        ? null
        : loaded.error && !found
          ? html`<${Refused} doing="The changes could not be loaded" error=${loaded.error} again=${loaded.again} />`
          : !found
            ? html`<${Loading} label="Loading the changes" />`
            : found.files.length === 0
              ? html`<${NothingChanged} comparison=${comparison} compare=${compare} />`
              : html`<${ChangedFiles} key=${key} session=${session} ends=${ends} found=${found} split=${split} workspaceVersion=${workspaceVersion}
                restore=${restore} listed=${(/** @type {number} */ files) => (shown.current.files = files)} />`
    }
  </section>`;
}

/** @param {{id: string}} moment @param {Comparison} comparison @param {string | null} asked @returns {{older: string | null, newer: string | null}} */
function endsOf(moment, comparison, asked) {
  if (comparison === "message" && asked) return { older: asked, newer: moment.id };
  if (comparison === "before" || comparison === "message") return { older: null, newer: moment.id };
  if (comparison === "now") return { older: moment.id, newer: null };
  return { older: comparison === "first" ? "initial" : comparison, newer: moment.id };
}

/** @param {any} found @param {Comparison} comparison */
function sumWords(found, comparison) {
  const words =
    comparison === "before"
      ? "in this step"
      : comparison === "message"
        ? "since your message"
        : comparison === "now"
          ? "since this moment"
          : comparison === "first"
            ? "since the start"
            : "between the two moments";
  if (found.files.length === 0) return "";
  const total = { added_lines: 0, removed_lines: 0 };
  for (const file of found.files) {
    total.added_lines += file.added_lines ?? 0;
    total.removed_lines += file.removed_lines ?? 0;
  }
  const counted = countWords(found.total_files - found.total_directories, found.total_directories);
  return html`${counted} <${LineCounts} file=${total} /> ${words}`;
}

/** @param {{comparison: Comparison, compare: (comparison: Comparison) => void}} props */
function NothingChanged({ comparison, compare }) {
  if (comparison === "before") {
    return html`<${Empty} title="Nothing changed in this step"><p>The files were the same as in the previous step.</p>
      <button onClick=${() => compare("now")}>Compare with now</button><//>`;
  }
  return html`<${Empty} title="Nothing changed"><p>
    ${comparison === "now" ? "Your files are exactly as they were at this moment." : "Both states have the same files."}</p><//>`;
}

/**
 * @param {object} props
 * @param {string} props.session
 * @param {{older: string | null, newer: string | null}} props.ends
 * @param {{from: string | null, files: ChangedFile[], next: string | null, total_files: number}} props.found
 * @param {boolean} props.split
 * @param {number} props.workspaceVersion
 * @param {Restore} props.restore
 * @param {(files: number) => void} props.listed
 */
function ChangedFiles({ session, ends, found, split, workspaceVersion, restore, listed }) {
  const [files, setFiles] = useState(found.files);
  const [next, setNext] = useState(found.next);
  useEffect(() => {
    setFiles((now) => found.files.map((file) => now.find((known) => isStill(known, file)) ?? file));
    setNext(found.next);
  }, [found]);
  useEffect(() => listed(Math.max(FILES_AT_ONCE, files.length)), [files.length]);
  const [folded, setFolded] = useState(() => firstFolded(found.files));
  const [at, setAt] = useState(/** @type {{file: number, hunk: number | null}} */ ({ file: -1, hunk: null }));
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const whole = { session, older: found.from, newer: ends.newer };

  // A file that equals its state before the step has nothing to restore.
  const pending = useLoaded(
    (stop) => (whole.older && whole.newer ? pathsToRestore(session, whole.older, files, stop) : null),
    [session, whole.older, whole.newer, files.length, workspaceVersion],
    { keep: true },
  );
  const isBack = (/** @type {ChangedFile} */ file) =>
    pending.value !== null && !pathsOf(file).some((path) => pending.value?.some((one) => isWithin(path, one)));

  const fold = (/** @type {string} */ path) => {
    const next = new Set(folded);
    if (!next.delete(path)) next.add(path);
    setFolded(next);
  };
  const loadHunks = async (/** @type {ChangedFile} */ file) => {
    try {
      const answer = await api.diff(session, ends, { path: file.path, hunks_from: file.hunks_next });
      setFiles((now) =>
        now.map((one) =>
          one.path === file.path && answer.files[0]
            ? { ...one, hunks: [...one.hunks, ...answer.files[0].hunks], hunks_next: answer.files[0].hunks_next }
            : one,
        ),
      );
    } catch (error) {
      sayProblem(error, "The change could not be shown");
    }
  };
  const loadFiles = async () => {
    try {
      const answer = await api.diff(session, ends, { limit: FILES_AT_ONCE, cursor: next });
      const added = answer.files.filter(
        (/** @type {ChangedFile} */ file) => !files.some((one) => one.path === file.path),
      );
      setFolded((now) => new Set([...now, ...added.map((/** @type {ChangedFile} */ file) => file.path)]));
      setFiles((now) => [...now, ...added]);
      setNext(answer.next);
    } catch (error) {
      sayProblem(error, "The files could not be shown");
    }
  };
  const goTo = (/** @type {number} */ file, /** @type {number | null} */ hunk) => {
    const path = files[file]?.path;
    if (path === undefined) return;
    setAt({ file, hunk });
    if (folded.has(path)) fold(path);
    requestAnimationFrame(() => {
      const element = [...(list.current?.querySelectorAll(".file") ?? [])].find(
        (one) => /** @type {HTMLElement} */ (one).dataset.path === path,
      );
      const part = hunk === null ? element : element?.querySelectorAll("[data-hunk]")[hunk];
      part?.scrollIntoView({ block: hunk === null ? "start" : "center" });
      // So that the next Tab reaches its buttons.
      if (part instanceof HTMLElement) part.focus({ preventScroll: true });
    });
  };
  const step = (/** @type {1 | -1} */ by) => {
    const flat = files.flatMap((file, index) => file.hunks.map((_, hunk) => ({ file: index, hunk })));
    const place = flat.findIndex((one) => one.file === at.file && one.hunk === at.hunk);
    const next =
      place < 0
        ? by > 0
          ? flat.find((one) => one.file >= Math.max(at.file, 0))
          : flat.findLast((one) => one.file < at.file)
        : flat[place + by];
    if (next) goTo(next.file, next.hunk);
  };
  const restoreOne = (
    /** @type {ChangedFile} */ file,
    /** @type {import("./diff-lines.js").Hunk | undefined} */ hunk,
  ) => {
    if (!whole.older) return;
    restore(whole.older, { paths: pathsOf(file) }, hunk && { path: file.path, hunk, newer: whole.newer });
  };
  const here = () => (at.file >= 0 ? at : files.length === 1 ? { file: 0, hunk: null } : null);
  const restoreFile = () => {
    const place = here();
    const file = place && files[place.file];
    if (file && !isBack(file)) restoreOne(file, undefined);
  };
  const restoreLines = () => {
    const place = here();
    const file = place && files[place.file];
    const hunk = file && (file.hunks[place.hunk ?? -1] ?? (file.hunks.length === 1 ? file.hunks[0] : undefined));
    if (file && hunk && canRestoreLines(file, whole)) restoreOne(file, hunk);
  };
  useKeys(
    "Changes",
    [
      { key: "n", does: "Next change", run: () => step(1) },
      { key: "p", does: "Previous change", run: () => step(-1) },
      { key: "]", does: "Next file", run: () => goTo(Math.min(at.file + 1, files.length - 1), null) },
      { key: "[", does: "Previous file", run: () => goTo(Math.max(at.file - 1, 0), null) },
      { key: "l", does: ends.newer === null ? "Restore these lines" : "Undo these lines", run: restoreLines },
      { key: "f", does: "Restore this file", run: restoreFile },
    ],
    [at, files, folded, pending.value, whole.older, whole.newer],
  );

  return html`<div class="diff-body" ref=${list}>
    ${
      files.length >= LIST_FROM &&
      html`<nav class="file-list" aria-label="Changed files"><ul>${files.map(
        (file, index) => html`<li key=${file.path}>
      <a href="#" onClick=${(/** @type {Event} */ event) => (event.preventDefault(), goTo(index, null))}><${KindMark}
        change=${file.change} /><${PathName} path=${shownPath(file)} /><${LineCounts} file=${file} /></a></li>`,
      )}</ul></nav>`
    }
    ${files.map(
      (
        file,
        index,
      ) => html`<${DiffFile} key=${file.path} file=${file} ends=${whole} split=${split} isOpen=${!folded.has(file.path)}
        isAt=${at.file === index} isBack=${isBack(file)}
      hunkAt=${at.file === index ? at.hunk : null} fold=${() => fold(file.path)} loadHunks=${() => loadHunks(file)}
      restore=${restoreOne} />`,
    )}
    ${next && html`<button onClick=${loadFiles}>Show ${plural(found.total_files - files.length, "more file")}</button>`}
  </div>`;
}

/** @param {ChangedFile} file */
function pathsOf(file) {
  return file.old_path ? [file.old_path, file.path] : [file.path];
}

/**
 * The paths that now differ from a moment, or cannot be restored.
 * @param {string} session @param {string} moment @param {ChangedFile[]} files @param {AbortSignal} stop @returns {Promise<string[]>}
 */
async function pathsToRestore(session, moment, files, stop) {
  try {
    const plan = await api.restorePreview(session, moment, { paths: files.flatMap(pathsOf) }, stop);
    const listed = [...plan.operations, ...plan.conflicts, ...plan.skipped, ...plan.kept, ...plan.missing];
    return listed.map((one) => one.path);
  } catch (error) {
    // A path that is neither in the moment nor in the workspace is refused, and so are all others with it.
    if (!(error instanceof Problem) || error.status !== 404) throw error;
    if (files.length === 1) return [];
    const found = await Promise.all(files.map((file) => pathsToRestore(session, moment, [file], stop)));
    return found.flat();
  }
}

/** @param {string} path @param {string} above */
function isWithin(path, above) {
  return path === above || path.startsWith(`${above}/`);
}

/** Whether a file is unchanged; more of it may be shown by now. @param {ChangedFile} known @param {ChangedFile} file */
function isStill(known, file) {
  return (
    known.path === file.path &&
    known.change === file.change &&
    known.new_size_bytes === file.new_size_bytes &&
    JSON.stringify(known.hunks.slice(0, file.hunks.length)) === JSON.stringify(file.hunks)
  );
}

/** Long changes open on a click, so that the first render is fast. @param {ChangedFile[]} files */
function firstFolded(files) {
  let room = OPEN_LINES;
  return new Set(
    files
      .filter((file) => {
        const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
        room -= lines;
        return room < 0 && lines > 0;
      })
      .map((file) => file.path),
  );
}

function stored() {
  try {
    return localStorage.getItem(SPLIT_KEY);
  } catch {
    return null;
  }
}

/** @param {string} value */
function store(value) {
  try {
    localStorage.setItem(SPLIT_KEY, value);
  } catch {
    // Then it lasts until the page is closed.
  }
}
