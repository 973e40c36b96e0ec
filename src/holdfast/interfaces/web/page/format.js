// Times, sizes, counts and paths for people.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Created once: creating a formatter costs more than a thousand uses.
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const EXACT = new Intl.DateTimeFormat([], {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const WEEKDAY = new Intl.DateTimeFormat([], { weekday: "long" });
const DATE = new Intl.DateTimeFormat([], { day: "numeric", month: "long" });
const DATE_AND_YEAR = new Intl.DateTimeFormat([], { day: "numeric", month: "long", year: "numeric" });

/** "now", "7 min", "2 h", "14:33", "12 Mar": short enough for a column. @param {string} at @param {number} [now_ms] */
export function shortAgo(at, now_ms = Date.now()) {
  const seconds = (now_ms - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds < 45) return "now";
  if (seconds < HOUR) return `${Math.max(1, Math.round(seconds / MINUTE))} min`;
  if (seconds < 6 * HOUR) return `${Math.round(seconds / HOUR)} h`;
  if (seconds < 7 * DAY) return clock(at);
  return dayOf(at, now_ms);
}

/** "7 minutes ago", "yesterday at 18:00". @param {string} at @param {number} [now_ms] */
export function longAgo(at, now_ms = Date.now()) {
  const seconds = (now_ms - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds < 45) return "just now";
  if (seconds < HOUR) return `${plural(Math.max(1, Math.round(seconds / MINUTE)), "minute")} ago`;
  if (seconds < 6 * HOUR) return `${plural(Math.round(seconds / HOUR), "hour")} ago`;
  const day = dayOf(at, now_ms);
  return `${day === "Today" || day === "Yesterday" ? day.toLowerCase() : day} at ${clock(at)}`;
}

/** @param {string} at */
export function clock(at) {
  const when = Date.parse(at);
  return Number.isNaN(when) ? "" : CLOCK.format(when);
}

/** The exact time, for a tooltip. @param {string} at */
export function exactTime(at) {
  const when = Date.parse(at);
  return Number.isNaN(when) ? at : EXACT.format(when);
}

/** "Today", "Yesterday", "Tuesday", "12 March". @param {string} at @param {number} [now_ms] */
export function dayOf(at, now_ms = Date.now()) {
  const then = new Date(at);
  if (Number.isNaN(then.getTime())) return "";
  const midnight = new Date(now_ms).setHours(0, 0, 0, 0);
  const days = Math.round((midnight - new Date(then).setHours(0, 0, 0, 0)) / (DAY * 1000));
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days > 1 && days < 7) return WEEKDAY.format(then);
  return (then.getFullYear() === new Date(now_ms).getFullYear() ? DATE : DATE_AND_YEAR).format(then);
}

/** @param {number} number @param {string} word @param {string} [several] */
export function plural(number, word, several = `${word}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? word : several}`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  let value = bytes;
  for (const unit of ["kB", "MB", "GB"]) {
    value /= 1000;
    if (value < 999.5) return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`;
  }
  return `${(value / 1000).toFixed(1)} TB`;
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : plural(Math.round(ms / 60_000), "minute");
}

/** The first characters of an id; copying copies all of it. @param {string} id */
export function shortId(id) {
  return id.slice(0, 8);
}

/** A path in two parts, so that the name is never shortened. @param {string} path @returns {[string, string]} */
export function pathParts(path) {
  const cut = path.replace(/\/$/, "").lastIndexOf("/") + 1;
  return [path.slice(0, cut), path.slice(cut)];
}

/**
 * Text with control and direction characters made visible, because they could make a name look like
 * another one.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    coded,
  );
}

/** The same for a path or name, which is one line. @param {string} path */
export function visiblePath(path) {
  return visible(path).replace(/[\t\n]/g, coded);
}

/** @param {string} character */
function coded(character) {
  return `‹${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}›`;
}
