// Home: every workspace on this machine and its sessions, most recently active first.

import { api } from "./api.js";
import { plural, size, visible } from "./format.js";
import { html, useEffect, useState } from "./html.js";
import { useLiveVersion } from "./live-version.js";
import { useLoaded } from "./load.js";
import { address, navigate } from "./router.js";
import { FirstSteps, Loading, Refused, isNothingSaved } from "./states.js";
import { Ago, now_ms } from "./time-ago.js";
import { agentName, isWorking, statusWords } from "./words.js";

const FIRST_SESSIONS = 12;
const REFRESH_MS = 500;

export function HomeView() {
  const version = useLiveVersion(REFRESH_MS);
  const minute = Math.floor(now_ms.value / 60_000); // only the shown workspace has live events
  const loaded = useLoaded(
    async () => {
      const { workspaces } = await api.workspaces();
      if (workspaces.length === 0) await requireNothingSaved();
      const ownFirst = workspaces.toSorted(
        (/** @type {any} */ one, /** @type {any} */ other) => other.is_own - one.is_own,
      );
      return Promise.all(ownFirst.map(async (/** @type {any} */ one) => ({ ...one, loaded: await sessionsOf(one) })));
    },
    [version, minute],
    { keep: true },
  );
  useEffect(() => void (document.title = "Holdfast"), []);
  const find = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const query = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("q") ?? "").trim();
    navigate(`${address("search")}?${new URLSearchParams({ q: query, in: "all" })}`);
  };
  const found = loaded.value;
  const isEmpty = found && found.every((/** @type {any} */ one) => one.loaded.sessions.length === 0);
  return html`<main class="page"><div class="column home">
    <h1>What did the agent do, and how do I get back?</h1>
    <form role="search" onSubmit=${find}><input type="search" name="q" aria-label="Search everything"
      placeholder="Search reasons, messages, files, commands" /></form>
    ${
      loaded.error && !found
        ? html`<${Refused} doing="Your workspaces could not be loaded" error=${loaded.error} again=${loaded.again} />`
        : !found
          ? html`<${Loading} label="Loading your workspaces" />`
          : isEmpty
            ? html`<${FirstSteps} />`
            : found.map((/** @type {any} */ one) => html`<${WorkspaceCard} key=${one.id} workspace=${one} />`)
    }
  </div></main>`;
}

/** A project that was moved or lost is not listed. It must not look like a new one. */
async function requireNothingSaved() {
  let own;
  try {
    own = await api.overview();
  } catch (error) {
    if (isNothingSaved(error)) return;
    throw error;
  }
  throw Object.assign(new Error(`${visible(own.path)} is not there any more.`), {
    hint: "If you moved the project, open the page from its new place: holdfast ui",
  });
}

/** A workspace that cannot be read must not hide the others. @param {any} workspace */
async function sessionsOf(workspace) {
  const id = workspace.is_own ? null : workspace.id;
  try {
    const [sessions, overview] = await Promise.all([api.sessionsOf(id), api.overviewOf(id)]);
    return { sessions, overview, error: null };
  } catch (error) {
    return { sessions: [], overview: null, error };
  }
}

/** @param {{workspace: any}} props */
function WorkspaceCard({ workspace }) {
  const [showsAll, setShowsAll] = useState(workspace.is_own);
  const { sessions, overview, error } = workspace.loaded;
  const base = workspace.is_own ? "" : `/w/${encodeURIComponent(workspace.id)}`;
  const shown = showsAll ? sessions : sessions.slice(0, FIRST_SESSIONS);
  const parts = String(workspace.path).split("/");
  return html`<section class="workspace">
    <header><h2>${visible(parts.at(-1) ?? "")}</h2>${workspace.is_own && html`<span class="tag here">this project</span>`}<span class="path-line" title=${visible(workspace.path)}>
      ${visible(workspace.path)}</span>
      ${
        overview?.budget_bytes
          ? html`<span class="budget num" title="Size of the store against its budget">
        <span class="meter" aria-hidden="true">
        <i class="sure"
          style=${{ width: `${Math.min(100, (100 * overview.store_bytes) / overview.budget_bytes)}%` }}></i></span>
          ${size(overview.store_bytes)} of ${size(overview.budget_bytes)}</span>`
          : null
      }</header>
    ${
      error
        ? html`<p class="note caution"><b>Cannot be read right now.</b> ${/** @type {Error} */ (error).message}</p>`
        : sessions.length === 0
          ? html`<p class="soft">Nothing saved yet.</p>`
          : html`<ul class="sessions">
            ${shown.map((/** @type {any} */ one) => html`<${SessionLine} key=${one.id} one=${one} base=${base} workspace=${workspace.is_own ? null : workspace.id} />`)}</ul>`
    }
    ${
      shown.length < sessions.length &&
      html`<button class="plain"
      onClick=${() => setShowsAll(true)}>Show ${plural(sessions.length - shown.length, "more session")}</button>`
    }
  </section>`;
}

/** @param {{one: any, base: string, workspace: string | null}} props */
function SessionLine({ one, base, workspace }) {
  const isActive = isWorking(one);
  const status = isActive ? "working now" : statusWords(one);
  return html`<li><a class="session-line" href=${`${base}/s/${encodeURIComponent(one.id)}`}>
    <span class=${isActive ? "live" : "live idle"} title=${status}><i></i></span>
    <span class="what"><b>${visible(one.title ?? one.id)}</b><small>
      ${agentName(one.agent)} · ${status}${one.is_current ? " · current session" : ""}</small></span>
    <span class="num soft">${plural(one.checkpoints, "checkpoint")}</span>
    <span><${Approval} one=${one} workspace=${workspace} /></span>
    <${Ago} class="num faint" at=${one.last_activity} />
  </a></li>`;
}

/** @param {{one: any, workspace: string | null}} props */
function Approval({ one, workspace }) {
  const files = useLoaded(
    () => (one.unapproved > 0 ? api.unapprovedFiles(workspace, one) : null),
    [one.id, one.unapproved, one.last_activity],
    { keep: true },
  );
  if (one.unapproved > 0) {
    if (files.value === null && !files.error) return null;
    const words = files.value === null ? plural(one.unapproved, "checkpoint") : files.value || "0 files";
    return html`<span class="tag">${words} to approve</span>`;
  }
  return one.last_approved_at && html`<span class="tag approved">✓ approved</span>`;
}
