// All active keyboard shortcuts, by group.

import { Dialog } from "./dialog.js";
import { html } from "./html.js";
import { boundKeys } from "./keys.js";

/** @type {Record<string, string>} */
const NAMES = { "mod+k": "Ctrl K", ArrowRight: "→", ArrowLeft: "←", Escape: "Esc", " ": "Space" };

/** @param {{close: () => void}} props */
export function KeysPanel({ close }) {
  const bound = boundKeys();
  const groups = [...new Set(bound.map((one) => one.group ?? ""))].reverse(); // the view's own group first
  const foot = html`<p>Shift-click two moments on the timeline to compare them.</p>
    <button class="main" onClick=${close}>Close</button>`;
  return html`<${Dialog} close=${close} title="Keys" foot=${foot}>
    <div class="keys-list">${groups.map((group) => {
      /** @type {Map<string, string[]>} */
      const deeds = new Map();
      for (const one of bound.filter((one) => one.group === group))
        deeds.set(one.does, [...(deeds.get(one.does) ?? []), NAMES[one.key] ?? one.key]);
      return html`<section aria-label=${group}><h3>${group}</h3>
        ${[...deeds].map(
          ([does, keys]) =>
            html`<div><span class="grow">${does}</span>${keys.map((key) => html`<kbd>${key}</kbd>`)}</div>`,
        )}</section>`;
    })}</div>
  <//>`;
}
