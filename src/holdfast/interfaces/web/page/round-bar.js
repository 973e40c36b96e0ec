// The round bar: unapproved work, and its actions.

import { api } from "./api.js";
import { Dialog } from "./dialog.js";
import { visible } from "./format.js";
import { html, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { useLoaded } from "./load.js";
import { Ago } from "./time-ago.js";
import { say, sayProblem } from "./toast.js";

/**
 * `accept` opens the commit panel for a range of checkpoints, or for the unapproved ones.
 * @param {{session: string, version: number, review: (approved: string | null) => void, reset: () => void, accept: (range: string | null) => void, changed: () => void}} props
 */
export function RoundBar({ session, version, review, reset, accept, changed }) {
  const loaded = useLoaded(() => roundOf(session), [session, version], { keep: true });
  const [panel, setPanel] = useState(/** @type {"approve" | null} */ (null));
  const { approval, rounds, files } = loaded.value ?? { approval: null, rounds: [], files: "" };
  const active = rounds.find((/** @type {any} */ round) => round.status === "active");
  const number = /\d+$/.exec(active?.name ?? "")?.[0] ?? "1";
  useKeys(
    "Round",
    approval?.has_unapproved
      ? [
          { key: "a", does: "Approve the round", run: () => setPanel("approve") },
          { key: "g", does: "Commit to git", run: () => accept(null) },
        ]
      : [],
    [approval?.has_unapproved, session],
  );
  const last = rounds.findLast((/** @type {any} */ round) => round.status === "merged");
  // Usually there is unapproved work. If the bar moved everything down later, a click that begins before would miss.
  if (!loaded.value && loaded.busy)
    return html`<div class="round placeholder" aria-hidden="true"><button disabled>Approve…</button></div>`;
  // A panel with unsaved text stays open, whatever the bar shows meanwhile.
  return html`${
    approval?.has_unapproved &&
    html`<section class="round" aria-label="Unapproved work">
      <b>Round ${number}</b><p class="grow">${words(approval, files, last)}</p>
      <div class="doing">
        <button title="See every change since the last approval" onClick=${() => review(approval.approved)}>Review</button>
        <button title="Turn the unapproved work into one git commit (g)" onClick=${() => accept(null)}>Commit to git…</button>
        <button title="Discard the unapproved work, after a preview" onClick=${reset}>Reset…</button>
        <button class="main" title="Make the current files the approved state (a)" onClick=${() => setPanel("approve")}>Approve…</button>
      </div>
    </section>`
  }
    ${
      panel === "approve" &&
      html`<${ApprovePanel} session=${session} number=${number} close=${() => setPanel(null)} done=${changed}
      commit=${(/** @type {string} */ approved) => accept(`${approval?.approved ?? ""}..${approved}`)} />`
    }`;
}

/** @param {string} session */
async function roundOf(session) {
  const [approval, rounds] = await Promise.all([api.approval(session), api.rounds(session)]);
  const files = approval.has_unapproved ? await api.changedSince(session, approval.approved ?? "initial") : "";
  return { approval, rounds, files };
}

/** @param {any} approval @param {string} counted @param {any} last */
function words(approval, counted, last) {
  const files = `${counted || "0 files"} changed`;
  if (!approval.last_approved_at) return `${files} since the session started`;
  const name = last?.message ? ` “${visible(last.message)}”` : "";
  return html`${files} since you approved${name} <${Ago} at=${approval.last_approved_at} />`;
}

/** @param {{session: string, close: () => void, done: () => void, commit: (approved: string) => void, number: string}} props */
function ApprovePanel({ session, close, done, commit, number }) {
  const [isWorking, setWorking] = useState(false);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const message = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("message") ?? "").trim();
    setWorking(true);
    try {
      const saved = await api.approve(session, message || null);
      close();
      done();
      say({
        text: `Round ${number} approved.`,
        action: { label: "Commit to git…", run: () => commit(saved.approved_commit) },
      });
    } catch (error) {
      setWorking(false);
      sayProblem(error, "Not approved");
    }
  };
  const foot = html`<p>A reset returns to this state.</p><button onClick=${close}>Cancel</button>
    <button class="main" form="approve" disabled=${isWorking}>Approve round ${number}</button>`;
  return html`<${Dialog} narrow=${true} close=${close} title=${`Approve round ${number}`}
    under="The current files become the approved state." foot=${foot}>
    <form id="approve" onSubmit=${submit}><section><label class="field"><span>Message <span class="faint">optional</span></span>
      <input type="text" name="message" placeholder="login works" maxlength="1000" autofocus /></label></section></form>
  <//>`;
}
