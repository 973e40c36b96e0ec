// A modal panel: the browser keeps the focus inside, Escape closes it, and the focus returns. The focus starts at the
// input field, or else at the title.

import { html, useEffect, useRef } from "./html.js";

/** @param {{title: unknown, under?: unknown, close: () => void, foot: unknown, narrow?: boolean, children?: unknown}} props */
export function Dialog({ title, under, close, foot, narrow, children }) {
  const panel = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.showModal();
    const first = panel.current?.querySelector("[autofocus]") ?? panel.current?.querySelector("h2");
    if (first instanceof HTMLElement) first.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`<dialog ref=${panel} class=${narrow ? "narrow" : ""} aria-labelledby="dialog-title"
      onCancel=${(/** @type {Event} */ event) => (event.preventDefault(), close())}
      onClick=${(/** @type {Event} */ event) => event.target === panel.current && close()}>
    <header><h2 id="dialog-title" tabindex="-1">${title}</h2>${under && html`<p>${under}</p>`}</header>
    <div class="scroll">${children}</div>
    <footer>${foot}</footer>
  </dialog>`;
}
