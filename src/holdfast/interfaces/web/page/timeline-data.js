// The loaded part of a session's timeline: pages of events, kept up to date by live events.
//
//   first page → older pages while scrolling → after a live event the first page again, spliced in
//
// A page can be spliced onto older ones only if the lanes match. If a new branch of work has moved
// them, everything is reloaded.

import { api } from "./api.js";
import { signal } from "./html.js";
import { LineCounts } from "./line-counts.js";

const PAGE = 200;
const LARGE_PAGE = 1000;

/** @typedef {import("./timeline-rows.js").TimelineEvent} TimelineEvent */

/**
 * @typedef {object} TimelineData
 * @property {TimelineEvent[]} events newest first
 * @property {number} lanes
 * @property {{name: string, status: string, approved: string | null}[]} rounds
 * @property {string | null} head
 * @property {string | null} approved
 * @property {string | null} next
 */

export class SessionTimeline {
  /** @param {string} session */
  constructor(session) {
    this.session = session;
    this.lines = new LineCounts(session);
    /** @type {import("./html.js").Signal<TimelineData | null>} */
    this.data = signal(null);
    /** @type {import("./html.js").Signal<unknown>} */
    this.error = signal(null);
    /** @type {Promise<void> | null} */
    this.asking = null;
    this.isAskedAgain = false;
  }

  /** Reloads the first page. Calls during a request are merged into one more request. */
  async refresh() {
    if (this.asking) {
      this.isAskedAgain = true;
      return this.asking;
    }
    this.asking = this.replaceFirstPage();
    await this.asking;
    this.asking = null;
    if (this.isAskedAgain) {
      this.isAskedAgain = false;
      await this.refresh();
    }
  }

  /** The next older page, if there is one. */
  async loadOlder(limit = LARGE_PAGE) {
    const known = this.data.value;
    if (!known || known.next === null || this.asking) return;
    this.asking = this.append(known, limit);
    await this.asking;
    this.asking = null;
  }

  /** Loads older pages until a moment is among them; false if there is no such moment. @param {string} moment */
  async loadUntil(moment) {
    while (this.asking) await this.asking;
    for (;;) {
      const known = this.data.value;
      if (!known) return false;
      if (known.events.some((event) => event.checkpoint?.id === moment)) return true;
      if (known.next === null) return false;
      await this.loadOlder(LARGE_PAGE);
      if (this.error.value) return false;
    }
  }

  async replaceFirstPage() {
    try {
      const page = await api.timeline(this.session, { limit: PAGE });
      const known = this.data.value;
      this.data.value = known ? await this.spliced(known, page) : page;
      this.error.value = null;
    } catch (error) {
      this.error.value = error;
    }
  }

  /** @param {TimelineData} known @param {TimelineData} page @returns {Promise<TimelineData>} */
  async spliced(known, page) {
    const oldest = page.events.at(-1);
    const place = oldest ? known.events.findIndex((event) => isSame(event, oldest)) : -1;
    if (place >= 0 && laneText(known.events[place]) === laneText(oldest)) {
      const older = known.events.slice(place + 1).map((event) => marked(event, page.head, page.approved));
      return {
        ...page,
        events: [...page.events, ...older],
        next: place + 1 < known.events.length ? known.next : page.next,
        lanes: Math.max(page.lanes, known.lanes),
      };
    }
    let found = page;
    while (found.events.length < known.events.length && found.next !== null) {
      const more = await api.timeline(this.session, { limit: LARGE_PAGE, cursor: found.next });
      found = {
        ...found,
        events: [...found.events, ...more.events],
        next: more.next,
        lanes: Math.max(found.lanes, more.lanes),
      };
    }
    return found;
  }

  /** @param {TimelineData} known @param {number} limit */
  async append(known, limit) {
    try {
      const page = await api.timeline(this.session, { cursor: known.next, limit });
      this.data.value = {
        ...known,
        events: [...known.events, ...page.events],
        next: page.next,
        lanes: Math.max(known.lanes, page.lanes),
        rounds: page.rounds.length > known.rounds.length ? page.rounds : known.rounds,
      };
      this.error.value = null;
    } catch (error) {
      this.error.value = error;
    }
  }
}

/** @param {TimelineEvent} one @param {TimelineEvent} other */
function isSame(one, other) {
  return (
    one.type === other.type &&
    one.at === other.at &&
    one.checkpoint?.id === other.checkpoint?.id &&
    one.number === other.number
  );
}

/** @param {TimelineEvent | undefined} event */
function laneText(event) {
  return event ? JSON.stringify([event.lane, event.passing]) : "";
}

/** @param {TimelineEvent} event @param {string | null} head @param {string | null} approved @returns {TimelineEvent} */
function marked(event, head, approved) {
  const moment = event.checkpoint;
  if (!moment || (moment.is_head === (moment.id === head) && moment.is_approved === (moment.id === approved)))
    return event;
  return { ...event, checkpoint: { ...moment, is_head: moment.id === head, is_approved: moment.id === approved } };
}
