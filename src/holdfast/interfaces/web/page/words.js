// Sentences about moments, for people.

import { html } from "./html.js";
import { plural, visible, visiblePath } from "./format.js";

const WRITES = /^(write|write_file|create_file|create)$/i;
const SHELLS = /bash|shell|command|terminal/i;
const EDITS = /^(edit|multiedit|notebookedit|edit_file|replace|str_replace|search_replace|apply_patch)$/i;

/**
 * What happened, and the command or path that it happened to: "Edited" and `src/auth.py`.
 * @param {string} reasoning @returns {[string, string] | null} null if the reason is a sentence
 */
function deedOf(reasoning) {
  const line = visible(reasoning.split("\n", 1)[0]);
  const started = /^Start of the session(?: with ([\w-]+))?$/.exec(line);
  if (started) return [started[1] ? `Session started with ${agentName(started[1])}` : "Session started", ""];
  const asked = /^Before user message: (.*)$/.exec(line);
  if (asked) return ["Before your message", asked[1]];
  const undone = /^Undid the \w+ call "(.*)" by [\w-]+/.exec(line);
  if (undone) return ["Undid", undone[1]];
  const call = /^(Before|After) (\w+): (.*?)(?: \((?:risky|notable|dangerous): .*\))?$/.exec(line);
  if (!call) return null;
  const [, when, tool, subject] = call;
  const isBefore = when === "Before";
  if (WRITES.test(tool)) return [isBefore ? "Before writing" : "Wrote", subject];
  if (EDITS.test(tool)) return [isBefore ? "Before editing" : "Edited", subject];
  return [SHELLS.test(tool) ? when : `${when} ${tool}`, subject];
}

/** The command or path in a title; "" for none. @param {string} reasoning */
export function subjectOf(reasoning) {
  return deedOf(reasoning)?.[1] ?? "";
}

/** A title with its command or path set as code: "Before `rm -rf src`". @param {string} reasoning */
export function titleOf(reasoning) {
  const deed = deedOf(reasoning);
  if (!deed) return visible(reasoning.split("\n", 1)[0]);
  const [words, subject] = deed;
  if (!subject) return words;
  return words === "Before your message" ? `${words} “${subject}”` : html`${words} <code>${subject}</code>`;
}

/** The shell command of a moment before or after its call. @param {string} reasoning */
export function commandOf(reasoning) {
  const call = /^(Before|After) (\w+): ([^]*?)(?: \((?:risky|notable|dangerous): .*\))?$/.exec(reasoning);
  if (!call || !SHELLS.test(call[2])) return null;
  return { command: call[3], ended: call[1] === "After" };
}

/**
 * A restore, undo or reset in words.
 * @param {string} reasoning @param {string[]} paths that it was limited to @param {string | null} target the reason of the restored moment
 * @returns {unknown} null for any other reason
 */
export function returnTitle(reasoning, paths, target) {
  const line = visible(reasoning.split("\n", 1)[0]);
  const found = /^(Restored to|Reset to|Undid the (?:restore|reset): back to|Redid the restore: forward to) (.*)$/.exec(
    line,
  );
  if (!found) return null;
  const [, way, place] = found;
  if (way.startsWith("Undid")) return way.startsWith("Undid the reset") ? "Undid the reset" : "Undid the restore";
  if (way.startsWith("Redid")) return "Redid the restore";
  if (/ \(\d+ selected hunks?\)$/.test(place))
    return html`Restored lines of <code>${visiblePath(paths[0] ?? "a file")}</code>`;
  if (paths.length === 1) return html`Restored <code>${visible(paths[0])}</code>`;
  if (paths.length > 1) return `Restored ${plural(paths.length, "path")}`;
  const some = / \((\d+) selected paths?\)$/.exec(place);
  if (some) return `Restored ${plural(Number(some[1]), "path")}`;
  const name = /^[0-9a-f]{10,}$/.test(place) && target ? titleText(target) : place;
  return way === "Reset to" ? `Reset to “${name}”` : `Back to “${name}”`;
}

/** The same as one line of text. @param {string} reasoning */
export function titleText(reasoning) {
  const deed = deedOf(reasoning);
  if (!deed) return visible(reasoning.split("\n", 1)[0]);
  return deed[0] === "Before your message" ? `${deed[0]} “${deed[1]}”` : deed.join(" ").trim();
}

/** @param {string} reasoning */
export function riskOf(reasoning) {
  return /\((?:risky|dangerous): (.*)\)$/.exec(reasoning.split("\n", 1)[0])?.[1] ?? null;
}

/** "3 files", "3 files and 1 directory". @param {number} files @param {number} directories @returns {string} "" for none */
export function countWords(files, directories) {
  const parts = [
    ...(files > 0 ? [plural(files, "file")] : []),
    ...(directories > 0 ? [plural(directories, "directory", "directories")] : []),
  ];
  return parts.join(" and ");
}

/**
 * Changes since the previous step: "3 files", "2 files and 1 directory deleted".
 * @param {{added: number, modified: number, removed: number}} changed @param {number} [directories] how many of them are directories
 */
export function changeWords(changed, directories = 0) {
  const { added, modified, removed } = changed;
  const total = added + modified + removed;
  if (total === 0) return "nothing changed";
  const counted = countWords(total - directories, directories);
  if (removed === total) return `${counted} deleted`;
  return added === total ? `${counted} added` : counted;
}

/**
 * The server's remarks are parts of sentences. Command-line options in them are choices on the page.
 * @param {string} words @param {boolean} [hasChoices] whether those choices are directly above
 */
export function remarkWords(words, hasChoices = false) {
  const whole = visible(words)
    .replace(/;? ?(to [^;:]*?): --(?:git|refs|with) [^;]*$/, hasChoices ? "; $1, choose how above" : "")
    .replace(/, and is not restored without --\w+/, ", and is not restored");
  // A path or name at the beginning keeps its case.
  const first = /^[a-z]+\b(?![./_-])/.test(whole) ? whole.charAt(0).toUpperCase() : whole.charAt(0);
  return first + whole.slice(1) + (/[.!?]$/.test(whole) ? "" : ".");
}

/** A refusal or hint without options that cannot be typed on the page. @param {string} words */
export function withoutOptions(words) {
  return words
    .replace(/(:| with) --best-effort/, " in a terminal: holdfast restore REF --best-effort")
    .replace(/use --git branch/, "restore git on a new branch")
    .replace(/then run accept again/, "then check again");
}

/** The step of an undo, as the start of a sentence. @param {string | undefined} what */
export function undoneWords(what) {
  const found = /^the (\w+) call "([^]*)" by ([\w-]+)$/.exec(what ?? "");
  if (found) return html`The ${found[1]} call <code>${visible(found[2])}</code> by ${agentName(found[3])}`;
  return sentence(visible(what ?? "The last change"));
}

/** With a capital letter at the start. @param {string} words */
export function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {string} kind */
export function kindWords(kind) {
  /** @type {Record<string, string>} */
  const words = {
    manual: "checkpoint",
    initial: "start of the session",
    message: "before your message",
    tool: "tool call",
    risky: "risky command",
    interval: "after some minutes",
    threshold: "after many changes",
    "end-of-day": "end of day",
    merge: "merge into main",
    safety: "saved before a restore",
    restore: "restore",
  };
  return words[kind] ?? kind;
}

/** @param {string | null | undefined} agent */
export function agentName(agent) {
  if (!agent) return "You";
  return agent
    .split("-")
    .map((word) => word[0].toUpperCase() + word.slice(1))
    .join(" ");
}

/** Whether an agent is working; a user's own session stays open without activity. @param {{status: string, agent: string | null}} session */
export function isWorking(session) {
  return session.status === "active" && Boolean(session.agent);
}

/** @param {{status: string}} session */
export function statusWords({ status }) {
  return status === "active" ? "open" : status;
}

/** A component's name in a sentence. @param {string} component */
export function componentWords(component) {
  /** @type {Record<string, string>} */
  const words = {
    agents: "agent memory",
    external: "files outside the workspace",
    worktrees: "worktrees",
    knowledge: "knowledge",
    environment: "environment",
    postgres: "PostgreSQL databases",
  };
  return words[component] ?? component;
}
