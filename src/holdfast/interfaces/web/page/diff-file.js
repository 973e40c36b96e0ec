// One changed file: its hunks in one column or two, images side by side, notebooks by cell.

import { api } from "./api.js";
import { CopyButton } from "./copy-button.js";
import { coloured, hunkLines, patchText, sideBySide } from "./diff-lines.js";
import { plural, size, visible, visiblePath } from "./format.js";
import { html, useMemo, useState } from "./html.js";
import { PathName } from "./path-name.js";
import { sayProblem } from "./toast.js";

const UNFOLDED_AT_ONCE = 40;
const CONTEXT = 3;

/** @typedef {import("./diff-lines.js").Hunk} Hunk */
/** @typedef {import("./diff-lines.js").Line} Line */
/**
 * @typedef {object} ChangedFile
 * @property {string} path @property {string} change @property {string} [old_path] @property {string} [left_out]
 * @property {string} [old_mode] @property {string} [new_mode] @property {string} [content]
 * @property {number | null} added_lines @property {number | null} removed_lines
 * @property {Hunk[]} hunks @property {string | null} hunks_next @property {number} cut_lines
 * @property {boolean} restorable @property {any[]} [cells]
 * @property {number | null} old_size_bytes @property {number | null} new_size_bytes
 */

/**
 * @typedef {object} Ends the two sides of a difference
 * @property {string} session
 * @property {string | null} older null for the first step
 * @property {string | null} newer null for the current workspace
 */

/**
 * @param {object} props
 * @param {ChangedFile} props.file
 * @param {Ends} props.ends
 * @param {boolean} props.isOpen
 * @param {boolean} props.isAt
 * @param {boolean} props.isBack whether the current file equals the older side
 * @param {number | null} props.hunkAt
 * @param {boolean} props.split
 * @param {() => void} props.fold
 * @param {(file: ChangedFile, hunk?: Hunk) => void} props.restore
 * @param {() => void} props.loadHunks
 */
export function DiffFile({ file, ends, isOpen, isAt, isBack, hunkAt, split, fold, restore, loadHunks }) {
  const classes = ["file", isOpen && "open", isAt && "at"].filter(Boolean).join(" ");
  return html`<article class=${classes} data-path=${file.path} tabindex="-1" aria-label=${visiblePath(file.path)}>
    <header>
      <button class="fold" aria-expanded=${isOpen} aria-label=${isOpen ? "Fold" : "Unfold"} onClick=${fold}>
        ${isOpen ? "▾" : "▸"}</button>
      <${KindMark} change=${file.change} />
      <${PathName} path=${shownPath(file)} />
      ${file.old_path && html`<span class="faint">from <code>${visiblePath(file.old_path)}</code></span>`}
      <${LineCounts} file=${file} />
      ${ends.older && html`<${FileButton} file=${file} isNow=${ends.newer === null} isBack=${isBack} restore=${restore} />`}
    </header>
    ${
      isOpen &&
      html`<${FileBody} file=${file} ends=${ends} split=${split} hunkAt=${hunkAt} restore=${restore}
      loadHunks=${loadHunks} />`
    }
  </article>`;
}

/** @param {ChangedFile} file */
function isDirectory(file) {
  return file.content === "directory";
}

/** @param {ChangedFile} file */
export function shownPath(file) {
  return isDirectory(file) ? `${file.path}/` : file.path;
}

/** A restore restores the older side of the comparison. @param {{file: ChangedFile, isNow: boolean, isBack: boolean, restore: (file: ChangedFile) => void}} props */
function FileButton({ file, isNow, isBack, restore }) {
  if (isBack) {
    const done = file.change === "removed" ? "back" : file.change === "added" ? "removed" : "restored";
    return html`<span class="faint">Already ${done}</span>`;
  }
  const thing = isDirectory(file) ? "directory" : "file";
  const [words, why] =
    file.change === "removed" || file.change === "deleted"
      ? ["Bring back…", `Brings the ${thing} back as it was before it was deleted`]
      : file.change === "added"
        ? ["Remove…", `The ${thing} did not exist before`]
        : isNow
          ? [`Restore ${thing}…`, `Restores the ${thing} of this moment`]
          : ["Restore older version…", `The ${thing} as it was before these changes, without any later ones`];
  return html`<button class="small" title=${why} onClick=${() => restore(file)}>${words}</button>`;
}

/** @param {{change: string}} props */
export function KindMark({ change }) {
  const [sign, word, kind] =
    change === "added"
      ? ["+", "added", "added"]
      : change === "removed" || change === "deleted"
        ? ["−", "deleted", "removed"]
        : change === "renamed"
          ? ["→", "renamed", "renamed"]
          : change === "modified"
            ? ["~", "changed", "modified"]
            : ["~", change, "other"];
  return html`<span class=${`kind ${kind}`} title=${word}><span aria-hidden="true">${sign}</span><span class="unseen">
    ${word}</span></span>`;
}

/** @param {{file: {added_lines: number | null, removed_lines: number | null}}} props */
export function LineCounts({ file }) {
  return html`<span class="num">
    ${file.added_lines ? html`<span class="plus">+${file.added_lines}</span>` : null} ${
      file.removed_lines
        ? html`<span
      class="minus">−${file.removed_lines}</span>`
        : null
    }</span>`;
}

/** @param {{file: ChangedFile, ends: any, split: boolean, hunkAt: number | null, restore: (file: ChangedFile, hunk?: Hunk) => void, loadHunks: () => void}} props */
function FileBody({ file, ends, split, hunkAt, restore, loadHunks }) {
  const modes =
    file.old_mode &&
    file.new_mode &&
    file.old_mode !== file.new_mode &&
    html`<p class="remark">Mode changed from <code>${file.old_mode}</code> to <code>${file.new_mode}</code></p>`;
  if (file.left_out) return html`<p class="remark">Not compared: ${visible(file.left_out)}</p>`;
  if (isDirectory(file)) return modes || html`<p class="remark">${directoryWords(file.change)}</p>`;
  if (isPicture(file.path) && file.content === "binary") return html`${modes}<${Pictures} file=${file} ends=${ends} />`;
  if (file.content === "binary") return html`${modes}<p class="remark">A binary file: ${sizeWords(file)}.</p>`;
  if (file.content === "too_large")
    return html`${modes}<p class="remark">Too large to show by line: ${sizeWords(file)}.</p>`;
  if (file.content === "withheld" || file.content === "ignored")
    return html`${modes}<p class="remark">The content is not shown: your rules ignore this file.</p>`;
  if (file.cells) {
    return html`${modes}${file.cells.map(
      (cell) => html`<div class="hunk"><div class="hunk-head"><span class="place">
        ${cell.type} cell ${(cell.new_index ?? cell.old_index) + 1} · ${cell.change}</span></div>
      ${cell.hunks.map((/** @type {Hunk} */ hunk) => html`<${Lines} lines=${hunkLines(hunk)} split=${split} />`)}</div>`,
    )}`;
  }
  if (file.hunks.length === 0 && file.hunks_next)
    return html`${modes}<p class="remark">A large change. <button class="link" onClick=${loadHunks}>Show it</button></p>`;
  if (file.hunks.length === 0)
    return (
      modes ||
      html`<p class="remark">
        ${file.change === "renamed" ? "Renamed; the content is the same." : file.change === "added" ? "An empty file." : "No line differs."}</p>`
    );
  return html`${modes}${file.hunks.map(
    (
      hunk,
      index,
    ) => html`<${HunkPart} key=${hunk.id ?? index} file=${file} hunk=${hunk} before=${file.hunks[index - 1] ?? null}
    split=${split} ends=${ends} isLast=${index === file.hunks.length - 1 && !file.hunks_next} isAt=${hunkAt === index} restore=${restore} />`,
  )}
    ${file.cut_lines > 0 && html`<p class="remark">${plural(file.cut_lines, "very long line")} cut.</p>`}
    ${file.hunks_next && html`<button class="unfold" onClick=${loadHunks}>Show more of this change</button>`}`;
}

/** "12 kB", or "12 kB before, 14 kB after". @param {ChangedFile} file */
export function sizeWords({ old_size_bytes, new_size_bytes }) {
  if (old_size_bytes === null || new_size_bytes === null) return size(new_size_bytes ?? old_size_bytes ?? 0);
  if (old_size_bytes === new_size_bytes) return `${size(new_size_bytes)} before and after`;
  return `${size(old_size_bytes)} before, ${size(new_size_bytes)} after`;
}

/** @param {string} change */
function directoryWords(change) {
  if (change === "added") return "An empty directory was added.";
  return change === "removed" ? "The directory was deleted." : "The directory changed.";
}

/** @param {{file: ChangedFile, hunk: Hunk, before: Hunk | null, isLast: boolean, split: boolean, ends: Ends, isAt: boolean, restore: (file: ChangedFile, hunk?: Hunk) => void}} props */
function HunkPart({ file, hunk, before, isLast, split, ends, isAt, restore }) {
  const lines = useMemo(() => hunkLines(hunk), [hunk]);
  const [above, setAbove] = useState(/** @type {Line[]} */ ([]));
  const [below, setBelow] = useState(/** @type {Line[]} */ ([]));
  const [isWhole, setWhole] = useState(() => endsFile(hunk));
  const hasContext = file.change === "modified" || file.change === "renamed";
  const start = hunk.new_start - above.length;
  const floor = before ? before.new_start + before.new_lines : 1;
  const hidden = hasContext ? start - floor : 0;
  const end = hunk.new_start + hunk.new_lines + below.length;
  const unfoldAbove = async () => {
    const first = Math.max(floor, start - UNFOLDED_AT_ONCE);
    const found = await unchangedLines(file, ends, first, start, hunk.old_start - hunk.new_start);
    setAbove([...found.lines, ...above]);
  };
  const unfoldBelow = async () => {
    const shift = hunk.old_start + hunk.old_lines - hunk.new_start - hunk.new_lines;
    const found = await unchangedLines(file, ends, end, end + UNFOLDED_AT_ONCE, shift);
    setBelow([...below, ...found.lines]);
    setWhole(found.isEnd);
  };
  /** @param {() => Promise<void>} unfold */
  const safely = (unfold) => () => unfold().catch((error) => sayProblem(error, "The lines could not be shown"));
  const canRestore = canRestoreLines(file, ends);
  const shown = above.length + below.length > 0 ? [...above, ...lines, ...below] : lines;
  return html`<div class=${isAt ? "hunk at" : "hunk"} data-hunk tabindex="-1">
    <div class="hunk-head">
      ${hidden > 0 && html`<button class="unfold" title="Show them" onClick=${safely(unfoldAbove)}>⋯ ${plural(hidden, "unchanged line")}</button>`}
      <span class="place">${hunk.heading ? html`<code>${visible(hunk.heading)}</code>` : hidden > 0 ? "" : `line ${hunk.new_start || 1}`}</span>
      <span class="doing"><${CopyButton} text=${patchText(hunk, file.path)} label="Copy this change" words="Copy" />
      ${
        canRestore &&
        html` <button class="small" onClick=${() => restore(file, hunk)}>
        ${ends.newer === null ? "Restore these lines…" : "Undo these lines…"}</button>`
      }</span>
    </div>
    <${Lines} lines=${shown} split=${split} />
    ${isLast && hasContext && !isWhole && html`<button class="unfold" onClick=${safely(unfoldBelow)}>⋯ Show lines below</button>`}
  </div>`;
}

/** Whether its hunks can be restored or undone one by one. @param {ChangedFile} file @param {{older: string | null, newer: string | null}} ends */
export function canRestoreLines(file, { older, newer }) {
  if (older === null) return false;
  return newer === null ? file.restorable : file.change === "modified" && file.content === "text";
}

/** With fewer than three lines of context after its last change, a hunk ends where its file does. @param {Hunk} hunk */
function endsFile(hunk) {
  return hunk.lines.slice(-CONTEXT).some((line) => line[0] !== " ");
}

/**
 * Unchanged lines of a file, by their numbers on the newer side.
 * @param {ChangedFile} file @param {Ends} ends @param {number} first @param {number} end @param {number} shift to the numbers of the older side
 * @returns {Promise<{lines: Line[], isEnd: boolean}>}
 */
async function unchangedLines(file, ends, first, end, shift) {
  // Read them from the side that is saved.
  const [moment, by] = ends.newer === null ? [ends.older ?? "", shift] : [ends.newer, 0];
  const path = ends.newer === null ? (file.old_path ?? file.path) : file.path;
  const whole = await wholeFile(ends.session, moment, path);
  const lines = whole.lines
    .slice(first + by - 1, end + by - 1)
    .map((text, index) => contextLine(text, first + index, shift, whole.colours?.[first + by - 1 + index]));
  return { lines, isEnd: end + by > whole.lines.length };
}

/** @param {string} text @param {number} number @param {number} shift @param {[string, number][]} [colours] @returns {Line} */
function contextLine(text, number, shift, colours) {
  return { kind: "c", old: number + shift, new: number, text, pieces: coloured(text, colours) };
}

/**
 * The lines of a file at a moment, as far as one answer contains them.
 * @param {string} session @param {string} moment @param {string} path
 * @returns {Promise<{lines: string[], colours: [string, number][][] | null, isBinary: boolean, next: number | null, size_bytes: number}>}
 */
export async function wholeFile(session, moment, path) {
  const found = await api.file(session, moment, path);
  if (found.encoding !== "utf-8") return { ...found, lines: /** @type {string[]} */ ([]), isBinary: true };
  const lines = /** @type {string[]} */ (found.content.split("\n"));
  if (lines.at(-1) === "") lines.pop();
  return { ...found, lines, isBinary: found.content.includes("\0") };
}

/** @param {{lines: Line[], split: boolean}} props */
export function Lines({ lines, split }) {
  if (!split) {
    return html`<div class="lines" tabindex="0" role="group" aria-label="Changed lines"><div class="grid">
      ${lines.map(
        (line) => html`<div class=${`line ${line.kind}`}><i>${line.old}</i><i>${line.new}</i><b>
      ${sign(line)}</b><${Code} pieces=${line.pieces} /></div>`,
      )}</div></div>`;
  }
  const rows = sideBySide(lines);
  return html`<div class="split">${[0, 1].map(
    (side) =>
      html`<div class="lines" tabindex="0" role="group" aria-label=${side === 0 ? "Before" : "After"}><div class="grid">
        ${rows.map((row) => {
          const line = row[side];
          return line
            ? html`<div class=${`line ${line.kind}`}><i>${side === 0 ? line.old : line.new}</i><b>${sign(line)}</b>
              <${Code} pieces=${line.pieces} /></div>`
            : html`<div class="line none"></div>`;
        })}</div></div>`,
  )}</div>`;
}

/** @param {Line} line */
function sign(line) {
  return line.kind === "a" ? "+" : line.kind === "r" ? "−" : "";
}

/** @param {{pieces: import("./diff-lines.js").Piece[]}} props */
function Code({ pieces }) {
  return html`<code>${pieces.map((piece) => {
    const text = visible(piece.text);
    if (piece.changed) return html`<mark class=${piece.class || null}>${text}</mark>`;
    return piece.class ? html`<span class=${piece.class}>${text}</span>` : text;
  })}</code>`;
}

/** @param {string} path */
function isPicture(path) {
  return /\.(png|jpe?g|gif|webp|bmp)$/i.test(path);
}

/** @param {{file: ChangedFile, ends: Ends}} props */
function Pictures({ file, ends }) {
  const isGone = file.change === "removed" || file.change === "deleted";
  const old =
    file.change === "added" || !ends.older
      ? null
      : api.rawAddress(ends.session, ends.older, file.old_path ?? file.path);
  const now = isGone
    ? null
    : ends.newer === null
      ? api.rawNowAddress(ends.session, ends.older ?? "", file.path)
      : api.rawAddress(ends.session, ends.newer, file.path);
  return html`<div class="pictures">
    ${old && html`<${Picture} source=${old} words="Before" file=${file} />`}
    ${now && html`<${Picture} source=${now} words="After" file=${file} />`}</div>`;
}

/** A name is no proof of an image. @param {{source: string, words: string, file: ChangedFile}} props */
function Picture({ source, words, file }) {
  const [failed, setFailed] = useState(/** @type {string | null} */ (null));
  const bytes = (words === "Before" ? file.old_size_bytes : file.new_size_bytes) ?? 0;
  return html`<figure>
    ${
      failed === source
        ? html`<p class="remark">Not an image that can be shown: ${size(bytes)}</p>`
        : html`<img src=${source} alt=${`${words}: ${visiblePath(file.path)}`} loading="lazy" onError=${() => setFailed(source)} />`
    }
    <figcaption>${words}</figcaption></figure>`;
}
