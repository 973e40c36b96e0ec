// The page: top bar, the view for the address, dialogs and toasts.

import { api, reachable } from "./api.js";
import { connect, connection, unavailable } from "./events.js";
import { computed, effect, html, render, signal, untracked, useEffect, useState } from "./html.js";
import { anchor, gear, magnifier, pulse, sun } from "./icons.js";
import { KeysPanel } from "./keys-panel.js";
import { startKeys, useKeys } from "./keys.js";
import { useLiveVersion } from "./live-version.js";
import { useLoaded } from "./load.js";
import { address, navigate, route, startRouter } from "./router.js";
import { Empty, Loading, Refused } from "./states.js";
import { toggleTheme } from "./theme.js";
import { Toasts } from "./toast.js";
import { UndoPanel } from "./undo.js";
import { agentName, isWorking, statusWords } from "./words.js";
import { visible } from "./format.js";

/** Views other than the session load when they are first opened. @type {Record<string, () => Promise<any>>} */
const VIEWS = {
  home: () => import("./home.js").then((module) => module.HomeView),
  session: () => import("./session.js").then((module) => module.SessionView),
  replay: () => import("./replay.js").then((module) => module.ReplayView),
  search: () => import("./search.js").then((module) => module.SearchView),
  settings: () => import("./settings.js").then((module) => module.SettingsView),
  health: () => import("./health.js").then((module) => module.HealthView),
};
const REFRESH_MS = 300;
/** @type {Map<string, any>} */
const loadedViews = new Map();

/** @param {{name: string}} props */
function View({ name }) {
  const [round, setRound] = useState(0);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const again = () => setRound((now) => now + 1);
  const loaded = loadedViews.get(name);
  useEffect(() => {
    setError(null);
    if (loaded || !VIEWS[name]) return;
    VIEWS[name]().then((view) => (loadedViews.set(name, view), again()), setError);
  }, [name, round]);
  const { session, workspace } = route.value;
  if (!VIEWS[name])
    return html`<main class="page"><${Empty} title="Page not found">
      <a class="button" href="/">Go to the start page</a><//></main>`;
  if (error)
    return html`<main class="page"><${Refused} doing="This view could not be loaded" error=${error} again=${again} /></main>`;
  if (!loaded) return html`<main class="page"><${Loading} label="Loading" /></main>`;
  return html`<${loaded} key=${`${name} ${workspace} ${session}`} session=${session} />`;
}

function TopBar() {
  const { session, view, workspace, query } = route.value;
  const version = useLiveVersion(REFRESH_MS, (event) => event.type === "status" || event.type === "caught-up");
  const sessions = useLoaded(() => (session ? api.sessions() : null), [workspace, session, version], { keep: true });
  const found = sessions.value?.find((/** @type {any} */ one) => one.id === session);
  const here = found ? visible(found.title ?? found.id) : session ? visible(session) : null;
  return html`<header class="top">
    <a class="brand" href=${address()} aria-label="Holdfast, all sessions">${anchor}<span>Holdfast</span></a>
    ${view !== "home" && view !== "unknown" && query.get("in") !== "all" && html`<${Place} workspace=${workspace} isLast=${!here} />`}
    ${here && html`<h1 class="crumb" title=${here}>${view === "replay" ? `Replay of ${here}` : here}</h1>`}
    ${session && html`<${Liveness} session=${found} />`}
    <span class="grow"></span>
    ${
      view !== "home" &&
      view !== "search" &&
      html`<button class="find" onClick=${openSearch} aria-keyshortcuts="Control+K">${magnifier}<span
      class="grow">Search reasons, messages, files, commands</span><kbd aria-hidden="true">Ctrl K</kbd></button>`
    }
    <nav aria-label="Views">
      <${NavLink} view="settings" label="Settings" icon=${gear} />
      <${NavLink} view="health" label="Health" icon=${pulse} />
      <button class="plain icon-button" aria-label="Show all keys" title="Keys (?)" onClick=${openKeys}>?</button>
      <button class="plain icon-button" aria-label="Switch light or dark theme" title="Switch light or dark theme (t)" onClick=${toggleTheme}>${sun}</button>
    </nav>
  </header>`;
}

/** On the start page, the search covers every project. */
const openSearch = () => navigate(address("search") + (route.value.view === "home" ? "?in=all" : ""));

/** The workspace that the view shows. @param {{workspace: string | null, isLast: boolean}} props */
function Place({ workspace, isLast }) {
  const loaded = useLoaded(() => api.workspaces(), [workspace], { keep: true });
  const found = loaded.value?.workspaces.find((/** @type {any} */ one) =>
    workspace === null ? one.is_own : one.id === workspace,
  );
  if (!found) return null;
  const path = visible(found.path);
  return html`<a class="place" href=${address()} title=${path}>${path.split("/").at(-1)}</a>${
    !isLast && html`<span class="slash faint" aria-hidden="true">/</span>`
  }`;
}

/** @param {{view: string, label: string, icon: unknown}} props */
function NavLink({ view, label, icon }) {
  return html`<a class="button plain" href=${address(view)} aria-label=${label} title=${label}
    aria-current=${route.value.view === view ? "page" : null}>${icon}<span class="words">${label}</span></a>`;
}

/** @param {{session: any}} props */
function Liveness({ session }) {
  if (connection.value === "lost") return null;
  if (!session) return html`<span class="live idle"></span>`;
  const isActive = isWorking(session);
  const words = isActive
    ? `${agentName(session.agent)} is working`
    : `${agentName(session.agent)} · ${statusWords(session)}`;
  return html`<span class=${isActive ? "live" : "live idle"} title=${words}><i></i><span>${words}</span></span>`;
}

function Banner() {
  if (connection.value !== "lost" && reachable.value) {
    return (
      unavailable.value !== null &&
      html`<div class="banner" role="alert"><span class="live lost"><i></i></span><b>The store cannot be read.</b>
      <span class="grow">${visible(unavailable.value)}. This page may be out of date, and catches up when the store is back.${" "}
      <a href=${address("health")}>See Health</a></span></div>`
    );
  }
  return html`<div class="banner" role="alert"><span class="live lost"><i></i></span><b>Not connected.</b>
    <span class="grow">This page may be out of date. It catches up when the server is back. To start the server, run <code>holdfast ui</code>.</span></div>`;
}

const showsKeys = signal(false);
const openKeys = () => (showsKeys.value = true);

function App() {
  useKeys("Everywhere", [
    { key: "?", does: "Show all keys", run: () => (showsKeys.value = !showsKeys.value) },
    { key: "/", does: "Search", run: openSearch },
    { key: "mod+k", does: "Search", run: openSearch },
    { key: "h", does: "All sessions", run: () => navigate(address()) },
    { key: "t", does: "Switch light or dark theme", run: toggleTheme },
  ]);
  return html`<div class="frame">
    <${TopBar} /><${Banner} /><${View} name=${route.value.view} />
    ${showsKeys.value && html`<${KeysPanel} close=${() => (showsKeys.value = false)} />`}
    <${UndoPanel} /><${Toasts} />
  </div>`;
}

startRouter();
startKeys();
const shownWorkspace = computed(() => route.value.workspace);
effect(() => {
  shownWorkspace.value; // each workspace has its own stream
  untracked(connect);
});
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(html`<${App} />`, root);
}
