// Undoes the last action in the workspace, yours or an agent's: shown first, then done.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { visible } from "./format.js";
import { html, signal, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { changedWords } from "./restore-choice.js";
import { Loading, Refused } from "./states.js";
import { say, sayProblem } from "./toast.js";

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
  const [isWorking, setWorking] = useState(false);
  const plan = preview.value;
  const changed = plan ? changedWords(plan) : "";
  const run = async () => {
    setWorking(true);
    try {
      await api.undoLast(plan.plan);
      close();
      done();
      say({
        text: `Undone: ${changed}.`,
        action: { label: "Redo", run: () => api.redoLast().then(done, (error) => sayProblem(error, "Not redone")) },
      });
    } catch (error) {
      setWorking(false);
      sayProblem(error, "Not undone");
      preview.again();
    }
  };
  const foot = html`<p>Everything as it is now is saved first.</p><button onClick=${close}>Cancel</button>
    <button class="main" disabled=${!plan || isWorking} onClick=${run}>Undo ${changed}</button>`;
  return html`<${Dialog} narrow=${true} close=${close} title="Undo the last action" foot=${foot}>
    ${
      preview.error
        ? html`<${Refused} doing="Nothing to undo" error=${preview.error} />`
        : !plan
          ? html`<${Loading} label="Looking up the last action" />`
          : html`<section>
      <p>${visible(plan.undone?.what ?? "The last change")}</p>
      <ul>${plan.operations.slice(0, 12).map(
        (/** @type {{type: string, path: string}} */ one) => html`<li><code>
        ${visible(one.path)}</code></li>`,
      )}</ul>
      ${plan.operations.length > 12 && html`<p class="faint">and ${plan.operations.length - 12} more</p>`}
      ${plan.warnings.map((/** @type {string} */ warning) => html`<p class="note caution">${visible(warning)}</p>`)}
    </section>`
    }
  <//>`;
}
