// The live stream: one EventSource for the page, which says what to reload.
//
// Guarantee: after a lost connection every listener is called with the type "caught-up", so a view
// that reloads on each call misses nothing.

import { api, apiAddress } from "./api.js";
import { signal } from "./html.js";

/**
 * `session` is where it happened; null for the whole workspace, or if unknown.
 * @typedef {{type: string, session: string | null}} LiveEvent
 */

const TYPES = ["user", "file_edit", "checkpoint", "restore", "approval", "status"];
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
const LOOK_AGAIN_MS = 3000;

/** @type {import("./html.js").Signal<"connecting" | "live" | "lost">} */
export const connection = signal("connecting");

/** Why the store of the shown workspace cannot be read now. @type {import("./html.js").Signal<string | null>} */
export const unavailable = signal(null);

/** @type {Set<(event: LiveEvent) => void>} */
const listeners = new Set();
/** @type {EventSource | null} */
let source = null;
let wait_ms = FIRST_WAIT_MS;
let wasLost = false;

/** @param {(event: LiveEvent) => void} listener @returns {() => void} stops it */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** @param {LiveEvent} event */
function tell(event) {
  for (const listener of [...listeners]) listener(event);
}

/** Follows the workspace that is shown, and stops following the previous one. */
export function connect() {
  source?.close();
  unavailable.value = null;
  const opened = new EventSource(apiAddress("/events"));
  source = opened;
  opened.onopen = () => {
    connection.value = "live";
    wait_ms = FIRST_WAIT_MS;
    if (wasLost) tell({ type: "caught-up", session: null });
    wasLost = false;
  };
  opened.onerror = () => {
    // An answer that is not a stream, as in a workspace without checkpoints, is not a lost connection.
    if (opened.readyState !== EventSource.CLOSED) connection.value = "lost";
    wasLost = true;
    if (opened.readyState !== EventSource.CLOSED || source !== opened) return; // it reconnects automatically
    setTimeout(() => source === opened && connect(), wait_ms);
    wait_ms = Math.min(wait_ms * 2, LONGEST_WAIT_MS);
  };
  for (const type of TYPES) {
    opened.addEventListener(type, (event) => {
      const said = parsed(/** @type {MessageEvent} */ (event).data);
      if (said.what === "progress") return; // callers poll long operations themselves
      if (said.what === "unavailable") waitForStore(opened, detailOf(said.about));
      const session = said.session_id ?? said.dialog_id;
      tell({ type, session: typeof session === "string" ? session : null });
    });
  }
}

/** The stream does not say when the store is back. @param {EventSource} opened @param {string} why */
function waitForStore(opened, why) {
  const isKnown = unavailable.value !== null;
  unavailable.value = why;
  if (isKnown) return;
  const look = () =>
    setTimeout(async () => {
      if (source !== opened) return;
      try {
        await api.overview();
        unavailable.value = null;
        tell({ type: "caught-up", session: null });
      } catch {
        look();
      }
    }, LOOK_AGAIN_MS);
  look();
}

/** @param {unknown} about */
function detailOf(about) {
  const detail = /** @type {{detail?: unknown} | undefined} */ (about)?.detail;
  return typeof detail === "string" ? detail : "";
}

/** @param {string} text @returns {Record<string, unknown>} */
function parsed(text) {
  try {
    const found = JSON.parse(text);
    return found !== null && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}
