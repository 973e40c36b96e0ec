// What a restore would do, as the panel lists it: files, components, git, and what stays as it is.

import { api } from "./api.js";
import { Lines } from "./diff-file.js";
import { hunkLines, reversed } from "./diff-lines.js";
import { exactTime, longAgo, plural, visible } from "./format.js";
import { html, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { PathName } from "./path-name.js";
import { Loading } from "./states.js";
import { agentName, componentWords } from "./words.js";

const MOST_LISTED = 200;

/** @typedef {import("./restore-panel.js").RestoreTask} RestoreTask */
/** @typedef {{type: string, path: string}} Operation */
/** @typedef {{path: string, by: "agent" | "person" | "restore" | "unsaved", session_id: string | null, agent: string | null, at: string | null}} LastChange */
/** @typedef {Record<string, number> | null} Rows by table; null where they cannot be counted */

/**
 * @param {object} props
 * @param {string} props.session @param {RestoreTask} props.task @param {any} props.plan @param {Operation[]} props.operations
 * @param {number | null} props.fileCount files of the moment; null until it is known
 * @param {Set<string>} props.left @param {(left: Set<string>) => void} props.setLeft
 * @param {Record<string, string>} props.components @param {(components: Record<string, string>) => void} props.setComponents
 */
export function RestorePlan({ session, task, plan, operations, fileCount, left, setLeft, components, setComponents }) {
  // Lines and single files are shown in full, so there is nothing to count.
  const isOneFile = task.choice.paths !== undefined && operations.length === 1;
  const canChoose = task.what === "moment" && !task.lines && operations.length > 1;
  const counted = { create: 0, delete: 0, rewrite: 0 };
  for (const one of operations) if (!left.has(one.path)) counted[deed(one.type)] += 1;
  const toggle = (/** @type {string} */ path) => {
    const next = new Set(left);
    if (!next.delete(path)) next.add(path);
    setLeft(next);
  };
  const changes = new Map(plan.last_changes.map((/** @type {LastChange} */ one) => [one.path, one]));
  const types = new Map(operations.map((one) => [one.path, one.type]));
  const databases = plan.databases.filter((/** @type {{path: string}} */ one) => !left.has(one.path));
  const remarks = new Set(plan.remarks);
  const warnings = plan.warnings.filter((/** @type {string} */ one) => !remarks.has(one));
  return html`
    ${!isOneFile && html`<${Counts} counted=${counted} task=${task} fileCount=${fileCount} operations=${operations} left=${left} />`}
    ${
      plan.conflicts.length > 0 &&
      html`<section><p class="note wrong">
      <b>These paths are in the way.</b> Move them, then restore.</p>
      <${Reasons} list=${plan.conflicts} /></section>`
    }
    ${
      operations.length > 0 &&
      !task.lines &&
      html`<section><h3>Files</h3><ul class="steps">
      ${operations.slice(0, MOST_LISTED).map(
        (one) => html`<${StepLine} key=${one.path} session=${session}
        target=${plan.restored_to} one=${one} change=${changes.get(one.path)} isChosen=${!left.has(one.path)}
        isOpen=${isOneFile} toggle=${canChoose ? () => toggle(one.path) : null} />`,
      )}
      ${
        operations.length > MOST_LISTED &&
        html`<li><span></span>
        <span class="faint">and ${(operations.length - MOST_LISTED).toLocaleString("en")} more</span></li>`
      }
    </ul></section>`
    }
    ${
      operations.length === 0 &&
      html`<section>
      <p class="soft">Your files already match this moment.</p></section>`
    }
    ${
      databases.length > 0 &&
      html`<section aria-label="Databases"><h3>Databases</h3>
      ${databases.map(
        (/** @type {{path: string, now: Rows, then: Rows}} */ one) => html`<div class="option"><code>
        ${visible(one.path)}</code> <span class="soft num">${rowWords(one, deed(types.get(one.path) ?? ""))}</span></div>`,
      )}</section>`
    }
    ${
      (plan.components.length > 0 || plan.git) &&
      html`<section><h3>Other state</h3>
      ${plan.components.map(
        (/** @type {any} */ one) => html`<${ComponentChoice} one=${one}
        choose=${(/** @type {string} */ mode) => setComponents({ ...components, [one.name]: mode })} />`,
      )}
      ${
        plan.git &&
        !plan.components.some((/** @type {any} */ one) => one.name === "git") &&
        html`<${GitChoice}
        git=${plan.git} chosen=${components.git ?? "files"}
        choose=${(/** @type {string} */ mode) => setComponents({ ...components, git: mode })} />`
      }
    </section>`
    }
    ${
      (plan.warnings.length > 0 || plan.working?.length > 0 || plan.kept.length > 0 || plan.missing.length > 0) &&
      html`<section>
      ${(plan.working ?? []).map(
        (/** @type {string} */ one) => html`<p class="note caution">
        <b>An agent is working.</b> ${visible(one)}</p>`,
      )}
      ${warnings.map((/** @type {string} */ one) => html`<p class="note caution">${sentence(one)}</p>`)}
      ${
        plan.remarks.length > 0 &&
        html`<ul class="remarks">
        ${plan.remarks.map((/** @type {string} */ one) => html`<li>${sentence(one)}</li>`)}</ul>`
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
    }`;
}

/** The server's remarks are parts of sentences; the options that they name are choices in the panel. @param {string} words */
function sentence(words) {
  const whole = visible(words).replace(/; to restore git too: --git .*$/, "; to restore git too, choose how above");
  // A path or a name at the beginning keeps its own spelling.
  const first = /^[a-z]+\b(?![./_-])/.test(whole) ? whole.charAt(0).toUpperCase() : whole.charAt(0);
  return first + whole.slice(1) + (/[.!?]$/.test(whole) ? "" : ".");
}

/** @param {{counted: {create: number, rewrite: number, delete: number}, task: RestoreTask, fileCount: number | null, operations: Operation[], left: Set<string>}} props */
function Counts({ counted, task, fileCount, operations, left }) {
  return html`<div class="counts">
    <div><b class=${counted.create > 0 ? "plus" : "none"}>${counted.create}</b><span>brought back</span></div>
    <div><b class=${counted.rewrite > 0 ? null : "none"}>${counted.rewrite}</b><span>rewritten</span></div>
    <div><b class=${counted.delete > 0 ? "minus" : "none"}>${counted.delete}</b><span>removed</span></div>
    <${Untouched} isPart=${task.choice.paths !== undefined} fileCount=${fileCount} operations=${operations} left=${left} />
  </div>`;
}

/** @param {string} type @returns {"create" | "delete" | "rewrite"} */
function deed(type) {
  if (/create|add/.test(type)) return "create";
  return /delete|remove/.test(type) ? "delete" : "rewrite";
}

/**
 * A file that is left out stays as it is, unless the restore had to create it.
 * @param {{isPart: boolean, fileCount: number | null, operations: Operation[], left: Set<string>}} props
 */
function Untouched({ isPart, fileCount, operations, left }) {
  if (isPart) return html`<div><b>All</b> <span>other files untouched</span></div>`;
  const inMoment = operations.filter((one) => deed(one.type) !== "delete").length;
  const kept = operations.filter((one) => deed(one.type) !== "create" && left.has(one.path)).length;
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

/** Who changed a file last; the work of anyone but this session's agent stands out. @param {{change: LastChange, session: string}} props */
function ChangedBy({ change, session }) {
  const isMine = change.by === "restore" || (change.by === "agent" && change.session_id === session);
  const who = {
    agent: `${agentName(change.agent)}${isMine ? "" : " in another session"}`,
    person: "edited by you",
    restore: "from a restore",
    unsaved: "not saved yet",
  }[change.by];
  return html`<span class=${isMine ? "by mine" : "by other"} title="Last change">${visible(who)}${
    change.at && html`, <time datetime=${change.at} title=${exactTime(change.at)}>${longAgo(change.at)}</time>`
  }</span>`;
}

/** @param {{session: string, target: string, one: Operation, change?: LastChange, isChosen: boolean, isOpen: boolean, toggle: (() => void) | null}} props */
function StepLine({ session, target, one, change, isChosen, isOpen, toggle }) {
  const [isShown, setShown] = useState(isOpen);
  const does = deed(one.type);
  const words = !isChosen ? "keep" : does === "create" ? "bring back" : does === "delete" ? "remove" : "rewrite";
  return html`<li>
    ${
      toggle
        ? html`<input type="checkbox" checked=${isChosen} aria-label=${visible(one.path)}
      onChange=${toggle} />`
        : html`<span></span>`
    }
    <span class=${`does ${does}`}>${words}</span>
    <${PathName} path=${one.path} />
    ${change ? html`<${ChangedBy} change=${change} session=${session} />` : html`<span></span>`}
    <small><button class="link" aria-expanded=${isShown}
      aria-label=${`${isShown ? "Hide" : "Show"} what changes in ${visible(one.path)}`}
      onClick=${() => setShown(!isShown)}>${isShown ? "hide" : "show"}</button></small>
    ${isShown && html`<${Peek} session=${session} target=${target} path=${one.path} />`}
  </li>`;
}

/** What the restore would do to one file: from now to then. @param {{session: string, target: string, path: string}} props */
function Peek({ session, target, path }) {
  const loaded = useLoaded((stop) => api.diff(session, { older: target, newer: null }, { path }, stop), [path]);
  if (loaded.busy) return html`<div class="peek"><${Loading} label="Loading the change" /></div>`;
  const file = loaded.value?.files?.[0];
  const shown = /** @type {import("./diff-lines.js").Hunk[]} */ (file?.hunks ?? []);
  if (shown.length === 0)
    return html`<div class="peek"><p class="remark soft">
      ${file?.content === "binary" ? "A binary file." : "No lines to show."}</p></div>`;
  return html`<div class="peek">${shown.map((one) => html`<${Lines} lines=${hunkLines(reversed(one))} split=${false} />`)}</div>`;
}

/** @param {{one: any, choose: (mode: string) => void}} props */
function ComponentChoice({ one, choose }) {
  const modes = Object.entries(one.choices ?? {});
  const actions = /** @type {string[]} */ (one.actions ?? []);
  const isOn = actions.length > 0;
  const said = isOn ? actions : one.blocked?.length > 0 ? one.blocked : ["nothing to restore"];
  const name = componentWords(one.name);
  return html`<div class="option"><label class="option grow">
    <input type="checkbox" checked=${isOn} disabled=${!isOn && modes.length === 0}
      onChange=${() => choose(isOn ? "files" : (modes[0]?.[0] ?? "exact"))} /> <b>
      ${name.charAt(0).toUpperCase() + visible(name.slice(1))}</b> <ul class="soft">
      ${said.map((/** @type {string} */ words) => html`<li>${visible(words)}</li>`)}</ul></label>
    ${
      modes.length > 1 &&
      html`<select aria-label=${`How to restore ${visible(name)}`} value=${one.mode}
        onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)}>
      ${modes.map(([mode, said]) => html`<option value=${mode}>${visible(String(said))}</option>`)}</select>`
    }</div>`;
}

/** @param {{git: any, chosen: string, choose: (mode: string) => void}} props */
function GitChoice({ git, chosen, choose }) {
  /** @param {{branch: string | null, commit: string | null}} place */
  const at = (place) =>
    html`<code>${visible(place.branch ?? "detached")}</code>${place.commit && html` @ <code>${place.commit.slice(0, 7)}</code>`}`;
  /** @type {Record<string, string>} */
  const words = {
    files: "Leave git unchanged",
    exact: "Restore HEAD and the index too",
    branch: "Restore on a new branch",
    revert: "Add a revert commit",
  };
  return html`<div class="option"><b>Git</b> <span class="soft">now ${at(git.now)}, then ${at(git.then)}</span>
    <select aria-label="How to restore git" value=${chosen}
      onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)}>
      ${["files", ...git.modes.filter((/** @type {string} */ mode) => mode !== "files")].map(
        (mode) => html`<option
        value=${mode}>${words[mode] ?? mode}</option>`,
      )}</select></div>`;
}

/** @param {{list: {path: string, reason: string}[]}} props */
function Reasons({ list }) {
  return html`<ul>${list.slice(0, MOST_LISTED).map(
    (one) => html`<li><code>
    ${visible(one.path)}</code> <span class="faint">${visible(one.reason)}</span></li>`,
  )}</ul>`;
}
