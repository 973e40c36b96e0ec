// The moment: reason, facts, saved state, notes, and the restore button.

import { Annotations } from "./annotations.js";
import { api } from "./api.js";
import { CopyButton } from "./copy-button.js";
import { clock, plural, shortId, size, visible, visiblePath } from "./format.js";
import { useDraft } from "./draft.js";
import { html, useState } from "./html.js";
import { left } from "./icons.js";
import { useLoaded } from "./load.js";
import { Empty, Loading, Refused } from "./states.js";
import { Ago } from "./time-ago.js";
import { changedFiles, hasConfidence, sureness } from "./timeline-rows.js";
import { sayProblem } from "./toast.js";
import { agentName, changeWords, componentWords, kindWords, returnTitle, riskOf, subjectOf, titleOf } from "./words.js";

const MOST_LISTED = 8;

/**
 * @param {object} props
 * @param {string} props.session
 * @param {import("./load.js").Loaded<any>} props.loaded
 * @param {number} props.directories how many of its changed paths are directories
 * @param {string | null} props.restoredTo the reason of the restored moment
 * @param {string} props.backTo
 * @param {string} props.changesAt
 * @param {(moment: any) => void} props.restore
 * @param {string} props.replayAt
 * @param {(() => void) | null} props.commit
 * @param {() => void} props.changed
 */
export function Moment({
  session,
  loaded,
  directories,
  restoredTo,
  backTo,
  changesAt,
  restore,
  replayAt,
  commit,
  changed,
}) {
  const moment = loaded.value;
  const back = html`<a class="back" href=${backTo}>${left} Timeline</a>`;
  if (!moment) {
    const state = loaded.error
      ? html`<${Refused} doing="This moment could not be loaded" error=${loaded.error} again=${loaded.again} />`
      : loaded.busy
        ? html`<${Loading} label="Loading the moment" />`
        : html`<${Empty} title="No moment selected"><p>Select one on the timeline.</p><//>`;
    return html`<section class="pane moment" aria-label="Moment">${back}${state}</section>`;
  }
  const risk = riskOf(moment.reasoning);
  const [first, ...rest] = moment.reasoning.split("\n");
  const isLong = first.length > 90;
  return html`<section class="pane moment" aria-label="Moment">${back}
    <article class="inside">
      <div class="tags">
        ${moment.kind !== "manual" && moment.kind !== "risky" && html`<span class="tag quiet">${kindWords(moment.kind)}</span>`}
        ${moment.kind === "risky" && html`<span class="tag risky">▲ risky command</span>`}
        ${moment.is_head && html`<span class="tag here">you are here</span>`}
        ${moment.is_approved && html`<span class="tag approved">✓ approved</span>`}
        ${moment.partial && html`<span class="tag quiet">partial</span>`}
        <${Name} key=${moment.id} session=${session} moment=${moment} isTitle=${isLong && moment.name} changed=${changed} />
        ${moment.tags.map((/** @type {string} */ tag) => html`<span class="tag">#${visible(tag)}</span>`)}
      </div>
      ${
        isLong && moment.name
          ? html`<h2>${visible(moment.name)}</h2><p class="words">“${visible(moment.reasoning)}”</p>`
          : html`<h2>${returnTitle(first, [], restoredTo) || titleOf(first)}</h2>${rest.length > 0 && html`<p class="words">${visible(rest.join("\n").trim())}</p>`}`
      }
      ${risk && html`<p class="note caution"><b>Risky:</b> ${visible(risk)}</p>`}
      <div class="acts">
        <button class="main" onClick=${() => restore(moment)}>Restore this moment…</button>
        <a class="button" href=${replayAt}>Replay</a>
        ${commit && html`<button onClick=${commit}>Commit to git…</button>`}
      </div>
      <a class="button to-changes" href=${changesAt}>See the changes</a>
      <${Facts} session=${session} moment=${moment} directories=${directories} />
      <${Calls} calls=${moment.tool_calls} reasoning=${moment.reasoning} />
      <${Annotations} key=${moment.id} session=${session} moment=${moment} changed=${changed} />
    </article>
  </section>`;
}

/** @param {{session: string, moment: any, isTitle: boolean, changed: () => void}} props */
function Name({ session, moment, isTitle, changed }) {
  const [isEdited, setEdited] = useState(false);
  const draft = useDraft(moment.name ?? "");
  if (!isEdited) {
    return html`<button class="tag" title="Rename" onClick=${() => setEdited(true)}>
      ${isTitle ? "Rename…" : moment.name ? visible(moment.name) : "Add a name…"}</button>`;
  }
  const keep = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const name = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("name") ?? "").trim();
    setEdited(false);
    try {
      await api.rename(session, moment.id, { name: name || null });
      draft.kept(draft.text);
      changed();
    } catch (error) {
      sayProblem(error, "The name was not saved");
    }
  };
  const leave = (/** @type {KeyboardEvent} */ event) =>
    event.key === "Escape" && (draft.kept(draft.text), setEdited(false));
  return html`<form onSubmit=${keep}>
    <input type="text" name="name" aria-label="Name of this moment" value=${draft.text} onInput=${draft.write} maxlength="128"
      ref=${focusOnce} onBlur=${() => setEdited(false)} onKeyDown=${leave} />
  </form>`;
}

/** @param {HTMLInputElement | null} box */
function focusOnce(box) {
  box?.focus();
}

/** @param {{session: string, moment: any, directories: number}} props */
function Facts({ session, moment, directories }) {
  const { git } = moment;
  const failed = [
    ...moment.components.flatMap((/** @type {any} */ one) =>
      one.failure ? [[componentWords(one.name), one.failure]] : [],
    ),
    ...moment.tool_calls.flatMap((/** @type {any} */ call) => Object.entries(call?.not_captured ?? {})),
  ];
  return html`<dl class="facts">
    ${
      hasConfidence(moment.kind) &&
      html`<dt>Confidence</dt><dd><span class="meter" aria-hidden="true">
      <i class=${sureness(moment.confidence)} style=${{ width: `${moment.confidence * 100}%` }}></i></span>
      <span class="num">${Math.round(moment.confidence * 100)}%</span></dd>`
    }
    ${
      moment.goal_id &&
      html`<dt>Goal</dt><dd>
      ${visible(moment.goal_id)}${moment.task_id && ` · task ${visible(moment.task_id)}`}</dd>`
    }
    ${
      moment.message &&
      html`<dt>${moment.message.role === "user" ? "You asked" : "Message"}</dt>
      <dd>“${visible(shortened(moment.message.content))}”</dd>`
    }
    <dt>When</dt><dd><span class="num">${clock(moment.created_at)}</span> · <${Ago} at=${moment.created_at} /></dd>
    <dt>Changed</dt><dd>${changeWords(moment.changed, directories)}${changedFiles(moment) > 0 && " since the previous step"}</dd>
    <dt>Saved</dt><dd class="num">${plural(moment.file_count, "file")} · ${size(moment.size_bytes)}</dd>
    ${git && html`<dt>Git</dt><dd><${Git} key=${moment.id} git=${git} /></dd>`}
    ${moment.databases.length > 0 && html`<${Databases} session=${session} moment=${moment} />`}
    <${Besides} key=${`besides ${moment.id}`} session=${session} moment=${moment} />
    ${failed.map(([what, why]) => html`<dt>Not saved</dt><dd>${visible(what)}: ${visible(why)}</dd>`)}
    ${moment.skipped.length > 0 && html`<dt>Skipped</dt><dd><${LeftOut} skipped=${moment.skipped} /></dd>`}
    <dt>Id</dt><dd class="id"><code>${shortId(moment.id)}</code> <${CopyButton} text=${moment.id}
      label="Copy the whole id" /></dd>
  </dl>`;
}

/** @param {string} text */
function shortened(text) {
  return text.length > 280 ? `${text.slice(0, 280)}…` : text;
}

/**
 * `feature/async` @ `9b2e10c`, and the files that differ from it.
 * @param {{git: {branch: string | null, commit_hash: string | null, dirty: number | null, dirty_files: string[], staged_files: string[]}}} props
 */
function Git({ git }) {
  const place = git.branch ? html`<code>${visible(git.branch)}</code>` : "detached";
  const dirt = [
    git.dirty && `${git.dirty.toLocaleString("en")} dirty`,
    git.staged_files.length > 0 && `${git.staged_files.length} staged`,
  ].filter(Boolean);
  const files = [...new Set([...git.staged_files, ...git.dirty_files])];
  const total = Math.max(files.length, git.dirty ?? 0);
  return html`${place}${git.commit_hash && html` @ <code>${git.commit_hash.slice(0, 7)}</code>`}
    ${
      dirt.length > 0 &&
      html`<details><summary>${dirt.join(", ")}</summary><ul>
      ${files
        .slice(0, MOST_LISTED)
        .map(
          (path) =>
            html`<li><code>${visiblePath(path)}</code>${git.staged_files.includes(path) && html` <span class="faint">staged</span>`}</li>`,
        )}
      ${total > MOST_LISTED && html`<li class="faint">and ${(total - MOST_LISTED).toLocaleString("en")} more</li>`}</ul></details>`
    }`;
}

/** Counting rows takes longer than the rest, so the counts are added later. @param {{session: string, moment: any}} props */
function Databases({ session, moment }) {
  const counted = useLoaded(() => api.databases(session, moment.id), [session, moment.id]);
  const listed = counted.value ?? moment.databases;
  return html`<dt>${listed.length === 1 ? "Database" : "Databases"}</dt><dd><ul>
    ${listed.map((/** @type {any} */ one) => html`<li>${databaseWords(one)}</li>`)}</ul></dd>`;
}

/** @param {{name: string, bytes: number | null, tables: number | null, rows: number | null}} one */
function databaseWords(one) {
  const parts = [
    one.tables !== null && plural(one.tables, "table"),
    one.rows !== null && plural(one.rows, "row"),
    one.bytes !== null && size(one.bytes),
  ];
  return html`<code>${visible(one.name)}</code> · ${parts.filter(Boolean).join(", ")}`;
}

/** Other saved state: agent memory, worktrees, files outside. @param {{session: string, moment: any}} props */
function Besides({ session, moment }) {
  const facts = new Map(moment.components.map((/** @type {any} */ one) => [one.name, one.failure ? {} : one.facts]));
  const { files = 0, given = [] } = facts.get("agents") ?? {};
  const worktrees = /** @type {{path: string, ref: string | null}[]} */ (facts.get("worktrees")?.worktrees ?? []);
  const outside = /** @type {string[]} */ (facts.get("external")?.paths ?? []);
  return html`${files > 0 && html`<dt>Memory</dt><dd><${Memory} session=${session} moment=${moment.id} files=${files} /></dd>`}
    ${
      given.length > 0 &&
      html`<dt>${given.length === 1 ? "Agent" : "Agents"}</dt><dd>
      ${given.map((/** @type {[string, string]} */ [, agent]) => visible(agentName(agent))).join(", ")}</dd>`
    }
    ${
      worktrees.length > 0 &&
      html`<dt>${worktrees.length === 1 ? "Worktree" : "Worktrees"}</dt><dd><ul>${worktrees.map(
        (one) =>
          html`<li title=${visiblePath(one.path)}><code>${visiblePath(one.path.split("/").at(-1) ?? "")}</code>${
            one.ref && html` on <code>${visible(one.ref.replace("refs/heads/", ""))}</code>`
          }</li>`,
      )}</ul></dd>`
    }
    ${
      outside.length > 0 &&
      html`<dt>Outside</dt><dd><details><summary>${plural(outside.length, "path")} outside the workspace</summary><ul>
      ${outside.slice(0, MOST_LISTED).map((path) => html`<li><code>${visiblePath(path)}</code></li>`)}
      ${outside.length > MOST_LISTED && html`<li class="faint">and ${outside.length - MOST_LISTED} more</li>`}</ul></details></dd>`
    }`;
}

/** The files are loaded with their content, so only on request. @param {{session: string, moment: string, files: number}} props */
function Memory({ session, moment, files }) {
  const [isOpen, setOpen] = useState(false);
  const loaded = useLoaded(() => (isOpen ? api.memory(session, moment) : null), [session, moment, isOpen]);
  return html`<details onToggle=${(/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.target).open)}>
    <summary>${plural(files, "file")}</summary>
    ${loaded.busy && html`<span class="faint">Loading</span>`}
    ${loaded.error !== null && html`<span class="faint">They could not be loaded.</span>`}
    <ul>${(loaded.value?.files ?? []).map(
      (/** @type {{path: string}} */ file) =>
        html`<li><code title=${visiblePath(file.path)}>${visiblePath(file.path.split("/").at(-1) ?? "")}</code></li>`,
    )}</ul></details>`;
}

/** @param {{skipped: {path: string, reason: string, failed?: boolean}[]}} props */
function LeftOut({ skipped }) {
  const failed = skipped.filter((one) => one.failed);
  const shown = [...failed, ...skipped.filter((one) => !one.failed)];
  return html`<details><summary>
    ${plural(skipped.length, "path")}${failed.length > 0 && `, ${failed.length} could not be read`}</summary>
    <ul>${shown.slice(0, MOST_LISTED).map(
      (one) => html`<li><code>${visiblePath(one.path)}</code> <span class="faint">
      ${one.reason}</span></li>`,
    )}
    ${shown.length > MOST_LISTED && html`<li class="faint">and ${shown.length - MOST_LISTED} more</li>`}</ul></details>`;
}

/** Calls that say more than the title. @param {{calls: (string | Record<string, any>)[], reasoning: string}} props */
export function Calls({ calls, reasoning }) {
  const said = calls.map((call) => callText(call, subjectOf(reasoning))).filter(Boolean);
  if (said.length === 0) return null;
  return html`<div class="calls"><h3>${said.length === 1 ? "Tool call" : "Tool calls"}</h3>
    ${said.map((words) => html`<div class="call" tabindex="0">${words}</div>`)}</div>`;
}

/**
 * The tool and its input; "" if the title has both.
 * @param {string | Record<string, any>} call @param {string} title the command or path in the title
 */
function callText(call, title) {
  if (typeof call === "string") return visible(call);
  const given = call.input ?? call.arguments ?? call;
  const listed = /** @type {string[]} */ (given.paths ?? []).join("\n");
  const whole = given === call || Object.keys(given).length === 0 ? "" : JSON.stringify(given);
  const subject =
    typeof given === "string" ? given : String(given.command ?? given.file_path ?? given.path ?? (listed || whole));
  if (!subject || subject === title || subject.endsWith(`/${title}`)) return "";
  return visible(`${call.tool ?? call.name ?? "tool"}  ${subject}`);
}
