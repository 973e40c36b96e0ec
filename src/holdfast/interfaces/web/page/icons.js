// The page's icons; each has text beside it or a label on its button.

import { html } from "./html.js";

/** @param {string} path */
const drawn = (path) =>
  html`<svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.6"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${path} /></svg>`;

export const anchor = drawn(
  "M8 5V14M5 7.4h6M2.2 9.4C2.6 12 5 14 8 14s5.4-2 5.8-4.6M8 1.4a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6",
);
export const magnifier = drawn("M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.4 10.4L14 14");
export const gear = drawn("M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6M10 3v3M6 10v3");
export const pulse = drawn("M1.5 8.5h3l2-5 3 9 2-4h3");
export const sun = drawn(
  "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1.4v1.2M8 13.4v1.2M1.4 8h1.2M13.4 8h1.2M3.3 3.3l.9.9M11.8 11.8l.9.9M3.3 12.7l.9-.9M11.8 4.2l.9-.9",
);
export const left = drawn("M9.5 3L4.5 8l5 5");
export const cross = drawn("M4 4l8 8M12 4l-8 8");
export const play = drawn("M5 3l8 5-8 5z");
export const pause = drawn("M5.5 3v10M10.5 3v10");
export const stepBack = drawn("M11 3L6 8l5 5M4 3v10");
export const stepForward = drawn("M5 3l5 5-5 5M12 3v10");
export const copy = drawn("M6 5.5h7v8H6zM3.5 10.5v-8h7");
export const oneColumn = drawn("M2.5 4h11M2.5 8h11M2.5 12h11");
export const twoColumns = drawn("M2 3.5h5v9H2zM9 3.5h5v9H9z");
