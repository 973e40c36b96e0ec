// Saves the workspace now, with a reason, a name and a note.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { plural } from "./format.js";
import { html, useState } from "./html.js";
import { say, sayProblem } from "./toast.js";

/** @param {{session: string, close: () => void, done: () => void}} props */
export function SavePanel({ session, close, done }) {
  const [isWorking, setWorking] = useState(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    setWorking(true);
    try {
      const saved = await api.save(session, {
        reasoning: text("reason") || "Saved from the page",
        name: text("name") || undefined,
        annotation: text("note") || undefined,
      });
      close();
      done();
      say({ text: `Saved ${plural(saved.file_count, "file")}.` });
    } catch (error) {
      setWorking(false);
      sayProblem(error, "Not saved");
    }
  };
  const foot = html`<p>Your files stay as they are.</p><button onClick=${close}>Cancel</button>
    <button class="main" form="save" disabled=${isWorking}>${isWorking ? "Saving…" : "Save checkpoint"}</button>`;
  return html`<${Dialog} narrow=${true} close=${close} title="Save a checkpoint" foot=${foot}>
    <form id="save" onSubmit=${submit}><section>
      <label class="field">Why<input type="text" name="reason" placeholder="Tests are green" maxlength="1000" autofocus /></label>
      <label class="field"><span>Name <span class="faint">optional, to find it again</span></span><input type="text" name="name"
        maxlength="128" placeholder="before-refactor" /></label>
      <label class="field"><span>Note <span class="faint">optional</span></span><textarea name="note" rows="2"
        maxlength="10000"></textarea></label>
    </section></form>
  <//>`;
}
