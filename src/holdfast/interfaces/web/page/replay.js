// Replay: step through a session and view the old files. Nothing is changed.

import { api } from "./api.js";
import { clock, plural, size, visible, visiblePath } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { left, pause, play, stepBack, stepForward } from "./icons.js";
import { wholeFile } from "./diff-file.js";
import { coloured } from "./diff-lines.js";
import { useKeys } from "./keys.js";
import { useLoaded } from "./load.js";
import { Calls } from "./moment.js";
import { address, momentAddress, navigate, route } from "./router.js";
import { Empty, Loading, Refused } from "./states.js";
import { Ago } from "./time-ago.js";
import { SessionTimeline } from "./timeline-data.js";
import { hasConfidence, sureness } from "./timeline-rows.js";
import { agentName, changeWords, titleOf, titleText } from "./words.js";

const STEP_MS = 1500;
const SPEEDS = [0.5, 1, 2, 4];
const MOST_LINES = 2000;

/** @param {{session: string}} props */
export function ReplayView({ session }) {
  const steps = useLoaded(() => allSteps(session), [session]);
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const asked = route.value.moment;
  const list = steps.value ?? [];
  const found = list.findIndex((/** @type {any} */ step) => step.id === asked);
  const place = found < 0 ? list.length - 1 : found;
  const step = list[place];
  const goTo = (/** @type {number} */ next) => {
    const target = list[Math.min(list.length - 1, Math.max(0, next))];
    if (target) navigate(address("s", session, "replay", target.id), { replace: true });
  };
  const playOrPause = () => {
    if (!isPlaying && place === list.length - 1) goTo(0); // at the end, start again
    setPlaying(!isPlaying);
  };
  useEffect(() => void (document.title = "Replay · Holdfast"), []);
  useEffect(() => {
    if (!isPlaying) return;
    if (place >= list.length - 1) {
      setPlaying(false);
      return;
    }
    const soon = setTimeout(() => goTo(place + 1), STEP_MS / speed);
    return () => clearTimeout(soon);
  }, [isPlaying, place, speed, list.length]);
  useKeys(
    "Replay",
    [
      { key: "ArrowRight", does: "Next step", run: () => goTo(place + 1) },
      { key: "ArrowLeft", does: "Previous step", run: () => goTo(place - 1) },
      { key: "j", does: "Previous step", run: () => goTo(place - 1) },
      { key: "k", does: "Next step", run: () => goTo(place + 1) },
      { key: " ", does: "Play or pause", run: playOrPause },
      { key: "Escape", does: "Leave the replay", run: () => navigate(momentAddress(session, step?.id ?? null)) },
    ],
    [place, list.length, isPlaying],
  );

  if (steps.error)
    return html`<main class="page">
      <${Refused} doing="The replay could not be loaded" error=${steps.error} again=${steps.again} /></main>`;
  if (!steps.value) return html`<main class="page"><${Loading} label="Loading the steps" /></main>`;
  if (!step)
    return html`<main class="page"><${Empty} title="Nothing to replay"><p>This session has no steps yet.</p><//></main>`;
  return html`<main class="replay">
    <${StepPanel} session=${session} step=${step} />
    <${FilesThen} session=${session} step=${step} before=${list[place - 1]} />
    <div class="scrub" role="group" aria-label="Replay">
      <button class="icon-button" aria-label="Previous step" onClick=${() => goTo(place - 1)} disabled=${place === 0}>
        ${stepBack}</button>
      <button class="icon-button main" aria-label=${isPlaying ? "Pause" : "Play"} title=${isPlaying ? "Pause (Space)" : "Play (Space)"}
        onClick=${playOrPause}>${isPlaying ? pause : play}</button>
      <button class="icon-button" aria-label="Next step" onClick=${() => goTo(place + 1)}
        disabled=${place === list.length - 1}>${stepForward}</button>
      <div class="track"><${Ticks} list=${list} /><input type="range" min="0" max=${list.length - 1} value=${place}
        aria-label="Step" aria-valuetext=${`Step ${place + 1} of ${list.length}: ${titleText(step.reasoning)}`}
        onInput=${(/** @type {Event} */ event) => goTo(Number(/** @type {HTMLInputElement} */ (event.target).value))} /></div>
      <span class="num soft">Step ${place + 1} of ${list.length} · ${clock(step.created_at)}</span>
      <label><span class="unseen">Speed</span>
        <select value=${speed}
          onChange=${(/** @type {Event} */ event) => setSpeed(Number(/** @type {HTMLSelectElement} */ (event.target).value))}>
          ${SPEEDS.map((one) => html`<option value=${one}>${one}×</option>`)}</select></label>
    </div>
  </main>`;
}

/** Every moment of the session, oldest first. @param {string} session */
async function allSteps(session) {
  const timeline = new SessionTimeline(session);
  await timeline.refresh();
  if (timeline.error.value) throw timeline.error.value;
  while (timeline.data.value?.next) {
    await timeline.loadOlder(1000);
    if (timeline.error.value) throw timeline.error.value;
  }
  return (timeline.data.value?.events ?? [])
    .flatMap((event) => (event.checkpoint ? [{ ...event.checkpoint, created_at: event.at }] : []))
    .reverse();
}

/** @param {{list: any[]}} props */
function Ticks({ list }) {
  const shown = list.length > 400 ? [] : list;
  return html`<div class="ticks" aria-hidden="true">${shown.map((step, index) => {
    const kind = step.kind === "risky" ? "risky" : hasConfidence(step.kind) ? sureness(step.confidence) : "plain";
    return html`<i class=${kind} style=${{ left: `${(100 * index) / Math.max(1, list.length - 1)}%` }}></i>`;
  })}</div>`;
}

/** @param {{session: string, step: any}} props */
function StepPanel({ session, step }) {
  const loaded = useLoaded((stop) => api.moment(session, step.id, stop), [step.id], { keep: true });
  const memory = useLoaded(() => api.memory(session, step.id).catch(() => ({ files: [] })), [step.id], { keep: true });
  const agents = useLoaded(() => api.agents(session, step.id).catch(() => ({ agents: [] })), [step.id], { keep: true });
  const moment = loaded.value;
  return html`<section class="pane step" aria-label="This step"><div class="inside">
    <a class="button" href=${momentAddress(session, step.id)} title="Leave the replay at this moment (Esc)">${left} Leave the replay</a>
    <p class="tag quiet">Read-only · your files are not touched</p>
    <h2>${titleOf(step.reasoning)}</h2>
    <p class="soft"><${Ago} at=${step.created_at} /> · ${changeWords(step.changed)}</p>
    ${
      moment?.message &&
      html`<div class="note"><small class="faint">
      ${moment.message.role === "user" ? "You" : moment.message.role}</small><p class="words">
      ${visible(moment.message.content.slice(0, 600))}</p></div>`
    }
    ${moment && html`<${Calls} calls=${moment.tool_calls} reasoning=${moment.reasoning} />`}
    ${
      agents.value?.agents?.length > 0 &&
      html`<h3>Agents then</h3><ul>
      ${agents.value.agents.map(
        (
          /** @type {{agent: string, session_id: string, state: unknown}} */ one,
        ) => html`<li><details><summary>${visible(agentName(one.agent))}
        <span class="faint">${visible(one.session_id)}</span></summary><pre class="call">
        ${visible(JSON.stringify(one.state, null, 2))}</pre></details></li>`,
      )}</ul>`
    }
    ${
      memory.value?.files?.length > 0 &&
      html`<h3>Agent memory then</h3><ul>
      ${memory.value.files.map(
        (/** @type {any} */ file) => html`<li><details><summary><code>
      ${visiblePath(file.path)}</code></summary><pre class="call">
      ${visible(file.content ?? "a binary file")}</pre></details></li>`,
      )}</ul>`
    }
  </div></section>`;
}

/** @param {{session: string, step: any, before: any}} props */
function FilesThen({ session, step, before }) {
  const [path, setPath] = useState(/** @type {string | null} */ (null));
  const [open, setOpen] = useState(() => new Set(/** @type {string[]} */ ([])));
  // The step in which the user chose a file. Changes that load later must not select another one.
  const chosenIn = useRef(/** @type {string | null} */ (null));
  const changed = useLoaded(
    (stop) => api.diff(session, { older: before?.id ?? null, newer: step.id }, { colours: false }, stop),
    [step.id],
    { keep: true },
  );
  const touched = new Set((changed.value?.files ?? []).map((/** @type {any} */ file) => file.path));
  useEffect(() => {
    // Directories of changed files are opened, and stay open in later steps.
    setOpen((known) => new Set([...known, ...[...touched].flatMap(parentsOf)]));
    const file = (changed.value?.files ?? []).find((/** @type {any} */ one) => one.change !== "removed");
    if (file && chosenIn.current !== step.id) setPath(file.path);
  }, [changed.value]);
  const choose = (/** @type {string} */ file) => {
    chosenIn.current = step.id;
    setPath(file);
  };
  const toggle = (/** @type {string} */ directory) => {
    const next = new Set(open);
    if (!next.delete(directory)) next.add(directory);
    setOpen(next);
  };
  const top = useLoaded(() => (path === null ? api.directory(session, step.id, "") : null), [path === null]);
  useEffect(() => {
    const files = (top.value ?? []).filter((/** @type {any} */ entry) => entry.type === "file");
    const first = files.find((/** @type {any} */ entry) => /^readme/i.test(entry.path)) ?? files[0];
    if (path === null && first) setPath(first.path);
  }, [top.value]);
  return html`<section class="pane tree" aria-label="Files then"><ul class="directory">
    ${html`<${Directory} session=${session} moment=${step.id} path="" touched=${touched} chosen=${path}
      choose=${choose} open=${open} toggle=${toggle} />`}</ul></section>
    <section class="pane content" aria-label="File then">
      ${
        path
          ? html`<${FileThen} session=${session} moment=${step.id} path=${path} />`
          : html`<${Empty}
        title="No file selected"><p>Select a file from the list.</p><//>`
      }</section>`;
}

/** The directories around a file, outermost first. @param {string} path */
function parentsOf(path) {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** @param {{session: string, moment: string, path: string, touched: Set<string>, chosen: string | null, choose: (path: string) => void, open: Set<string>, toggle: (path: string) => void}} props */
function Directory({ session, moment, path, touched, chosen, choose, open, toggle }) {
  const loaded = useLoaded(() => api.directory(session, moment, path), [moment, path], { keep: true });
  return html`${(loaded.value ?? []).map((/** @type {any} */ entry) => {
    const name = entry.path.slice(path ? path.length + 1 : 0);
    if (entry.type === "directory") {
      return html`<li key=${entry.path}>
        <button class="plain" aria-expanded=${open.has(entry.path)} onClick=${() => toggle(entry.path)}>
        ${open.has(entry.path) ? "▾" : "▸"} ${visiblePath(name)}</button>
        ${
          open.has(entry.path) &&
          html`<ul class="directory">
          <${Directory} session=${session} moment=${moment} path=${entry.path} touched=${touched} chosen=${chosen}
            choose=${choose} open=${open} toggle=${toggle} /></ul>`
        }</li>`;
    }
    return html`<li key=${entry.path}>
      <button class=${`plain${chosen === entry.path ? " chosen" : ""}`}
        aria-current=${chosen === entry.path ? "true" : null} onClick=${() => choose(entry.path)}>
        ${visiblePath(name)}${
          touched.has(entry.path) &&
          html`<span class="touched" title="Changed in this step">●<span
        class="unseen"> changed in this step</span></span>`
        }</button></li>`;
  })}`;
}

/** @param {{session: string, moment: string, path: string}} props */
function FileThen({ session, moment, path }) {
  const loaded = useLoaded(() => wholeFile(session, moment, path), [moment, path], { keep: true });
  if (loaded.error)
    return html`<${Empty} title="This file did not exist at this moment"><p><code>${visiblePath(path)}</code></p><//>`;
  const file = loaded.value;
  if (!file) return html`<${Loading} label="Loading the file" />`;
  if (file.isBinary) return html`<${Empty} title="A binary file"><p>${size(file.size_bytes)}</p><//>`;
  return html`<header class="content-head"><code>${visiblePath(path)}</code><span class="faint num">
    ${file.next === null && `${plural(file.lines.length, "line")} · `}${size(file.size_bytes)}</span></header>
    <div class="lines" tabindex="0" role="group" aria-label=${visiblePath(path)}><div class="grid">
      ${file.lines.slice(0, MOST_LINES).map(
        (text, index) => html`<div class="line one"><i>${index + 1}</i><code>
      ${coloured(text, file.colours?.[index]).map((piece) =>
        piece.class
          ? html`<span class=${piece.class}>
      ${visible(piece.text)}</span>`
          : visible(piece.text),
      )}</code></div>`,
      )}</div></div>
    ${
      (file.next !== null || file.lines.length > MOST_LINES) &&
      html`<p
      class="remark soft">The rest is too long to show here.</p>`
    }`;
}
