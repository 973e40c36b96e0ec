// Short messages at the bottom, with an undo button.

import { html, signal } from "./html.js";
import { cross } from "./icons.js";

/**
 * @typedef {object} Toast
 * @property {string} text
 * @property {string} [hint]
 * @property {boolean} [wrong]
 * @property {{label: string, run: () => void}} [action]
 */

const LASTS_MS = 12_000;

/** @type {import("./html.js").Signal<(Toast & {key: number})[]>} */
const shown = signal([]);
let last = 0;

/** @param {Toast} toast */
export function say(toast) {
  const key = ++last;
  // The action of an older toast may be outdated.
  const others = toast.action ? shown.value.filter((one) => !one.action) : shown.value;
  shown.value = [...others.slice(-2), { ...toast, key }];
  if (!toast.wrong) setTimeout(() => close(key), LASTS_MS);
}

/** @param {unknown} error @param {string} [doing] */
export function sayProblem(error, doing) {
  const { message, hint } = /** @type {{message?: string, hint?: string}} */ (error ?? {});
  say({ wrong: true, text: [doing, message].filter(Boolean).join(": ") || "Something went wrong.", hint });
}

/** @param {number} key */
function close(key) {
  shown.value = shown.value.filter((toast) => toast.key !== key);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.value.map(
      (toast) => html`<div key=${toast.key} class=${toast.wrong ? "toast wrong" : "toast"}>
      <p>${toast.text}${toast.hint && html` <span class="hint">${toast.hint}</span>`}</p>
      ${toast.action && html`<button onClick=${() => (close(toast.key), toast.action?.run())}>${toast.action.label}</button>`}
      <button class="close" aria-label="Close" onClick=${() => close(toast.key)}>${cross}</button>
    </div>`,
    )}
  </div>`;
}
