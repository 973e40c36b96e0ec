// A path whose directory is shortened before its name; always text, never markup.

import { pathParts, visiblePath } from "./format.js";
import { html } from "./html.js";

/** @param {{path: string}} props */
export function PathName({ path }) {
  const [directory, name] = pathParts(path);
  return html`<span class="path" title=${visiblePath(path)}><span class="directory">${visiblePath(directory)}</span>
    <span class="name">${visiblePath(name)}</span></span>`;
}
