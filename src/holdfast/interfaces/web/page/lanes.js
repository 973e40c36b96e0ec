// The graph beside the timeline: lanes with their forks and joins, the symbol of each moment, and rounds.

import { html } from "./html.js";
import { hasConfidence, sureness } from "./timeline-rows.js";

const STEP = 14;
const MARGIN = 30;
const MOST_LANES = 5;

/** @param {number} lane */
export const laneX = (lane) => MARGIN + Math.min(lane, MOST_LANES - 1) * STEP;
/** @param {number} lanes */
const lanesWidth = (lanes) => MARGIN + (Math.min(Math.max(lanes, 1), MOST_LANES) - 1) * STEP + 16;

/** The position of a row's symbol. @param {import("./timeline-rows.js").Row} row */
export const signY = (row) => (row.quiet ? row.height / 2 : row.type === "moment" ? 17 : row.height / 2);

/**
 * @param {{row: import("./timeline-rows.js").Row, lanes: number, bracket: string | null, bracketEnds: "" | "top" | "bottom" | "both"}} props
 * `bracket` is the status of the row's round.
 */
export function Lanes({ row, lanes, bracket, bracketEnds }) {
  const middle = signY(row);
  const rails = [];
  for (const lane of new Set([...row.above, ...row.below])) {
    const x = laneX(lane);
    const joins = row.joins.includes(lane);
    if (joins && row.lane !== null) {
      const to = laneX(row.lane);
      rails.push(html`<path class="rail side" d=${`M${x} 0 C${x} ${middle} ${x} ${middle} ${to} ${middle}`} />`);
      continue;
    }
    const from = row.above.includes(lane) ? 0 : middle;
    const end = row.below.includes(lane) ? row.height : middle;
    if (end > from) rails.push(html`<path class=${lane > 0 ? "rail side" : "rail"} d=${`M${x} ${from} V${end}`} />`);
  }
  return html`<svg class="lanes" width=${lanesWidth(lanes)} height=${row.height} aria-hidden="true">
    ${bracket && html`<path class=${`bracket ${bracket}`} d=${bracketPath(row.height, bracketEnds)} />`}
    ${rails}
    ${row.lane !== null && row.type === "moment" && html`<${Sign} row=${row} x=${laneX(row.lane)} y=${middle} />`}
  </svg>`;
}

/** @param {number} height @param {string} ends */
function bracketPath(height, ends) {
  const top = ends === "top" || ends === "both" ? 6 : 0;
  const bottom = ends === "bottom" || ends === "both" ? height - 6 : height;
  const open = top ? `M11 ${top} H7` : `M7 ${top}`;
  return `${open} V${bottom}${bottom < height ? " H11" : ""}`;
}

/** One shape per kind, so that colour is never the only difference. @param {{row: import("./timeline-rows.js").Row, x: number, y: number}} props */
function Sign({ row, x, y }) {
  const moment = row.event.checkpoint;
  if (!moment) return null;
  const side = (row.lane ?? 0) > 0 ? " side" : "";
  if (
    row.event.type === "restore" ||
    row.event.type === "undo" ||
    row.event.type === "redo" ||
    row.event.type === "reset"
  ) {
    const flip = row.event.type === "redo" ? -1 : 1;
    return html`<circle class=${`dot${side}`} cx=${x} cy=${y} r="7" />
      <path class="mark" transform=${`translate(${x} ${y}) scale(${flip} 1)`}
        d="M3 2.4V1A1.8 1.8 0 0 0 1.2-.8H-3M-1.2-3L-3.2-.8-1.2 1.4" />`;
  }
  if (moment.kind === "risky")
    return html`<path class="dot risky" d=${`M${x} ${y - 7} L${x + 7} ${y + 5} H${x - 7} Z`} />`;
  if (moment.kind === "initial")
    return html`<path class=${`dot solid${side}`} d=${`M${x} ${y - 6} L${x + 6} ${y} L${x} ${y + 6} L${x - 6} ${y} Z`} />`;
  if (row.approval !== null) {
    return html`<circle class="dot sure" cx=${x} cy=${y} r="7" />
      <path class="mark approved" transform=${`translate(${x} ${y})`} d="M-2.6 .2L-.6 2.2 2.8-2" />`;
  }
  if (hasConfidence(moment.kind))
    return html`<circle class=${`dot ${sureness(moment.confidence)}`} cx=${x} cy=${y} r="6" />`;
  if (row.isPersons)
    return html`<rect class=${`dot person${side}`} x=${x - 5} y=${y - 5} width="10" height="10" rx="2" />`;
  if (row.quiet) return html`<circle class=${`dot${side}`} cx=${x} cy=${y} r="3.5" />`;
  return html`<circle class=${`dot${side}`} cx=${x} cy=${y} r="5.5" />`;
}
