// Routing: the address is the only state that survives a reload.
//
//   /                        home            /w/{workspace}/…   the same in another workspace
//   /s/{session}[/{moment}]  the session; on a phone the moment fills the screen
//   …/{moment}/changes       on a phone, its diff
//   /s/{session}/replay[/{moment}]   /search?q=[&in=all]   /settings   /health

import { signal } from "./html.js";

/**
 * @typedef {object} Route
 * @property {"home" | "session" | "replay" | "search" | "settings" | "health" | "unknown"} view
 * @property {string | null} workspace
 * @property {string | null} session
 * @property {string | null} moment
 * @property {boolean} changes
 * @property {URLSearchParams} query
 */

/** @param {Location | URL} place @returns {Route} */
export function parseRoute(place) {
  const parts = place.pathname.split("/").filter(Boolean).map(decoded);
  const workspace = parts[0] === "w" ? (parts[1] ?? null) : null;
  const rest = parts[0] === "w" ? parts.slice(2) : parts;
  const route = { workspace, session: null, moment: null, changes: false, query: new URLSearchParams(place.search) };
  if (rest.length === 0) return { ...route, view: "home" };
  if (rest[0] === "s" && rest[1]) {
    const replay = rest[2] === "replay";
    const [moment = null, pane] = replay ? rest.slice(3) : rest.slice(2);
    return { ...route, view: replay ? "replay" : "session", session: rest[1], moment, changes: pane === "changes" };
  }
  const view = rest[0];
  if (view === "search" || view === "settings" || view === "health") return { ...route, view };
  return { ...route, view: "unknown" };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal(parseRoute(location));

/** An address in the workspace that is shown. @param {...(string | null | undefined)} parts */
export function address(...parts) {
  return addressIn(route.value.workspace, ...parts);
}

/** @param {string | null} workspace null for the server's own @param {...(string | null | undefined)} parts */
export function addressIn(workspace, ...parts) {
  const all = (workspace ? ["w", workspace, ...parts] : parts).filter((part) => part != null);
  return "/" + all.map((part) => encodeURIComponent(String(part))).join("/");
}

/** @param {string} session @param {string | null} [moment] @param {{changes?: boolean, query?: Record<string, string | null>}} [more] */
export function momentAddress(session, moment = null, more = {}) {
  const kept = Object.entries(more.query ?? {}).filter(([, value]) => value != null);
  const query = new URLSearchParams(/** @type {[string, string][]} */ (kept)).toString();
  return address("s", session, moment, more.changes ? "changes" : null) + (query ? `?${query}` : "");
}

/** @param {string} target @param {{replace?: boolean}} [how] */
export function navigate(target, how = {}) {
  if (target === location.pathname + location.search) return;
  if (how.replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  route.value = parseRoute(location);
}

/** Follows plain clicks on the page's own links without reloading the page. */
export function startRouter() {
  addEventListener("popstate", () => (route.value = parseRoute(location)));
  document.addEventListener("click", (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target || link.origin !== location.origin || link.pathname.startsWith("/api/")) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
