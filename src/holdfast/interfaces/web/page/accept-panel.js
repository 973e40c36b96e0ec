// Accept to git: squash the checkpoints since the last approval into one commit, with an editable message.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { plural, visible, visiblePath } from "./format.js";
import { html, useState } from "./html.js";
import { useLoaded } from "./load.js";
import { PathName } from "./path-name.js";
import { Loading, Refused } from "./states.js";
import { say, sayProblem } from "./toast.js";
import { remarkWords, withoutOptions } from "./words.js";

const MOST_LISTED = 100;
/** @type {Record<string, [string, string]>} git's letters in words, with their colour class */
const STATUS = { A: ["add", "create"], M: ["change", ""], D: ["delete", "delete"], T: ["change type", ""] };

/**
 * `range` is a range of checkpoints, `A..B`; by default the unapproved ones.
 * @param {{session: string, range: string | null, close: () => void}} props
 */
export function AcceptPanel({ session, range, close }) {
  const preview = useLoaded(() => api.acceptPreview(session, range), [session, range], { keep: true });
  const [message, setMessage] = useState(/** @type {string | null} */ (null));
  const [isWorking, setWorking] = useState(false);
  const plan = preview.value;
  const run = async () => {
    setWorking(true);
    try {
      const done = await api.accept(session, message ?? plan.message, `${plan.from ?? ""}..${plan.to}`);
      close();
      say({
        text: `Committed ${plural(done.files.length, "file")} as ${String(done.commit).slice(0, 7)}.`,
        hint: done.undo ? `Undo in a terminal: ${done.undo}` : undefined,
      });
    } catch (error) {
      setWorking(false);
      sayProblem(error, "No commit was made");
    }
  };
  const isBlocked = plan && (plan.obstacles.length > 0 || plan.files.length === 0);
  const foot = html`<p>Your files stay as they are. Your git hooks run.</p><button onClick=${close}>Cancel</button>
    <button class="main" disabled=${!plan || isBlocked || isWorking} onClick=${run}>
      ${plan?.files.length === 0 ? "Nothing to commit" : `Commit ${plan ? plural(plan.files.length, "file") : ""}`}</button>`;
  return html`<${Dialog} close=${close} title="Commit to git"
    under=${
      plan &&
      html`${plural(plan.checkpoints.length, "checkpoint")} as one commit${
        plan.branch &&
        html` on <code>
    ${visible(plan.branch)}</code>`
      }`
    } foot=${foot}>
    ${
      !plan &&
      (preview.error
        ? html`<${Refused} doing="The commit cannot be made"
      error=${preview.error} />`
        : html`<${Loading} label="Preparing the commit" />`)
    }
    ${
      plan &&
      html`
      ${
        plan.obstacles.length > 0 &&
        html`<section>
        ${plan.obstacles.map(
          (
            /** @type {{reason: string, hint: string}} */ one,
          ) => html`<p class="note wrong"><b>${remarkWords(one.reason)}</b>
            ${" "}${remarkWords(withoutOptions(one.hint))}</p>`,
        )}
        <div><button class="small" onClick=${preview.again}>Check again</button></div></section>`
      }
      <section><label class="field"><h3>Message</h3><textarea rows="8" class="code" value=${message ?? plan.message}
        onInput=${(/** @type {Event} */ event) => setMessage(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea></label></section>
      <section><h3>${plural(plan.files.length, "file")}</h3><ul class="steps">
        ${plan.files.slice(0, MOST_LISTED).map(
          (/** @type {{path: string, status: string}} */ one) => html`<li>
        <span></span><span class=${`does ${STATUS[one.status]?.[1] ?? ""}`}>${STATUS[one.status]?.[0] ?? one.status}</span><${PathName} path=${one.path} /></li>`,
        )}</ul>
        ${
          plan.left_out.length > 0 &&
          html`<details><summary>${plural(plan.left_out.length, "path")} left out</summary>
          <ul>${plan.left_out.map(
            (/** @type {{path: string, reason: string}} */ one) => html`<li><code>
          ${visiblePath(one.path)}</code> <span class="faint">${visible(one.reason)}</span></li>`,
          )}</ul></details>`
        }
        ${plan.warnings.map((/** @type {string} */ warning) => html`<p class="note caution">${visible(warning)}</p>`)}
      </section>`
    }
  <//>`;
}
