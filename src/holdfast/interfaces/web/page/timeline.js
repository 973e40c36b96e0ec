// The timeline: only visible rows are in the document, however long the session is.

import { clock, exactTime, plural, visible } from "./format.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { Lanes, laneX, signY } from "./lanes.js";
import { Loading } from "./states.js";
import { Ago, now_ms } from "./time-ago.js";
import { rowAt, rowTops, timelineRows, hasConfidence } from "./timeline-rows.js";
import { changeWords, returnTitle, riskOf, titleOf, titleText } from "./words.js";

export const PHONE = "(max-width: 820px)";
const MOST_OF_A_MESSAGE = 300;
const SPARE_PX = 400;
const ASK_BEFORE_END_PX = 2000;
const AFTER_SCROLLING_MS = 120;

/** @typedef {import("./timeline-rows.js").Row} Row */

/**
 * @param {object} props
 * @param {import("./timeline-data.js").SessionTimeline} props.timeline
 * @param {string | null} props.chosen
 * @param {string | null} props.marked the other end of a comparison
 * @param {(moment: string) => string} props.link
 * @param {(moment: string) => void} props.mark
 * @param {boolean} props.isPicking whether a click chooses the other end of a comparison
 * @param {boolean} props.isHere whether the workspace is at this session, not at another one
 * @param {unknown} props.head the content above the rows
 * @param {(rows: Row[]) => void} props.rowsChanged
 */
export function Timeline({ timeline, chosen, marked, link, mark, isPicking, isHere, head, rowsChanged }) {
  const data = timeline.data.value;
  const isPhone = matchMedia(PHONE).matches;
  const pane = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 900 });
  const today = new Date(now_ms.value).toDateString();
  const rows = useMemo(() => (data ? timelineRows(data.events, { isPhone }) : []), [data?.events, isPhone, today]);
  const tops = useMemo(() => rowTops(rows), [rows]);
  const brackets = useMemo(() => roundBrackets(rows, data?.rounds ?? []), [rows, data?.rounds]);
  const arcs = useMemo(() => restoreArcs(rows), [rows]);
  useLayoutEffect(() => rowsChanged(rows), [rows]); // before the next key
  useKeptPlace(pane, rows, tops);
  useRevealed(pane, rows, tops, chosen);

  useEffect(() => {
    const element = pane.current;
    if (!element) return;
    let waiting = false;
    const look = () => {
      waiting = false;
      const now = { top: element.scrollTop, height: element.clientHeight };
      // The spare rows cover small steps.
      setView((before) =>
        Math.abs(before.top - now.top) < SPARE_PX / 2 && before.height === now.height ? before : now,
      );
    };
    const soon = () => {
      if (!waiting) requestAnimationFrame(look);
      waiting = true;
    };
    look();
    element.addEventListener("scroll", soon, { passive: true });
    const watcher = new ResizeObserver(soon);
    watcher.observe(element);
    return () => (element.removeEventListener("scroll", soon), watcher.disconnect());
  }, []);

  const height = tops[rows.length];
  useEffect(() => {
    if (data?.next && view.top + view.height > height - ASK_BEFORE_END_PX) timeline.loadOlder();
  }, [view, height, data]);

  const first = rowAt(tops, Math.max(0, view.top - SPARE_PX));
  const last = Math.min(rows.length, rowAt(tops, view.top + view.height + SPARE_PX) + 1);
  useEffect(() => {
    const inSight = rows.slice(first, last).flatMap((row) => (row.event.checkpoint ? [row.event.checkpoint] : []));
    const soon = setTimeout(() => timeline.lines.want(inSight), AFTER_SCROLLING_MS);
    return () => clearTimeout(soon);
  }, [rows, first, last]);
  const lanes = data?.lanes ?? 1;
  // Reuse the objects of rendered rows, so that the next render skips them.
  const drawn = useMemo(() => new Map(), [rows, chosen, marked, lanes, link, isPicking, isHere]);
  const rowFor = (/** @type {number} */ place) => {
    const row = rows[place];
    const known = drawn.get(row.key);
    if (known) return known;
    const made = html`<${TimelineRow} key=${row.key} row=${row} top=${tops[place]} lanes=${lanes} bracket=${brackets[place]}
      chosen=${row.type === "moment" && row.key === chosen} marked=${row.key === marked} link=${link} mark=${mark} isPicking=${isPicking} isHere=${isHere}
      counts=${timeline.lines} position=${place + 1} total=${data?.next ? -1 : rows.length} />`;
    drawn.set(row.key, made);
    return made;
  };
  return html`<section class="pane timeline" aria-label="Timeline" ref=${pane} tabindex="-1">
    ${head}
    ${!data && html`<${Loading} label="Loading the timeline" />`}
    <div class="rows" role="list" style=${{ height: `${height}px` }}>
      <${Arcs} arcs=${arcs} tops=${tops} rows=${rows} from=${first} to=${last} />
      ${Array.from({ length: last - first }, (_, index) => rowFor(first + index))}
    </div>
    ${data && rows.length > 0 && data.next && html`<${Loading} label="Loading older moments" />`}
  </section>`;
}

/**
 * New rows above the visible ones must not move them.
 * @param {{current: HTMLElement | null}} pane @param {Row[]} rows @param {Float64Array} tops
 */
function useKeptPlace(pane, rows, tops) {
  const before = useRef({ rows, tops });
  useLayoutEffect(() => {
    const old = before.current;
    before.current = { rows, tops };
    const element = pane.current;
    if (!element || old.rows === rows || element.scrollTop < 60 || old.rows.length === 0) return;
    const anchor = rowAt(old.tops, element.scrollTop);
    for (let index = anchor; index < old.rows.length; index++) {
      const now = rows.findIndex((row) => row.key === old.rows[index].key);
      if (now < 0) continue;
      element.scrollTop += tops[now] - old.tops[index];
      return;
    }
  }, [rows]);
}

/** @param {{current: HTMLElement | null}} pane @param {Row[]} rows @param {Float64Array} tops @param {string | null} chosen */
function useRevealed(pane, rows, tops, chosen) {
  const place = chosen === null ? -1 : rows.findIndex((row) => row.type === "moment" && row.key === chosen);
  useLayoutEffect(() => {
    const element = pane.current;
    if (!element || place < 0) return;
    const bar = 48;
    const [top, bottom] = [tops[place], tops[place + 1]];
    const isFar =
      top < element.scrollTop - element.clientHeight / 2 || bottom > element.scrollTop + 1.5 * element.clientHeight;
    if (isFar) element.scrollTop = top - element.clientHeight / 3;
    else if (top < element.scrollTop + bar) element.scrollTop = Math.max(0, top - bar - 40);
    else if (bottom > element.scrollTop + element.clientHeight - bar)
      element.scrollTop = bottom - element.clientHeight + bar + 40;
  }, [chosen, place >= 0]);
}

/**
 * The status of the round that each row is in, and where its bracket ends.
 * @param {Row[]} rows @param {{name: string, status: string}[]} rounds
 * @returns {{status: string | null, ends: "" | "top" | "bottom" | "both"}[]}
 */
function roundBrackets(rows, rounds) {
  const status = new Map(rounds.map((round) => [round.name, round.status]));
  /** @type {(string | null)[]} */
  const names = rows.map((row) => row.round);
  for (let index = names.length - 2; index >= 0; index--) if (names[index] === null) names[index] = names[index + 1];
  return names.map((name, index) => {
    const top = names[index - 1] !== name;
    const bottom = names[index + 1] !== name;
    return {
      status: name === null ? null : (status.get(name) ?? null),
      ends: top && bottom ? "both" : top ? "top" : bottom ? "bottom" : "",
    };
  });
}

/** Pairs of rows: a full restore, and the moment it restored. @param {Row[]} rows @returns {[number, number][]} */
function restoreArcs(rows) {
  const places = new Map(rows.map((row, index) => [row.key, index]));
  /** @type {[number, number][]} */
  const found = [];
  rows.forEach((row, index) => {
    const target = row.event.checkpoint?.restores_from;
    const isWhole = row.type === "moment" && !row.event.paths?.length;
    const place = target && isWhole ? places.get(target) : undefined;
    if (place !== undefined && place > index) found.push([index, place]);
  });
  return found;
}

/** @param {{arcs: [number, number][], tops: Float64Array, rows: Row[], from: number, to: number}} props */
function Arcs({ arcs, tops, rows, from, to }) {
  const inSight = arcs.filter(([start, end]) => start < to && end >= from);
  if (inSight.length === 0) return null;
  return html`<svg class="arcs" width="24" height="1" aria-hidden="true">
    ${inSight.map(([start, end]) => {
      const [y, z] = [tops[start] + signY(rows[start]), tops[end] + signY(rows[end])];
      const x = laneX(0) - 8;
      const bend = Math.min(10, (z - y) / 2);
      return html`<path d=${`M${laneX(rows[start].lane ?? 0) - 8} ${y} H${x} Q${x - 6} ${y} ${x - 6} ${y + bend} V${z - bend} Q${x - 6} ${z} ${x - 1} ${z}`} />
        <path class="tip" d=${`M${x - 4} ${z - 3} L${x} ${z} L${x - 4} ${z + 3}`} />`;
    })}
  </svg>`;
}

/**
 * @param {{row: Row, top: number, lanes: number, bracket: {status: string | null, ends: "" | "top" | "bottom" | "both"},
 *   chosen: boolean, marked: boolean, link: (moment: string) => string, mark: (moment: string) => void, isPicking: boolean, isHere: boolean, counts: import("./line-counts.js").LineCounts, position: number, total: number}} props
 */
function TimelineRow({
  row,
  top,
  lanes,
  bracket,
  chosen,
  marked,
  link,
  mark,
  isPicking,
  isHere,
  counts,
  position,
  total,
}) {
  const style = { transform: `translateY(${top}px)`, height: `${row.height}px` };
  const beside = html`<${Lanes} row=${row} lanes=${lanes} bracket=${bracket.status} bracketEnds=${bracket.ends} />`;
  const place = { role: "listitem", "aria-posinset": position, "aria-setsize": total };
  if (row.type === "day")
    return html`<div class="row day" style=${style} ...${place}>${beside}<div class="body">${row.day}</div></div>`;
  if (row.type === "message") {
    const undone = row.event.rolled_back;
    const card = html`<div class="body"><div class="card"><small>You · <time class="num" datetime=${row.event.at} title=${exactTime(row.event.at)}>${clock(row.event.at)}</time>
      ${undone && " · rolled back"}</small><p>${visible((row.event.content ?? "").slice(0, MOST_OF_A_MESSAGE))}</p></div></div>`;
    const classes = undone ? "row message rolled-back" : "row message";
    const before = row.event.checkpoint_id; // the state before the message
    if (!before) return html`<div class=${classes} style=${style} ...${place}>${beside}${card}</div>`;
    return html`<div ...${place}>
      <a class=${classes} style=${style} href=${link(before)} title="Go to the moment before this message">
      ${beside}${card}</a></div>`;
  }
  if (row.type === "activity") {
    return html`<div class="row quiet" style=${style} ...${place}>${beside}<div class="body"><div class="first">
      <span class="reason">${activityWords(row)}</span><${Ago} short at=${row.event.at} /></div></div></div>`;
  }
  const moment = /** @type {import("./timeline-rows.js").Outline} */ (row.event.checkpoint);
  const aside = (row.lane ?? 0) > 0;
  const classes = [
    "row",
    row.quiet && "quiet",
    row.isPersons && "person",
    aside && "aside",
    chosen && "chosen",
    marked && "marked",
  ]
    .filter(Boolean)
    .join(" ");
  const click = (/** @type {MouseEvent} */ event) => {
    if (!event.shiftKey && !isPicking) return;
    event.preventDefault();
    mark(moment.id);
  };
  return html`<div role="listitem" aria-posinset=${position} aria-setsize=${total}>
    <a class=${classes} style=${style} href=${link(moment.id)} onClick=${click} aria-current=${chosen ? "true" : null}
      data-moment=${moment.id}>
    ${beside}
    <div class="body">
      <div class="first">
        <span class="reason" title=${titleText(moment.reasoning)}>${rowTitle(row, moment)}</span>
        <${Ago} short at=${row.event.at} />
      </div>
      ${!row.quiet && html`<div class="second">${details(row, moment, aside, isHere, counts.of(moment.id))}</div>`}
    </div>
  </a></div>`;
}

/** @param {Row} row @param {import("./timeline-rows.js").Outline} moment */
function rowTitle(row, moment) {
  if (row.approval) return visible(row.approval);
  const back = isReturn(row) && returnTitle(moment.reasoning, row.event.paths ?? [], row.target);
  return back || titleOf(moment.reasoning);
}

/** @param {{moment: import("./timeline-rows.js").Outline, lines: import("./html.js").Signal<import("./line-counts.js").Lines | null>}} props */
function Changed({ moment, lines }) {
  return changeWords(moment.changed, lines.value?.directories ?? 0);
}

/** @param {{lines: import("./html.js").Signal<import("./line-counts.js").Lines | null>}} props */
function LinesChanged({ lines }) {
  const found = lines.value;
  if (!found) return null;
  return html`${found.added > 0 && html` <span class="plus num">+${found.added.toLocaleString("en")}</span>`}${
    found.removed > 0 && html` <span class="minus num">−${found.removed.toLocaleString("en")}</span>`
  }`;
}

/**
 * @param {Row} row @param {import("./timeline-rows.js").Outline} moment @param {boolean} aside @param {boolean} isHere
 * @param {import("./html.js").Signal<import("./line-counts.js").Lines | null>} lines
 */
function details(row, moment, aside, isHere, lines) {
  return html`
    <span class="count">
      ${isReturn(row) ? returnWords(row) : moment.kind === "initial" ? html`<span class="num">${plural(moment.changed.added, "file")}</span>` : html`<${Changed} moment=${moment} lines=${lines} />`}<${LinesChanged} lines=${lines} /></span>
    ${row.isPersons && html`<span class="tag person" title="Changed outside this agent's tool calls">your edits</span>`}
    ${moment.is_head && isHere && html`<span class="tag here">you are here</span>`}
    ${row.approval !== null && html`<span class="tag approved">✓ approved</span>`}
    ${moment.kind === "risky" && html`<span class="tag risky" title=${riskOf(moment.reasoning)}>▲ risky</span>`}
    ${moment.name && html`<span class="tag">${visible(moment.name)}</span>`}
    ${
      hasConfidence(moment.kind) &&
      moment.confidence < 0.7 &&
      html`<span class="count">
      ${Math.round(moment.confidence * 100)}% sure</span>`
    }
    ${moment.partial && html`<span class="tag quiet" title="A tool was still running when this was saved">partial</span>`}
    ${
      row.notes > 0 &&
      html`<span class="count" title=${plural(row.notes, "note")}>
      <span aria-hidden="true">✎</span> ${row.notes}<span class="unseen"> notes</span></span>`
    }
    ${aside && html`<span class="count">abandoned</span>`}`;
}

/** @param {Row} row */
function isReturn(row) {
  return ["restore", "undo", "redo", "reset"].includes(row.event.type);
}

/** @param {Row} row */
function returnWords(row) {
  const paths = row.event.paths?.length;
  return paths
    ? `↩ ${plural(paths, "path")} restored`
    : row.event.type === "redo"
      ? "↪ redone"
      : row.event.type === "undo"
        ? "↩ undone"
        : "↩ restored";
}

/** @param {Row} row */
function activityWords(row) {
  const { event } = row;
  const what = visible(event.reason ?? "");
  if (event.status === "open") return html`Running <code>${what}</code>`;
  return html`Rolled back: <code>${what}</code>`;
}
