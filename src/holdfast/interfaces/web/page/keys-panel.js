// All keys that do something now.

import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { boundKeys } from "./keys.js";

/** @param {{close: () => void}} props */
export function KeysPanel({ close }) {
  const foot = html`<p>Shift-click two moments on the timeline to compare them.</p>
    <button class="main" onClick=${close}>Close</button>`;
  return html`<${Dialog} close=${close} title="Keys" foot=${foot}>
    <div class="keys-list">${boundKeys().map(
      (binding) => html`<div><kbd>${binding.key.replace("mod+k", "Ctrl K")}</kbd>
      <span>${binding.does}</span></div>`,
    )}</div>
  <//>`;
}
