// Notes on a moment, added and edited in place.

import { api } from "./api.js";
import { visible } from "./format.js";
import { html, useState } from "./html.js";
import { Ago } from "./time-ago.js";
import { sayProblem } from "./toast.js";

/** @typedef {{number: number, revision: number, text: string, author: string | null, at: string}} Note */

/** @param {{session: string, moment: {id: string, annotations: Note[]}, changed: () => void}} props */
export function Annotations({ session, moment, changed }) {
  const [edited, setEdited] = useState(/** @type {number | null} */ (null));
  const keep = async (/** @type {string} */ text) => {
    try {
      if (edited === 0) await api.annotate(session, moment.id, text);
      else if (edited !== null) await api.editNote(session, moment.id, edited, text);
      setEdited(null);
      changed();
    } catch (error) {
      sayProblem(error, "The note was not saved");
    }
  };
  const stop = () => setEdited(null);
  return html`<div class="annotations">
    ${moment.annotations.map(
      (note) => html`<div class="note annotation" key=${note.number}>
      <header><b>Note</b><span class="grow">${note.author ? visible(note.author) : "you"}, <${Ago} at=${note.at} /></span>
        ${edited !== note.number && html`<button class="link" onClick=${() => setEdited(note.number)}>Edit</button>`}</header>
      ${
        edited === note.number
          ? html`<${NoteForm} text=${note.text} keep=${keep} stop=${stop} />`
          : html`<p>
        ${visible(note.text)}</p>`
      }
    </div>`,
    )}
    ${
      edited === 0
        ? html`<${NoteForm} text="" keep=${keep} stop=${stop} />`
        : html`<button class="plain"
      onClick=${() => setEdited(0)}>Add a note</button>`
    }
  </div>`;
}

/** @param {{text: string, keep: (text: string) => void, stop: () => void}} props */
function NoteForm({ text, keep, stop }) {
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const words = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("text") ?? "").trim();
    if (words) keep(words);
  };
  return html`<form class="write-note" onSubmit=${submit}>
    <textarea name="text" rows="3" aria-label="Note" placeholder="What should you know when you come back here?" maxlength="10000"
      ref=${(/** @type {HTMLTextAreaElement | null} */ box) => box && !box.dataset.focused && ((box.dataset.focused = "yes"), box.focus())}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && stop()}>${text}</textarea>
    <div class="buttons"><button type="button" onClick=${stop}>Cancel</button><button class="main">Save note</button></div>
  </form>`;
}
