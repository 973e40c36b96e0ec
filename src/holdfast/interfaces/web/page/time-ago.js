// Relative times, with the exact one in the tooltip. They stay right while the page is open.

import { exactTime, longAgo, shortAgo } from "./format.js";
import { html, signal } from "./html.js";

const EVERY_MS = 20_000;

/** The time, in steps; a hidden page does not need it. @type {import("./html.js").Signal<number>} */
export const now_ms = signal(Date.now());
const look = () => document.visibilityState === "visible" && (now_ms.value = Date.now());
setInterval(look, EVERY_MS);
document.addEventListener("visibilitychange", look);

/** @param {{at: string, short?: boolean, class?: string}} props */
export function Ago({ at, short = false, class: name }) {
  // An event may be newer than the last step.
  const now = Math.max(now_ms.value, Date.parse(at));
  return html`<time class=${name ?? null} datetime=${at} title=${exactTime(at)}>${short ? shortAgo(at, now) : longAgo(at, now)}</time>`;
}
