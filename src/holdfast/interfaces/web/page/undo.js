// Undoes the last action in the workspace, yours or an agent's, after a preview.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { visible, visiblePath } from "./format.js";
import { html, signal, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { changedWords } from "./restore-choice.js";
import { Loading, Refused } from "./states.js";
import { say, sayProblem } from "./toast.js";
import { componentWords, remarkWords, sentence, undoneWords } from "./words.js";

const MOST_PROBLEMS = 3;

/** @type {import("./html.js").Signal<(() => void) | null>} */
const open = signal(null);

/** @param {() => void} done */
export function openUndo(done) {
  open.value = done;
}

export function UndoPanel() {
  const done = open.value;
  return done && html`<${Panel} close=${() => (open.value = null)} done=${done} />`;
}

/** @param {{close: () => void, done: () => void}} props */
function Panel({ close, done }) {
  const preview = useLoaded(() => api.undoPreview(), []);
  const redoPreview = useLoaded(() => api.redoPreview(), []);
  const [isWorking, setWorking] = useState(false);
  const plan = preview.value;
  const changed = plan ? changedWords(plan) : "";
  const run = async () => {
    setWorking(true);
    try {
      const undone = await api.undoLast(plan.plan);
      close();
      done();
      sayUndone(undone, LAST, done);
    } catch (error) {
      setWorking(false);
      sayProblem(error, "Not undone");
      preview.again();
    }
  };
  const redo = async () => {
    close();
    await redoWith(LAST, done);
  };
  const foot = html`<p>The current state is saved first.</p><button onClick=${close}>Cancel</button>
    <button class="main" disabled=${!plan || isWorking} onClick=${run}>Undo ${changed}</button>`;
  // With keys, because either part may come first: else the other one's button is replaced, and loses the focus.
  return html`<${Dialog} narrow=${true} close=${close} title="Undo the last action" foot=${foot}>
    ${
      preview.error
        ? html`<${Refused} doing="Nothing to undo" error=${preview.error} />`
        : !plan
          ? html`<${Loading} label="Looking up the last action" />`
          : html`<section key="undo">
      <p>${undoneWords(plan.undone?.what)}</p>
      <ul>${plan.operations.slice(0, 12).map(
        (/** @type {{type: string, path: string}} */ one) => html`<li><code>
        ${visiblePath(one.path)}</code></li>`,
      )}</ul>
      ${plan.operations.length > 12 && html`<p class="faint">and ${plan.operations.length - 12} more</p>`}
      ${plan.warnings.map((/** @type {string} */ warning) => html`<p class="note caution">${remarkWords(warning)}</p>`)}
    </section>`
    }
    ${
      redoPreview.value &&
      html`<section key="redo"><p>You can also redo the last undo: ${undoneWords(redoPreview.value.undone?.what)}</p>
      <button disabled=${isWorking} onClick=${redo}>Redo ${changedWords(redoPreview.value)}</button></section>`
    }
  <//>`;
}

/** @typedef {{name: string, status: string, detail?: string}} ComponentOutcome */
/** @typedef {{components: ComponentOutcome[], conflicts: {path: string, reason: string}[], skipped: {path: string, reason: string}[]}} Outcome of a restore, undo or redo */

/** @param {Outcome} outcome */
export function failedComponents({ components }) {
  return components.filter((one) => one.status === "failed");
}

/** Reports what was not restored. @param {Outcome} outcome */
export function sayFailures(outcome) {
  const problems = [
    ...failedComponents(outcome).map(
      (one) => `${sentence(componentWords(one.name))} was not restored: ${visible(one.detail ?? "")}`,
    ),
    ...[...outcome.conflicts, ...outcome.skipped].map((one) => `${visiblePath(one.path)}: ${visible(one.reason)}`),
  ];
  const more = problems.length - MOST_PROBLEMS;
  const text = problems.slice(0, MOST_PROBLEMS).join("; ");
  if (text) say({ wrong: true, text, hint: more > 0 ? `And ${more} more.` : undefined });
}

/** @typedef {{undo: () => Promise<any>, redo: () => Promise<any>}} WayBack */

/** The last action in the workspace. @type {WayBack} */
const LAST = { undo: () => api.undoLast(null), redo: () => api.redoLast() };

/** @param {any} undone @param {WayBack} way @param {() => void} done */
function sayUndone(undone, way, done) {
  say({
    text: `Undone: ${changedWords(undone) || "no file had to change"}.`,
    action: { label: "Redo", run: () => redoWith(way, done) },
  });
  sayFailures(undone);
}

/** Undoes, and reports it with a redo button. @param {WayBack} way @param {() => void} done */
export async function undoWith(way, done) {
  try {
    const undone = await way.undo();
    done();
    sayUndone(undone, way, done);
  } catch (error) {
    sayProblem(error, "Not undone");
  }
}

/** @param {WayBack} way @param {() => void} done */
async function redoWith(way, done) {
  try {
    const redone = await way.redo();
    done();
    say({
      text: `Redone: ${changedWords(redone) || "no file had to change"}.`,
      action: { label: "Undo", run: () => undoWith(way, done) },
    });
    sayFailures(redone);
  } catch (error) {
    sayProblem(error, "Not redone");
  }
}
