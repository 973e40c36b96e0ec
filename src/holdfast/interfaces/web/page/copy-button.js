// Copies a text, and says so.

import { html } from "./html.js";
import { copy } from "./icons.js";
import { say, sayProblem } from "./toast.js";

/** @param {{text: string, label: string, words?: string}} props */
export function CopyButton({ text, label, words }) {
  const run = () =>
    navigator.clipboard.writeText(text).then(
      () => say({ text: "Copied" }),
      (error) => sayProblem(error, "Not copied"),
    );
  return html`<button class="plain small" title=${label} aria-label=${label} onClick=${run}>${words ?? copy}</button>`;
}
