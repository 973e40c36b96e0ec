// Placeholders for views: loading, empty, refused, unreachable.

import { html } from "./html.js";

/** @param {{label: string}} props */
export function Loading({ label }) {
  return html`<div class="loading" role="status" aria-label=${label}><i></i><i></i><i></i><i></i></div>`;
}

/** @param {{title: string, children?: unknown}} props */
export function Empty({ title, children }) {
  return html`<div class="state"><h2>${title}</h2>${children}</div>`;
}

/** @param {{error: unknown, doing: string, again?: () => void}} props */
export function Refused({ error, doing, again }) {
  const { message, hint, status } = /** @type {{message: string, hint?: string, status?: number}} */ (error);
  if (status === 401) {
    return html`<div class="state" role="alert"><h2>This link has expired</h2>
      <p>Open the page again from a terminal:</p><pre>holdfast ui</pre></div>`;
  }
  if (isNothingSaved(error)) return html`<${FirstSteps} />`;
  return html`<div class="state" role="alert"><h2>${doing}</h2><p>${message}</p>${hint && html`<p>${hint}</p>`}
    <div class="acts">${again && html`<button onClick=${again}>Try again</button>`}
      ${status === 404 && html`<a class="button" href="/">All sessions</a>`}</div></div>`;
}

/** Whether a workspace has no checkpoints yet. @param {unknown} error */
export function isNothingSaved(error) {
  const { message = "", status } = /** @type {{message?: string, status?: number}} */ (error);
  return status === 404 && message.endsWith(" has no checkpoints yet");
}

/** Commands that create the first checkpoints. */
export function FirstSteps() {
  return html`<${Empty} title="Nothing saved yet"><p>Each of these fills the timeline:</p>
    <pre>holdfast install claude-code                  # save before every edit of an agent
holdfast checkpoint "before the refactor"     # save now
holdfast daemon                               # save while you work</pre><//>`;
}
