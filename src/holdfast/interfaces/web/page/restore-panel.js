// The restore panel: everything that will happen, before the button that says so.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { clock, dayOf, plural, visible } from "./format.js";
import { html, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { RestorePlan } from "./restore-plan.js";
import { Loading, Refused } from "./states.js";
import { say, sayProblem } from "./toast.js";
import { titleText } from "./words.js";

/** @typedef {import("./restore-plan.js").Operation} Operation */

/**
 * @typedef {object} RestoreTask
 * @property {"moment" | "reset"} what
 * @property {string} moment the checkpoint; for a reset, the session's own choice
 * @property {import("./api.js").RestoreChoice} choice
 * @property {import("./diff-lines.js").Hunk} [hunk] the lines to restore, as they were shown
 */

/** @param {{session: string, task: RestoreTask, close: () => void, done: () => void}} props */
export function RestorePanel({ session, task, close, done }) {
  const [components, setComponents] = useState(/** @type {Record<string, string>} */ ({}));
  const [left, setLeft] = useState(() => new Set(/** @type {string[]} */ ([])));
  const [progress, setProgress] = useState(/** @type {import("./api.js").Progress | null} */ (null));
  const isWorking = progress !== null;
  const isReset = task.what === "reset";
  const preview = useLoaded(
    (stop) =>
      isReset
        ? api.resetPreview(session)
        : api.restorePreview(session, task.moment, { ...task.choice, components }, stop),
    [session, task.moment, JSON.stringify(components)],
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
  const files = new Set(plan?.affected_files ?? []);
  const operations = /** @type {Operation[]} */ (plan?.operations ?? []).filter((one) => files.has(one.path));
  const chosen = operations.filter((one) => !left.has(one.path));
  const name = target.value ? visible(target.value.name ?? titleText(target.value.reasoning)) : "…";

  /** What to restore, with the plan that has to hold. @returns {Promise<import("./api.js").RestoreChoice & {plan: string}>} */
  const checkedChoice = async () => {
    const whole = { ...task.choice, components };
    if (left.size === 0) return { ...whole, plan: plan.plan };
    const part = { ...whole, paths: chosen.map((one) => one.path) };
    const { plan: planOfPart } = await api.restorePreview(session, task.moment, part);
    // Asked after the part: if everything is still as it was shown, so is the part.
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
      sayRestored(session, outcome, done);
    } catch (error) {
      setProgress(null);
      sayProblem(error, "Nothing was restored");
      preview.again();
    }
  };

  const blocked = plan?.conflicts?.length > 0;
  const nothing =
    plan && chosen.length === 0 && !plan.components.some((/** @type {any} */ one) => one.actions?.length > 0);
  const foot = html`<p>The current state is saved first, so you can undo this.</p>
    <button onClick=${close}>Cancel</button>
    <button class="main" disabled=${!plan || preview.busy || isWorking || nothing || blocked} onClick=${run}>
      ${isWorking ? "Restoring…" : buttonWords(task, chosen.length, nothing)}</button>`;
  return html`<${Dialog} close=${() => !isWorking && close()} title=${title(task, name)}
    under=${target.value && html`<${Under} moment=${target.value} />`} foot=${foot}>
    ${
      !plan &&
      (preview.error
        ? html`<${Refused} doing="The preview failed" error=${preview.error}
      again=${preview.again} />`
        : html`<${Loading} label="Calculating the changes" />`)
    }
    ${
      plan &&
      html`<${RestorePlan} session=${session} task=${task} plan=${plan} operations=${operations}
      fileCount=${target.value?.file_count ?? null} left=${left} setLeft=${setLeft} components=${components} setComponents=${setComponents} />`
    }
    ${progress && html`<section><${ProgressLine} progress=${progress} /></section>`}
  <//>`;
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

/** @param {RestoreTask} task @param {string} name */
function title(task, name) {
  if (task.what === "reset") return `Reset to “${name}”`;
  if (task.choice.hunks) return html`Restore lines of <code>${visible(task.choice.paths?.[0] ?? "")}</code>`;
  if (task.choice.paths?.length === 1) return html`Restore <code>${visible(task.choice.paths[0])}</code>`;
  return `Restore “${name}”`;
}

/** @param {RestoreTask} task @param {number} files @param {boolean} nothing */
function buttonWords(task, files, nothing) {
  if (nothing) return "Nothing to restore";
  if (task.choice.hunks) return "Restore these lines";
  if (task.what === "reset") return `Reset ${plural(files, "file")}`;
  return files === 0 ? "Restore" : `Restore ${plural(files, "file")}`;
}

/** @param {{moment: any}} props */
function Under({ moment }) {
  const day = dayOf(moment.created_at).toLowerCase();
  const note = moment.annotations.at(-1);
  return html`<span class="num">
    ${clock(moment.created_at)}</span> ${day}${moment.name && ` · ${titleText(moment.reasoning)}`}${note && html` · note: “${visible(note.text)}”`}`;
}

/** Says what was restored, with the way back. @param {string} session @param {any} outcome @param {() => void} done */
function sayRestored(session, outcome, done) {
  const files = outcome.created + outcome.restored + outcome.deleted;
  const undo = async () => {
    try {
      const undone = await api.undo(session);
      done();
      say({
        text: `Undone. ${plural(undone.created + undone.restored + undone.deleted, "file")} back to the state before the restore`,
      });
    } catch (error) {
      sayProblem(error, "Not undone");
    }
  };
  const skipped = outcome.skipped?.length ? ` ${plural(outcome.skipped.length, "path")} could not be restored.` : "";
  say({
    text: files === 0 ? `Nothing needed to change.${skipped}` : `Restored ${plural(files, "file")}.${skipped}`,
    action: outcome.safety_checkpoint || files > 0 ? { label: "Undo", run: undo } : undefined,
  });
}
