// The restore preview in the panel: files, components, git, and what stays unchanged.

import { api } from "./api.js";
import { Lines, sizeWords } from "./diff-file.js";
import { hunkLines, reversed } from "./diff-lines.js";
import { plural, visible, visiblePath } from "./format.js";
import { html, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { PathName } from "./path-name.js";
import { chosenPart, chosenRows, deed, isLeaf, presentPaths, toggled } from "./restore-choice.js";
import { OtherState, offerIn } from "./restore-components.js";
import { Loading } from "./states.js";
import { Ago } from "./time-ago.js";
import { agentName, remarkWords } from "./words.js";

const MOST_LISTED = 200;

/** @typedef {import("./restore-panel.js").RestoreTask} RestoreTask */
/** @typedef {import("./restore-choice.js").ChoiceRow} ChoiceRow */
/** @typedef {{path: string, by: "agent" | "person" | "restore" | "unsaved", session_id: string | null, agent: string | null, at: string | null}} LastChange */
/** @typedef {Record<string, number> | null} Rows by table; null if they cannot be counted */

/**
 * @param {object} props
 * @param {string} props.session @param {RestoreTask} props.task @param {any} props.plan @param {ChoiceRow[]} props.rows
 * @param {number | null} props.fileCount files of the moment; null until known
 * @param {Set<string>} props.left @param {(left: Set<string>) => void} props.setLeft
 * @param {Record<string, string>} props.components @param {(components: Record<string, string>) => void} props.setComponents
 * @param {RunCommand[]} props.commands that an agent ran since the moment
 */
export function RestorePlan({
  session,
  task,
  plan,
  rows,
  fileCount,
  left,
  setLeft,
  components,
  setComponents,
  commands,
}) {
  // Lines and single files are shown in full, so no counts are needed.
  const isOneFile = task.choice.paths !== undefined && rows.length === 1;
  const canChoose = task.what === "moment" && !task.lines && rows.filter(isLeaf).length > 1;
  const changes = new Map(plan.last_changes.map((/** @type {LastChange} */ one) => [one.path, one]));
  const types = new Map(rows.map((one) => [one.path, one.type]));
  const databases = plan.databases.filter((/** @type {{path: string}} */ one) => !left.has(one.path));
  // What the page offers as a choice needs no warning.
  const said = plan.warnings.filter((/** @type {string} */ one) => task.choice.paths !== undefined || !offerIn(one));
  const remarks = said.filter((/** @type {string} */ one) => plan.remarks.includes(one));
  const warnings = said.filter((/** @type {string} */ one) => !plan.remarks.includes(one));
  return html`
    ${!isOneFile && html`<${Counts} rows=${rows} isPart=${task.choice.paths !== undefined} fileCount=${fileCount} left=${left} />`}
    ${
      plan.conflicts.length > 0 &&
      html`<section><p class="note wrong">
      <b>These paths are in the way.</b> Move them, then restore.</p>
      <${Reasons} list=${plan.conflicts} /></section>`
    }
    ${
      rows.length > 0 &&
      !task.lines &&
      html`<section aria-label="Files"><header class="choosing"><h3>Files</h3>
        ${canChoose && html`<${Choosers} rows=${rows} setLeft=${setLeft} />`}</header><ul class="steps">
      ${rows.slice(0, MOST_LISTED).map(
        (row) => html`<${StepLine} key=${row.path} session=${session}
        target=${plan.restored_to} row=${row} change=${changes.get(row.path)} part=${chosenPart(row, left)}
        isOpen=${isOneFile} toggle=${canChoose ? () => setLeft(toggled(row, left)) : null} />`,
      )}
      ${
        rows.length > MOST_LISTED &&
        html`<li><span></span>
        <span class="faint">and ${(rows.length - MOST_LISTED).toLocaleString("en")} more</span></li>`
      }
    </ul></section>`
    }
    ${
      rows.length === 0 &&
      html`<section>
      <p class="soft">Your files already match this moment.</p></section>`
    }
    ${
      databases.length > 0 &&
      html`<section aria-label="Databases"><h3>Databases</h3>
      ${databases.map(
        (/** @type {{path: string, now: Rows, then: Rows}} */ one) => html`<div class="option"><code>
        ${visiblePath(one.path)}</code> <span class="soft num">${rowWords(one, deed(types.get(one.path) ?? ""))}</span></div>`,
      )}</section>`
    }
    ${
      task.choice.paths === undefined &&
      html`<${OtherState} plan=${plan} isPart=${left.size > 0} canChoose=${task.what === "moment"} components=${components}
      setComponents=${setComponents} />`
    }
    ${
      (said.length > 0 || plan.working?.length > 0 || plan.kept.length > 0 || plan.missing.length > 0) &&
      html`<section>
      ${(plan.working ?? []).map(
        (/** @type {string} */ one) => html`<p class="note caution">
        <b>An agent is working.</b> ${visible(one)}</p>`,
      )}
      ${warnings.map((/** @type {string} */ one) => html`<p class="note caution">${remarkWords(one, true)}</p>`)}
      ${
        remarks.length > 0 &&
        html`<ul class="remarks">
        ${remarks.map((/** @type {string} */ one) => html`<li>${remarkWords(one, true)}</li>`)}</ul>`
      }
      ${
        plan.kept.length > 0 &&
        html`<details><summary>
        ${plural(plan.kept.length, "path")} kept as ${plan.kept.length === 1 ? "it is" : "they are"}</summary>
        <${Reasons} list=${plan.kept} /></details>`
      }
      ${
        plan.missing.length > 0 &&
        html`<details><summary>
        ${plural(plan.missing.length, "path")} never saved, so not restored</summary>
        <${Reasons} list=${plan.missing} /></details>`
      }
    </section>`
    }
    ${task.choice.paths === undefined && rows.length > 0 && html`<${NotUndone} commands=${commands} />`}`;
}

/** @typedef {{command: string, at: string}} RunCommand */

/** What a restore cannot reach, and the commands that may have changed it. @param {{commands: RunCommand[]}} props newest first */
function NotUndone({ commands }) {
  return html`<section aria-label="Not undone"><p class="soft"><b>Not undone:</b> network calls, git remotes, other databases
      and services, packages installed elsewhere, background processes.</p>
    ${
      commands.length > 0 &&
      html`<details><summary>${plural(commands.length, "command")} ran since</summary>
      <ul class="ran">${commands
        .slice(0, MOST_LISTED)
        .map(
          (one) => html`<li><code>${visible(one.command)}</code> <${Ago} class="faint num" at=${one.at} /></li>`,
        )}</ul></details>`
    }</section>`;
}

/** Buttons that check many files at once. @param {{rows: ChoiceRow[], setLeft: (left: Set<string>) => void}} props */
function Choosers({ rows, setLeft }) {
  const all = rows.flatMap((row) => row.leaves);
  const present = presentPaths(rows);
  const hasMissing = present.length < new Set(all).size;
  return html`<div class="acts" role="group" aria-label="Choose files">
    <button class="small" onClick=${() => setLeft(new Set())}>All</button>
    <button class="small" onClick=${() => setLeft(new Set(all))}>None</button>
    ${
      hasMissing &&
      present.length > 0 &&
      html`<button class="small" title="Bring back what is missing now, and keep everything else as it is"
      onClick=${() => setLeft(new Set(present))}>Only deleted files</button>`
    }</div>`;
}

/** @param {{rows: ChoiceRow[], isPart: boolean, fileCount: number | null, left: Set<string>}} props */
function Counts({ rows, isPart, fileCount, left }) {
  const files = rows.filter((row) => !row.isDirectory);
  const counted = { create: 0, delete: 0, rewrite: 0 };
  for (const row of chosenRows(files, left)) counted[deed(row.type ?? "")] += 1;
  const directories = chosenRows(rows, left).filter((row) => row.isDirectory).length;
  return html`<div class="counts">
    <div><b class=${counted.create > 0 ? "plus" : "none"}>${counted.create}</b><span>brought back</span></div>
    <div><b class=${counted.rewrite > 0 ? null : "none"}>${counted.rewrite}</b><span>rewritten</span></div>
    <div><b class=${counted.delete > 0 ? "minus" : "none"}>${counted.delete}</b><span>removed</span></div>
    ${directories > 0 && html`<div><b>${directories}</b><span>${directories === 1 ? "directory" : "directories"}</span></div>`}
    <${Untouched} isPart=${isPart} fileCount=${fileCount} files=${files} left=${left} />
  </div>`;
}

/**
 * An excluded file stays as it is, unless the restore would create it.
 * @param {{isPart: boolean, fileCount: number | null, files: ChoiceRow[], left: Set<string>}} props
 */
function Untouched({ isPart, fileCount, files, left }) {
  if (isPart) return html`<div><b>All</b> <span>other files untouched</span></div>`;
  const inMoment = files.filter((one) => deed(one.type ?? "") !== "delete").length;
  const kept = files.filter((one) => deed(one.type ?? "") !== "create" && left.has(one.path)).length;
  return html`<div><b>${fileCount === null ? "…" : (fileCount - inMoment + kept).toLocaleString("en")}</b>
    <span> untouched</span></div>`;
}

/**
 * Tables whose rows differ: "sessions: 14 rows now → 214 then".
 * @param {{now: Rows, then: Rows}} rows @param {"create" | "delete" | "rewrite"} does to the file
 */
function rowWords({ now, then }, does) {
  if (!now || !then) {
    return `${allRows(now, does === "create")} now → ${allRows(then, does === "delete")} then`;
  }
  const tables = [...new Set([...Object.keys(now), ...Object.keys(then)])].filter((one) => now[one] !== then[one]);
  if (tables.length === 0) return `${allRows(now, false)} now and then`;
  return tables
    .map((one) => {
      const before = now[one] === undefined ? "no table" : plural(now[one], "row");
      return `${visible(one)}: ${before} now → ${then[one]?.toLocaleString("en") ?? "no table"} then`;
    })
    .join("; ");
}

/** @param {Rows} rows @param {boolean} isMissing whether there is no such file */
function allRows(rows, isMissing) {
  if (rows) {
    return plural(
      Object.values(rows).reduce((sum, count) => sum + count, 0),
      "row",
    );
  }
  return isMissing ? "no file" : "uncounted rows";
}

/** Who changed a file last; changes by anyone but this session's agent are highlighted. @param {{change: LastChange, session: string}} props */
function ChangedBy({ change, session }) {
  const isMine = change.by === "restore" || (change.by === "agent" && change.session_id === session);
  const who = {
    agent: `${agentName(change.agent)}${isMine ? "" : " in another session"}`,
    person: "edited by you",
    restore: "from a restore",
    unsaved: "not saved yet",
  }[change.by];
  return html`<span class=${isMine ? "by mine" : "by other"} title="Last change">${visible(who)}${
    change.at && html`, <${Ago} at=${change.at} />`
  }</span>`;
}

/** @param {{session: string, target: string, row: ChoiceRow, change?: LastChange, part: "all" | "some" | "none", isOpen: boolean, toggle: (() => void) | null}} props */
function StepLine({ session, target, row, change, part, isOpen, toggle }) {
  const [isShown, setShown] = useState(isOpen && !row.isDirectory);
  const path = row.isDirectory ? `${row.path}/` : row.path;
  return html`<li class=${row.isDirectory ? "directory" : null}>
    ${
      toggle
        ? html`<label class="tick"><input type="checkbox" checked=${part === "all"} indeterminate=${part === "some"}
          aria-label=${visiblePath(path)} onChange=${toggle} /></label>`
        : html`<span></span>`
    }
    <span class=${`does ${deed(row.type ?? "")}`}>${doesWords(row, part)}</span>
    <${PathName} path=${path} />
    ${change ? html`<${ChangedBy} change=${change} session=${session} />` : html`<span></span>`}
    ${
      row.isDirectory
        ? html`<small>directory</small>`
        : html`<small><button class="link" aria-expanded=${isShown}
      aria-label=${`${isShown ? "Hide" : "Show"} what changes in ${visiblePath(row.path)}`}
      onClick=${() => setShown(!isShown)}>${isShown ? "hide" : "show"}</button></small>`
    }
    ${isShown && html`<${Peek} session=${session} target=${target} path=${row.path} />`}
  </li>`;
}

/** @param {ChoiceRow} row @param {"all" | "some" | "none"} part */
function doesWords({ type, isDirectory }, part) {
  if (type === null) return "";
  const does = deed(type);
  if (part === "none" || (part === "some" && does !== "create")) return "keep";
  if (does === "rewrite") return isDirectory ? "set mode" : "rewrite";
  return does === "create" ? "bring back" : "remove";
}

/** The effect of the restore on one file: from now to then. @param {{session: string, target: string, path: string}} props */
function Peek({ session, target, path }) {
  const loaded = useLoaded((stop) => api.diff(session, { older: target, newer: null }, { path }, stop), [path]);
  if (loaded.busy) return html`<div class="peek"><${Loading} label="Loading the change" /></div>`;
  const file = loaded.value?.files?.[0];
  const shown = /** @type {import("./diff-lines.js").Hunk[]} */ (file?.hunks ?? []);
  if (shown.length === 0)
    return html`<div class="peek"><p class="remark soft">
      ${
        file?.content === "binary"
          ? `A binary file: ${sizeWords(swapped(file))}.`
          : file?.content === "too_large"
            ? `Too large to show by line: ${sizeWords(swapped(file))}.`
            : "No lines to show."
      }</p></div>`;
  return html`<div class="peek">${shown.map((one) => html`<${Lines} lines=${hunkLines(reversed(one))} split=${false} />`)}</div>`;
}

/** The sizes in the direction of the restore: from now to then. @param {any} file */
function swapped(file) {
  return { ...file, old_size_bytes: file.new_size_bytes, new_size_bytes: file.old_size_bytes };
}

/** @param {{list: {path: string, reason: string}[]}} props */
function Reasons({ list }) {
  return html`<ul>${list.slice(0, MOST_LISTED).map(
    (one) => html`<li><code>
    ${visiblePath(one.path)}</code> <span class="faint">${visible(one.reason)}</span></li>`,
  )}</ul>`;
}
