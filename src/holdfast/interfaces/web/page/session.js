// The session: timeline, moment and changes side by side, or one at a time on a phone.

import { AcceptPanel } from "./accept-panel.js";
import { api } from "./api.js";
import { DiffView } from "./diff-view.js";
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { useLiveVersion } from "./live-version.js";
import { useLoaded } from "./load.js";
import { Moment } from "./moment.js";
import { RestorePanel } from "./restore-panel.js";
import { RoundBar } from "./round-bar.js";
import { address, momentAddress, navigate, route } from "./router.js";
import { SavePanel } from "./save-panel.js";
import { FirstSteps, Refused } from "./states.js";
import { PHONE, Timeline } from "./timeline.js";
import { SessionTimeline } from "./timeline-data.js";
import { changedFiles } from "./timeline-rows.js";
import { say } from "./toast.js";
import { openUndo } from "./undo.js";
import { titleText } from "./words.js";

const QUIET_MS = 60;
const ELSEWHERE_MS = 500;

/** @param {{session: string}} props */
export function SessionView({ session }) {
  const timeline = useMemo(() => new SessionTimeline(session), [session]);
  const [workspaceVersion, setWorkspaceVersion] = useState(0);
  const [panel, setPanel] = useState(
    /** @type {{type: "restore", task: import("./restore-panel.js").RestoreTask} | {type: "accept", range: string | null} | {type: "save"} | null} */ (
      null
    ),
  );
  const rows = useRef(/** @type {import("./timeline-rows.js").Row[]} */ ([]));
  const { moment: asked, changes, query } = route.value;
  const data = timeline.data.value;
  // Without a selection the newest moment is shown. Once the user starts reading, that moment stays.
  const [read, setRead] = useState(/** @type {string | null} */ (null));
  const chosen = asked ?? read ?? data?.head ?? data?.events.find((event) => event.checkpoint)?.checkpoint?.id ?? null;
  const live = useLiveVersion(QUIET_MS, (event) => event.session === null || event.session === session);
  // Others work on the same files.
  const elsewhere = useLiveVersion(ELSEWHERE_MS, (event) => event.session !== null && event.session !== session);
  const loaded = useLoaded((stop) => (chosen ? api.moment(session, chosen, stop) : null), [session, chosen, live], {
    keep: true,
  });
  const moment = loaded.value?.id === chosen ? loaded.value : null;
  // The newest moment has the last saved state, even if it only records a restore of some files.
  const saved = data?.events.find((event) => event.checkpoint)?.checkpoint?.id ?? null;
  const present = useLoaded(() => (saved ? presentOf(session, saved) : null), [session, saved, workspaceVersion], {
    keep: true,
  });
  const now = present.value?.saved === saved ? present.value : null;
  const outlines = useMemo(
    () =>
      new Map(
        (data?.events ?? []).flatMap((event) => (event.checkpoint ? [[event.checkpoint.id, event.checkpoint]] : [])),
      ),
    [data?.events],
  );
  const outline = (chosen && outlines.get(chosen)) || moment;
  const target = outlines.get(outline?.restores_from ?? "");
  const askedAt = useMemo(() => stateBeforeMessage(data?.events ?? [], outline), [data?.events, outline]);
  const comparison = query.get("with") ?? defaultComparison(outline, askedAt);
  // The moment for which the user is choosing another one to compare with.
  const [picking, setPicking] = useState(/** @type {string | null} */ (null));

  const refresh = () => {
    timeline.refresh();
    setWorkspaceVersion((now) => now + 1);
  };
  useEffect(() => {
    if (live > 0) refresh();
  }, [live]);
  useEffect(() => {
    if (elsewhere > 0) setWorkspaceVersion((now) => now + 1);
  }, [elsewhere]);
  const begin = async () => {
    await timeline.refresh();
    if (!asked || (await timeline.loadUntil(asked)) || timeline.error.value) return;
    say({ wrong: true, text: "That moment is not in this session." });
  };
  useEffect(() => void begin(), [timeline]);

  const link = (/** @type {string | null} */ id, more = {}) =>
    momentAddress(session, id, { ...more, query: { with: query.get("with") } });
  const choose = (/** @type {string} */ id) => navigate(link(id));
  const move = (/** @type {1 | -1} */ by) => {
    const moments = rows.current.filter((row) => row.type === "moment");
    const place = moments.findIndex((row) => row.key === chosen);
    const next = moments[place + by];
    if (next) choose(next.key);
  };
  const compare = (/** @type {string} */ one) =>
    chosen && navigate(momentAddress(session, chosen, { changes, query: { with: one } }), { replace: true });
  const mark = (/** @type {string} */ other) => {
    if (!chosen || other === chosen) return;
    const moments = rows.current.filter((row) => row.type === "moment").map((row) => row.key);
    const [newer, older] = moments.indexOf(other) < moments.indexOf(chosen) ? [other, chosen] : [chosen, other];
    setPicking(null);
    navigate(momentAddress(session, newer, { changes, query: { with: older } }));
  };
  /** Without an approval, everything since the session started. */
  const review = (/** @type {string | null} */ approved) =>
    navigate(
      momentAddress(session, approved ?? data?.head ?? chosen, {
        changes: true,
        query: { with: approved ? "now" : "first" },
      }),
    );
  const accept = (/** @type {string | null} */ range) => setPanel({ type: "accept", range });
  const approvedRange = chosen && rangeOfApproved(data?.rounds ?? [], chosen);
  const begun = () => !asked && read === null && setRead(chosen);
  /** Go to the moment that the restore has created. */
  const restored = () => {
    setRead(null);
    navigate(momentAddress(session));
    refresh();
  };
  const restore = (
    /** @type {string} */ id,
    /** @type {import("./api.js").RestoreChoice} */ choice,
    /** @type {import("./hunk-parts.js").ChosenLines | undefined} */ lines = undefined,
  ) => setPanel({ type: "restore", task: { what: "moment", moment: id, choice, lines } });
  useKeys(
    "Moments",
    [
      { key: "j", does: "Older moment", run: () => move(1) },
      { key: "k", does: "Newer moment", run: () => move(-1) },
      { key: "r", does: "Restore this moment", run: () => chosen && restore(chosen, {}) },
      { key: "c", does: "Save a checkpoint", run: () => setPanel({ type: "save" }) },
      { key: "u", does: "Undo the last action", run: () => openUndo(refresh) },
      { key: "1", does: "Compare with the previous step", run: () => compare("before") },
      { key: "2", does: "Compare with now", run: () => compare("now") },
      { key: "3", does: "Compare with the start", run: () => compare("first") },
      ...(askedAt ? [{ key: "4", does: "Compare with your message", run: () => compare("message") }] : []),
      ...(picking ? [{ key: "Escape", does: "Cancel the comparison", run: () => setPicking(null) }] : []),
    ],
    [chosen, session, query.get("with"), changes, askedAt, picking],
  );

  const isPhone = matchMedia(PHONE).matches;
  if (data && data.events.length === 0) return html`<main><${FirstSteps} /></main>`;
  if (!data && timeline.error.value)
    return html`<main class="page"><${Refused} doing="This session could not be loaded" error=${timeline.error.value} again=${() => timeline.refresh()} /></main>`;
  const head = picking
    ? html`<div class="filter-bar picking" role="status"><b class="grow">Choose the moment to compare with</b>
      <button class="small" onClick=${() => setPicking(null)}>Cancel</button></div>`
    : html`<div class="filter-bar"><h2>Timeline</h2>
    ${
      now?.changed &&
      html`<span class="soft num" title=${now.isHere ? "Changed since the last checkpoint" : "Changed since the last checkpoint of this session, by you or in another session"}>
      ${now.changed} ${now.isHere ? "not saved" : "changed"}</span>`
    }
    <button class="small" title="Undo the last action, after a preview (u)" onClick=${() => openUndo(refresh)}>Undo…</button>
    <button class="small" title="Save a checkpoint now (c)" onClick=${() => setPanel({ type: "save" })}>Save now…</button></div>`;
  return html`
    ${
      !(asked && isPhone) &&
      html`<${RoundBar} session=${session} version=${workspaceVersion}
        review=${review}
      reset=${() => setPanel({ type: "restore", task: { what: "reset", moment: "", choice: {} } })} accept=${accept} changed=${refresh} />`
    }
    <main class="panes" data-shows=${!asked || picking ? "timeline" : changes ? "changes" : "moment"}
      onPointerDown=${begun} onWheel=${begun} onTouchMove=${begun} onKeyDown=${begun}>
      <${Timeline} timeline=${timeline} chosen=${chosen} marked=${query.get("with")} link=${link} mark=${mark} isPicking=${picking !== null}
        isHere=${now?.isHere !== false} head=${head} rowsChanged=${(/** @type {import("./timeline-rows.js").Row[]} */ now) => (rows.current = now)} />
      <${Moment} session=${session} loaded=${{ ...loaded, value: moment }}
        restoredTo=${target ? (target.name ?? target.reasoning) : null}
        directories=${chosen ? (timeline.lines.of(chosen).value?.directories ?? 0) : 0} backTo=${momentAddress(session)}
        changesAt=${link(chosen, { changes: true })}
        replayAt=${address("s", session, "replay", chosen)} restore=${() => chosen && restore(chosen, {})}
        commit=${approvedRange && (() => accept(approvedRange))}
        changed=${() => (loaded.again(), timeline.refresh())} />
      <${DiffView} session=${session} moment=${outline} comparison=${comparison} compare=${compare} asked=${askedAt} pick=${() => setPicking(chosen)}
        workspaceVersion=${workspaceVersion} backTo=${link(chosen)} restore=${restore} />
    </main>
    <p class="unseen" aria-live="polite">${outline && titleText(outline.reasoning)}</p>
    ${
      panel?.type === "restore" &&
      html`<${RestorePanel} session=${session} task=${panel.task} events=${data?.events ?? []}
      close=${() => setPanel(null)} done=${panel.task.choice.paths ? refresh : restored}
      compare=${() => navigate(momentAddress(session, panel.task.moment, { changes: isPhone, query: { with: "now" } }))} />`
    }
    ${
      panel?.type === "accept" &&
      html`<${AcceptPanel} session=${session} range=${panel.range} close=${() => setPanel(null)} />`
    }
    ${panel?.type === "save" && html`<${SavePanel} session=${session} close=${() => setPanel(null)} done=${refresh} />`}`;
}

/**
 * What has changed since the newest moment of a session, and whether the workspace is at that session.
 * @param {string} session @param {string} saved the moment
 */
async function presentOf(session, saved) {
  const [changed, sessions] = await Promise.all([api.changedSince(session, saved), api.sessions()]);
  const found = sessions.find((/** @type {{id: string}} */ one) => one.id === session);
  return { saved, changed, isHere: found?.has_head !== false };
}

/**
 * The checkpoints that an approval at a moment covers; null if there was none.
 * @param {{status: string, approved: string | null}[]} rounds oldest first @param {string} moment
 */
function rangeOfApproved(rounds, moment) {
  const approved = rounds.flatMap((round) => (round.status === "merged" && round.approved ? [round.approved] : []));
  const place = approved.indexOf(moment);
  return place < 0 ? null : `${approved[place - 1] ?? ""}..${moment}`;
}

/** @typedef {{changed: {added: number, modified: number, removed: number}, parent: string | null, kind: string, id: string, message_index: number | null}} ShownMoment */

/**
 * The state before the message that led to a moment; null if unknown, or if it is the moment itself.
 * @param {import("./timeline-rows.js").TimelineEvent[]} events @param {ShownMoment | null} moment
 */
function stateBeforeMessage(events, moment) {
  const index = moment?.message_index ?? null;
  if (!moment || index === null) return null;
  const said = events.find(
    (event) => event.type === "message" && event.role === "user" && (event.message_index ?? 0) <= index,
  );
  const found = said?.checkpoint_id ?? null;
  return found === moment.id || moment.kind === "message" ? null : found;
}

/**
 * A manual checkpoint is compared with the message before it. Any other step without changes is more informative in a
 * comparison with now.
 * @param {ShownMoment | null} moment @param {string | null} askedAt
 */
function defaultComparison(moment, askedAt) {
  if (!moment || (changedFiles(moment) > 0 && moment.parent !== null)) return "before";
  return moment.kind === "manual" && askedAt ? "message" : "now";
}
