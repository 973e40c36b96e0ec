// Sentences about moments, in a person's words.

import { html } from "./html.js";
import { plural, visible } from "./format.js";

/** Words with the command or path of a tool call set as code: `Before Bash: rm -rf src`. @param {string} reasoning */
export function titleOf(reasoning) {
  const line = visible(reasoning.split("\n", 1)[0]);
  const call = /^(Before|After) (\w+): (.*?)(?: \((?:risky|notable|dangerous): .*\))?$/.exec(line);
  if (!call) return line;
  const [, when, tool, subject] = call;
  return html`${when} ${tool === "Bash" ? "" : `${tool} `}<code>${subject}</code>`;
}

/** The same as one line of text. @param {string} reasoning */
export function titleText(reasoning) {
  return visible(reasoning.split("\n", 1)[0]).replace(/ \((?:risky|notable|dangerous): .*\)$/, "");
}

/** @param {string} reasoning */
export function riskOf(reasoning) {
  return /\((?:risky|dangerous): (.*)\)$/.exec(reasoning.split("\n", 1)[0])?.[1] ?? null;
}

/** What changed since the step before: "3 files", "2 files deleted". @param {{added: number, modified: number, removed: number}} changed */
export function changeWords(changed) {
  const { added, modified, removed } = changed;
  const files = added + modified + removed;
  if (files === 0) return "nothing changed";
  if (removed === files) return `${plural(files, "file")} deleted`;
  if (added === files) return `${plural(files, "file")} added`;
  return plural(files, "file");
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
    interval: "automatic",
    threshold: "automatic",
    "end-of-day": "end of day",
    merge: "approved",
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
