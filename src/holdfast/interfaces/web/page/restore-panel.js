// The restore panel: a full preview above the button that restores.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { Lines } from "./diff-file.js";
import { hunkLines, reversed } from "./diff-lines.js";
import { clock, dayOf, plural, visible, visiblePath } from "./format.js";
import { useHunkParts } from "./hunk-parts.js";
import { html, useMemo, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { changedWords, choiceRows, chosenPaths, chosenRows, rowWords } from "./restore-choice.js";
import { restoredComponents } from "./restore-components.js";
import { RestorePlan } from "./restore-plan.js";
import { Loading, Refused } from "./states.js";
import { say, sayProblem } from "./toast.js";
import { failedComponents, sayFailures, undoWith } from "./undo.js";
import { commandOf, componentWords, titleText } from "./words.js";

/** @typedef {import("./diff-lines.js").Hunk} Hunk */

/**
 * @typedef {object} RestoreTask
 * @property {"moment" | "reset"} what
 * @property {string} moment the checkpoint; for a reset, the session's own choice
 * @property {import("./api.js").RestoreChoice} choice
 * @property {import("./hunk-parts.js").ChosenLines} [lines] only these lines of one file
 */

/**
 * @param {{session: string, task: RestoreTask, events: import("./timeline-rows.js").TimelineEvent[], close: () => void, done: () => void, compare: () => void}} props
 * `events` are those of the session, newest first.
 */
export function RestorePanel({ session, task, events, close, done, compare }) {
  const [components, setComponents] = useState(/** @type {Record<string, string>} */ ({}));
  const [left, setLeft] = useState(() => new Set(/** @type {string[]} */ ([])));
  const [progress, setProgress] = useState(/** @type {import("./api.js").Progress | null} */ (null));
  const isWorking = progress !== null;
  const isReset = task.what === "reset";
  const [leftLines, setLeftLines] = useState(() => new Set(/** @type {(string | undefined)[]} */ ([])));
  const parts = useHunkParts(session, task.moment, task.lines);
  const chosenParts = (parts.value?.there ?? []).filter((one) => !leftLines.has(one.id));
  const isOfLines = task.lines !== undefined;
  const choice = isOfLines
    ? { ...task.choice, hunks: chosenParts.flatMap((one) => one.id ?? []), context: 0 }
    : task.choice;
  const preview = useLoaded(
    (stop) =>
      isReset
        ? api.resetPreview(session)
        : isOfLines && chosenParts.length === 0
          ? null
          : api.restorePreview(session, task.moment, { ...choice, components }, stop),
    [session, task.moment, JSON.stringify(components), JSON.stringify(choice.hunks)],
    { keep: true },
  );
  const target = useLoaded(
    (stop) => {
      const id = isReset ? preview.value?.restored_to : task.moment;
      return id ? api.moment(session, id, stop) : null;
    },
    [isReset ? preview.value?.restored_to : task.moment],
  );

  const plan = preview.error ? null : preview.value;
  const rows = useMemo(() => (plan ? choiceRows(plan) : []), [plan]);
  const chosen = chosenRows(rows, left);
  const name = target.value ? (target.value.name ? visible(target.value.name) : inQuotes(target.value.reasoning)) : "…";

  /** What to restore, with the plan that must still match. @returns {Promise<import("./api.js").RestoreChoice & {plan: string}>} */
  const checkedChoice = async () => {
    const whole = { ...choice, components };
    if (left.size === 0) return { ...whole, plan: plan.plan };
    const part = { ...choice, paths: chosenPaths(rows, left) };
    const { plan: planOfPart } = await api.restorePreview(session, task.moment, part);
    // Checked after the part: if the whole plan is unchanged, so is the part.
    const now = await api.restorePreview(session, task.moment, whole);
    if (now.plan !== plan.plan) throw new Error("The workspace has changed since the preview");
    return { ...part, plan: planOfPart };
  };

  const run = async () => {
    setProgress({ done: 0, total: null, phase: null });
    try {
      const outcome = isReset
        ? await api.reset(session, plan.plan, setProgress)
        : await api.restore(session, task.moment, await checkedChoice(), setProgress);
      close();
      done();
      sayRestored(session, task, outcome, others, done);
    } catch (error) {
      setProgress(null);
      sayProblem(error, "Nothing was restored");
      preview.again();
      parts.again();
    }
  };

  // A restore of some files leaves everything else as it is.
  const others = plan && left.size === 0 ? restoredComponents(plan) : [];
  const blocked = plan?.conflicts?.length > 0;
  const nothing =
    (isOfLines && parts.value && chosenParts.length === 0) || (plan && chosen.length === 0 && others.length === 0);
  const foot = html`<p>The current state is saved first, so you can undo this.</p>
    <button onClick=${close}>Cancel</button>
    <button class="main" disabled=${!plan || preview.busy || isWorking || nothing || blocked} onClick=${run}>
      ${isWorking ? "Restoring…" : plan || nothing ? buttonWords(task, rowWords(chosen), nothing, others) : isReset ? "Reset" : "Restore"}</button>`;
  return html`<${Dialog} close=${() => !isWorking && close()} title=${title(task, name)}
    under=${isOfLines ? "All other lines and files stay as they are." : target.value && html`<${Under} moment=${target.value} />`} foot=${foot}>
    ${
      isOfLines &&
      parts.value &&
      html`<${ChosenChanges} parts=${parts.value} left=${leftLines} setLeft=${setLeftLines}
        compare=${() => (close(), compare())} />`
    }
    ${
      !plan &&
      (preview.error || parts.error
        ? html`<${Refused} doing="The preview failed" error=${preview.error ?? parts.error}
      again=${() => (preview.again(), parts.again())} />`
        : (preview.busy || parts.busy) && html`<${Loading} label="Calculating the changes" />`)
    }
    ${
      plan &&
      html`<${RestorePlan} session=${session} task=${task} plan=${plan} rows=${rows}
      fileCount=${target.value?.file_count ?? null} left=${left} setLeft=${setLeft} components=${components} setComponents=${setComponents}
      commands=${commandsSince(events, plan.restored_to)} />`
    }
    ${progress && html`<section><${ProgressLine} progress=${progress} /></section>`}
  <//>`;
}

/** @param {{parts: {there: Hunk[], gone: Hunk[]}, left: Set<string | undefined>, setLeft: (left: Set<string | undefined>) => void, compare: () => void}} props */
function ChosenChanges({ parts, left, setLeft, compare }) {
  const { there, gone } = parts;
  const toggle = (/** @type {string | undefined} */ id) => {
    const next = new Set(left);
    if (!next.delete(id)) next.add(id);
    setLeft(next);
  };
  return html`${
    there.length > 0 &&
    html`<section><h3>${there.length === 1 ? "What changes" : "What changes. Untick lines to keep them."}</h3>
    ${there.map(
      (one) => html`<div class=${there.length > 1 ? "part" : null} key=${one.id}>
      ${
        there.length > 1 &&
        html`<label class="tick"><input type="checkbox" checked=${!left.has(one.id)}
          aria-label=${`The change at line ${one.new_start}`} onChange=${() => toggle(one.id)} /></label>`
      }
      <div class="peek"><${Lines} lines=${hunkLines(reversed(one))} split=${false} /></div></div>`,
    )}</section>`
  }
  ${
    gone.length > 0 &&
    html`<section><p class="note caution"><b>${there.length === 0 ? "These lines have changed again since." : `${plural(gone.length, "change")} replaced by later work.`}</b>
      Compare with now to choose what to restore. <button class="link" onClick=${compare}>Compare with now</button></p></section>`
  }`;
}

/** @param {{progress: import("./api.js").Progress}} props */
function ProgressLine({ progress }) {
  const share = progress.total ? Math.min(100, (100 * progress.done) / progress.total) : null;
  return html`<div class="working" role="status"><span>Restoring…</span>
    <span class=${share === null ? "bar-of unknown" : "bar-of"}>
    <i style=${share === null ? {} : { width: `${share}%` }}></i></span>
    ${
      progress.total &&
      html`<span class="num soft">
      ${progress.done.toLocaleString("en")} of ${progress.total.toLocaleString("en")}</span>`
    }</div>`;
}

/** A title for use in quotation marks. @param {string} reasoning */
function inQuotes(reasoning) {
  return titleText(reasoning).replaceAll("“", "‘").replaceAll("”", "’");
}

/** @param {RestoreTask} task @param {string} name */
function title(task, name) {
  if (task.what === "reset") return `Reset to “${name}”`;
  if (task.lines)
    return html`${task.lines.newer === null ? "Restore lines of" : "Undo lines in"} <code>${visiblePath(task.lines.path)}</code>`;
  if (task.choice.paths?.length === 1) return html`Restore <code>${visiblePath(task.choice.paths[0])}</code>`;
  return `Restore “${name}”`;
}

/** @param {RestoreTask} task @param {string} files in words @param {boolean} nothing @param {string[]} others other restored state */
function buttonWords(task, files, nothing, others) {
  if (nothing) return "Nothing to restore";
  if (task.lines) return task.lines.newer === null ? "Restore these lines" : "Undo these lines";
  return `${task.what === "reset" ? "Reset" : "Restore"} ${listed([...(files ? [files] : []), ...others])}`;
}

/** @param {{moment: any}} props */
function Under({ moment }) {
  const day = dayOf(moment.created_at).toLowerCase();
  const note = moment.annotations.at(-1);
  return html`<span class="num">
    ${clock(moment.created_at)}</span> ${day}${moment.name && ` · ${titleText(moment.reasoning)}`}${note && html` · note: “${visible(note.text)}”`}`;
}

/**
 * Reports what was restored, with an undo button, and what was not.
 * @param {string} session @param {RestoreTask} task @param {any} outcome @param {string[]} others the components of the plan @param {() => void} done
 */
function sayRestored(session, task, outcome, others, done) {
  const changed = changedWords(outcome);
  const way = { undo: () => api.undo(session), redo: () => api.redo(session) };
  const failed = failedComponents(outcome).map((one) => componentWords(one.name));
  const restored = [...(changed ? [changed] : []), ...others.filter((name) => !failed.includes(name))];
  const what = task.lines ? `lines of ${visiblePath(task.lines.path)}` : listed(restored);
  say({
    text: what ? `Restored ${what}.` : "Nothing needed to change.",
    action: outcome.safety_checkpoint || changed ? { label: "Undo", run: () => undoWith(way, done) } : undefined,
  });
  sayFailures(outcome);
}

/** "3 files, git, and worktrees". @param {string[]} what */
function listed(what) {
  if (what.length < 2) return what[0] ?? "";
  const and = what.length > 2 || what[0].includes(" and ") ? ", and " : " and ";
  return what.slice(0, -1).join(", ") + and + what.at(-1);
}

/**
 * The commands that an agent ran after a moment, newest first; none if the moment is not among the events.
 * @param {import("./timeline-rows.js").TimelineEvent[]} events newest first @param {string} moment
 * @returns {import("./restore-plan.js").RunCommand[]}
 */
export function commandsSince(events, moment) {
  const place = events.findIndex((event) => event.checkpoint?.id === moment);
  /** @type {(import("./restore-plan.js").RunCommand & {ended: boolean})[]} */
  const found = [];
  for (const event of events.slice(0, Math.max(0, place + 1)).reverse()) {
    const run = commandOf(event.checkpoint?.reasoning ?? "");
    if (!run) continue;
    const last = found.at(-1);
    // The moment after a call quotes all of it.
    if (run.ended && last && !last.ended) Object.assign(last, { ...run, at: last.at });
    else if (!run.ended || event.checkpoint?.id !== moment) found.push({ ...run, at: event.at });
  }
  return found.reverse();
}
