// A path whose directory is shortened before its name; always text, never markup.

import { pathParts, visible } from "./format.js";
import { html } from "./html.js";

/** @param {{path: string}} props */
export function PathName({ path }) {
  const [directory, name] = pathParts(path);
  return html`<span class="path" title=${visible(path)}><span class="directory">${visible(directory)}</span>
    <span class="name">${visible(name)}</span></span>`;
}
