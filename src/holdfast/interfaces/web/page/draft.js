// Text that the user has begun to type. Answers that arrive meanwhile do not replace it.

import { useState } from "./html.js";

/**
 * @typedef {object} Draft
 * @property {string} text the content of the field: the draft, or else the saved text
 * @property {(event: Event) => void} write for `onInput`
 * @property {(sent: string) => void} kept the text was saved; anything typed since stays
 */

/** @param {string} kept @returns {Draft} */
export function useDraft(kept) {
  const [written, setWritten] = useState(/** @type {string | null} */ (null));
  return {
    text: written ?? kept,
    write: (event) => setWritten(/** @type {HTMLInputElement | HTMLTextAreaElement} */ (event.target).value),
    kept: (sent) => setWritten((now) => (now === sent ? null : now)),
  };
}
