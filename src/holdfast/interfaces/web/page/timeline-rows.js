// Timeline events as display rows. Pure: no DOM, no requests.
//
//   newest first → a message is above what followed it → separated by days → each row has its lanes
//
// Notes are counted at their moment, and approvals marked at theirs. Edits that were kept are
// left out, because the moments around them show the same.

import { dayOf } from "./format.js";

/** Row heights in pixels; on a phone every row is large enough to tap. */
const HEIGHTS = { day: 32, message: 56, longMessage: 76, moment: 52, quiet: 28, quietOnPhone: 40 };
const LINE_LENGTH = 42;

/**
 * @typedef {object} Outline a checkpoint on the timeline, as the API gives it
 * @property {string} id @property {string | null} name @property {string} kind
 * @property {string | null} parent @property {string} reasoning @property {number} confidence
 * @property {{added: number, modified: number, removed: number}} changed
 * @property {boolean} partial @property {string | null} restores_from
 * @property {number | null} message_index @property {string} round
 * @property {boolean} is_head @property {boolean} is_approved
 */

/**
 * @typedef {object} TimelineEvent
 * @property {string} type @property {string} at @property {number | null} lane
 * @property {number[]} passing @property {number[]} joins @property {boolean} begins @property {boolean} ends
 * @property {Outline} [checkpoint] @property {string[]} [paths]
 * @property {string | null} [approved] @property {string | null} [message] @property {string} [round]
 * @property {string} [role] @property {string} [content] @property {boolean} [rolled_back]
 * @property {string} [checkpoint_id] @property {string} [reason] @property {string} [status]
 * @property {number | null} [message_index] @property {number} [number]
 */

/**
 * @typedef {object} Row
 * @property {string} key
 * @property {"day" | "message" | "moment" | "activity"} type
 * @property {number} height
 * @property {TimelineEvent} event its event, or for a day the one below it
 * @property {string} day
 * @property {number[]} above lanes that enter from above
 * @property {number[]} below lanes that continue below
 * @property {number | null} lane
 * @property {number[]} joins
 * @property {boolean} quiet
 * @property {number} notes
 * @property {string | null} approval the message of this moment's approval; "" for an approval without one
 * @property {string | null} round
 * @property {string | null} target the reason of the restored moment
 * @property {boolean} isPersons whether the user, not the agent, made the changes
 */

/** @param {TimelineEvent[]} events newest first @param {{now_ms?: number, isPhone?: boolean}} [how] @returns {Row[]} */
export function timelineRows(events, how = {}) {
  const day = dayNames(how.now_ms ?? Date.now());
  const quietHeight = how.isPhone ? HEIGHTS.quietOnPhone : HEIGHTS.quiet;
  /** @type {Map<string, number>} */
  const notes = new Map();
  /** @type {Map<string, string>} */
  const approvals = new Map();
  for (const event of events) {
    if (event.type === "annotation" && event.checkpoint_id)
      notes.set(event.checkpoint_id, (notes.get(event.checkpoint_id) ?? 0) + 1);
    if (event.type === "approve" && event.approved) approvals.set(event.approved, event.message ?? "");
  }
  /** @type {Row[]} */
  const rows = [];
  let groupStart = 0;
  /** @type {Set<number>} */
  const beginsBelow = new Set();
  for (const event of events) {
    if (event.type === "message" && event.role === "user") {
      const isLong = (event.content ?? "").length > LINE_LENGTH || (event.content ?? "").includes("\n");
      rows.splice(groupStart, 0, emptyRow(event, "message", isLong ? HEIGHTS.longMessage : HEIGHTS.message, day));
      groupStart = rows.length;
      continue;
    }
    const shown = event.checkpoint !== undefined || (isActivity(event) && event.status !== "kept");
    if (!shown) {
      if (event.begins && event.lane !== null) beginsBelow.add(event.lane);
      continue;
    }
    const begins = event.begins || (event.lane !== null && beginsBelow.delete(event.lane));
    const own = event.lane === null ? [] : [event.lane];
    const quiet = isQuiet(event);
    const moment = event.checkpoint;
    rows.push({
      ...emptyRow(event, moment ? "moment" : "activity", quiet ? quietHeight : HEIGHTS.moment, day),
      above: [...event.passing, ...event.joins, ...(begins ? [] : own)],
      below: [...event.passing, ...(event.ends ? [] : own)],
      lane: event.lane,
      joins: event.joins,
      quiet,
      notes: moment ? (notes.get(moment.id) ?? 0) : 0,
      approval: moment ? (approvals.get(moment.id) ?? (moment.is_approved ? "" : null)) : null,
      round: moment?.round ?? null,
    });
  }
  markPersonsEdits(rows, events);
  const reasons = new Map(rows.map((row) => [row.event.checkpoint?.id, row.event.checkpoint]));
  for (const row of rows) {
    const target = reasons.get(row.event.checkpoint?.restores_from ?? undefined);
    row.target = target ? (target.name ?? target.reasoning) : null;
  }
  return withDays(rows);
}

/**
 * Automatic moments before an action contain earlier changes. If the agent did nothing since the
 * previous moment, the user made them.
 * @param {Row[]} rows @param {TimelineEvent[]} events newest first
 */
function markPersonsEdits(rows, events) {
  /** @type {Set<string>} */
  const persons = new Set();
  /** @type {Outline | null} */
  let later = null; // until its previous moment is found
  for (const event of events) {
    const moment = event.checkpoint;
    if (moment) {
      if (later && !mayHaveWorkedSince(moment)) persons.add(later.id);
      later = isBeforeSomething(moment) && changedFiles(moment) > 0 ? moment : null;
    } else if (isActivity(event)) later = null;
  }
  for (const row of rows) row.isPersons = row.type === "moment" && persons.has(row.key);
}

/** @param {Outline} moment */
function isBeforeSomething(moment) {
  return moment.kind === "message" || ((moment.kind === "tool" || moment.kind === "risky") && !isAfterCall(moment));
}

/** Whether a tool call began at a moment. @param {Outline} moment */
function mayHaveWorkedSince(moment) {
  return isBeforeSomething(moment) && moment.kind !== "message";
}

/** @param {Outline} moment */
function isAfterCall(moment) {
  return moment.reasoning.startsWith("After ");
}

/** @param {TimelineEvent} event @param {Row["type"]} type @param {number} height @param {(at: string) => string} day @returns {Row} */
function emptyRow(event, type, height, day) {
  return {
    key: rowKey(event),
    type,
    height,
    event,
    day: day(event.at),
    above: [],
    below: [],
    lane: null,
    joins: [],
    quiet: false,
    notes: 0,
    approval: null,
    round: null,
    target: null,
    isPersons: false,
  };
}

/** Formatting a day is slow, and thousands of events share one. @param {number} now_ms @returns {(at: string) => string} */
function dayNames(now_ms) {
  /** @type {Map<number, string>} */
  const known = new Map();
  return (at) => {
    const when_ms = Date.parse(at);
    const day = Math.floor((when_ms - new Date(when_ms).getTimezoneOffset() * 60_000) / 86_400_000);
    const found = known.get(day) ?? dayOf(at, now_ms);
    known.set(day, found);
    return found;
  };
}

/** @param {TimelineEvent} event */
function rowKey(event) {
  if (event.checkpoint) return event.checkpoint.id;
  return event.type === "message" ? `message ${event.message_index}` : `${event.type} ${event.number}`;
}

/** @param {TimelineEvent} event */
function isActivity(event) {
  return event.type === "edit" || event.type === "attempt" || event.type === "tool";
}

/** @param {TimelineEvent} event */
function isQuiet(event) {
  const moment = event.checkpoint;
  if (!moment) return true;
  const automatic =
    moment.kind === "tool" || moment.kind === "message" || moment.kind === "interval" || moment.kind === "threshold";
  return automatic && !moment.name && !moment.is_head && changedFiles(moment) === 0 && event.joins.length === 0;
}

/** @param {Row[]} rows @returns {Row[]} */
function withDays(rows) {
  /** @type {Row[]} */
  const found = [];
  let day = "";
  for (const row of rows) {
    if (row.day !== day) {
      found.push({
        ...row,
        key: `day ${row.day}`,
        type: "day",
        height: HEIGHTS.day,
        above: [],
        below: [],
        lane: null,
        joins: [],
        isPersons: false,
      });
      day = row.day;
    }
    found.push(row);
  }
  // A row without its own lane passes on the lanes that enter the next row with one.
  let entering = /** @type {number[]} */ ([]);
  for (const row of found.toReversed()) {
    if (row.type === "moment" || row.type === "activity") entering = row.above;
    else row.above = row.below = entering;
  }
  return found;
}

/** @param {{changed: {added: number, modified: number, removed: number}}} moment */
export function changedFiles(moment) {
  return moment.changed.added + moment.changed.modified + moment.changed.removed;
}

/** @param {number} confidence @returns {"sure" | "fair" | "unsure"} */
export function sureness(confidence) {
  if (confidence >= 0.9) return "sure";
  return confidence >= 0.7 ? "fair" : "unsure";
}

/** Whether the confidence was given; automatic moments only have the default. @param {string} kind */
export function hasConfidence(kind) {
  return kind === "manual";
}

/**
 * Offsets of rows: `tops[i]` is where row i begins, `tops[rows.length]` the whole height.
 * @param {Row[]} rows
 */
export function rowTops(rows) {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach((row, index) => (tops[index + 1] = tops[index] + row.height));
  return tops;
}

/** The row at an offset. @param {Float64Array} tops @param {number} offset */
export function rowAt(tops, offset) {
  let low = 0;
  let high = tops.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}
