// Settings by topic, each with its origin; retention rules beside what they would remove.

import { api } from "./api.js";
import { useDraft } from "./draft.js";
import { plural, size, visible, visiblePath } from "./format.js";
import { html, useEffect, useState } from "./html.js";
import { useLiveVersion } from "./live-version.js";
import { useLoaded } from "./load.js";
import { isNothingSaved, Loading, Refused } from "./states.js";
import { chooseTheme, theme } from "./theme.js";
import { say } from "./toast.js";
import { kindWords, sentence } from "./words.js";

/** @typedef {{key: string, value: any, origin: string, help?: string, warnings?: string[], effective?: any, choices?: string[], user_only?: boolean}} Setting */

const GROUPS = [
  {
    title: "Automatic checkpoints",
    keys: [
      "auto_edit",
      "auto_after_edit",
      "auto_shell",
      "auto_after_shell",
      "auto_message",
      "auto_turn_end",
      "auto_files",
      "auto_interval",
      "end_of_day",
      "auto_merge",
      "watch",
      "daemon",
      "daemon_idle",
    ],
  },
  {
    title: "What is saved",
    keys: [
      "include",
      "ignore",
      "defaults",
      "capture_named_ignored",
      "max_file_size",
      "nested_repositories",
      "worktree_files",
      "git_nested",
    ],
  },
  { title: "Space", keys: ["budget", "total_budget", "max_manual_checkpoints"] },
  {
    title: "Beyond files",
    keys: ["components", "component_timeout", "component_max_size", "postgres", "agent_state", "record_environment"],
  },
  { title: "When a tool call fails", keys: ["restore_on_failure", "check_command", "check_timeout"] },
  { title: "Git", keys: ["accept_template", "accept_timeout", "mirror", "mirror_refs"] },
];
const MOST_LISTED = 60;
const REFRESH_MS = 500;

export function SettingsView() {
  const version = useLiveVersion(REFRESH_MS);
  const loaded = useLoaded(() => api.settings(), [version], { keep: true });
  useEffect(() => void (document.title = "Settings · Holdfast"), []);
  if (loaded.error && !loaded.value)
    return html`<main class="page">
      <${Refused} doing="The settings could not be loaded" error=${loaded.error} again=${loaded.again} /></main>`;
  if (!loaded.value) return html`<main class="page"><${Loading} label="Loading the settings" /></main>`;
  const settings = new Map(/** @type {Setting[]} */ (loaded.value).map((one) => [one.key, one]));
  const named = new Set([...GROUPS.flatMap((group) => group.keys), "retention"]);
  const others = [...settings.keys()].filter((key) => !named.has(key));
  const groups = [...GROUPS, { title: "Other", keys: others }];
  return html`<main class="page"><div class="column">
    <h1>Settings</h1><p
      class="soft">Changes apply to this workspace immediately. Environment variables override the values here.</p>
    <h2>Appearance</h2>
    <div class="choice" role="group" aria-label="Theme">
      ${
        /** @type {const} */ (["system", "light", "dark"]).map(
          (one) => html`<button aria-pressed=${theme.value === one}
        onClick=${() => chooseTheme(one)}>
        ${one === "system" ? "Match the system" : one === "light" ? "Light" : "Dark"}</button>`,
        )
      }</div>
    ${settings.has("retention") && html`<${Retention} setting=${settings.get("retention")} changed=${loaded.again} />`}
    ${groups.map((group) => {
      const shown = group.keys.map((key) => settings.get(key)).filter((one) => one !== undefined);
      return (
        shown.length > 0 &&
        html`<h2>${group.title}</h2><div class="settings-group">
          ${shown.map((one) => html`<${SettingLine} key=${one.key} setting=${one} changed=${loaded.again} />`)}</div>
        ${group.title === "What is saved" && html`<${LeftOutNow} version=${version} settings=${loaded.value} />`}`
      );
    })}
  </div></main>`;
}

/** @param {{setting: Setting, changed: () => void}} props */
function SettingLine({ setting, changed }) {
  const [problem, setProblem] = useState(/** @type {{message: string, hint?: string} | null} */ (null));
  const { key, value } = setting;
  const id = `setting-${key}`;
  const keep = async (/** @type {unknown} */ next) => {
    try {
      await api.setSetting(key, next);
      setProblem(null);
      say({ text: `Saved “${labelOf(key)}”.` });
      changed();
      return true;
    } catch (error) {
      setProblem(/** @type {Error} */ (error));
      return false;
    }
  };
  const reset = async () => {
    try {
      await api.setSetting(key, null);
      setProblem(null);
      changed();
    } catch (error) {
      setProblem(/** @type {Error} */ (error));
    }
  };
  return html`<div class="setting">
    <div><label for=${id}><b>${labelOf(key)}</b></label><p class="help">${sentence(setting.help ?? "")}. <code>
      ${key}</code></p></div>
    <${Field} id=${id} setting=${setting} value=${value} keep=${keep} invalid=${problem !== null} />
    <${Origin} setting=${setting} reset=${reset} />
    ${
      problem &&
      html`<p class="wrong" role="alert" id=${`${id}-wrong`}>
      ${visible(problem.message)} ${problem.hint && visible(problem.hint)}</p>`
    }
    ${setting.warnings?.map((warning) => html`<p class="wrong">${visible(warning)}</p>`)}
  </div>`;
}

/** Where a value comes from, and where to change it if not here. @param {{setting: Setting, reset: () => void}} props */
function Origin({ setting, reset }) {
  const { origin } = setting;
  return html`<div class="origin">${origin === "default" ? "default" : origin === "store" ? "set here" : `from ${visible(origin)}`}
    ${origin === "store" && html`<br /><button class="link" onClick=${reset}>Reset to default</button>`}
    ${setting.user_only && html`<br />for all workspaces: <code>holdfast config edit --user</code>`}</div>`;
}

/** Whether it cannot be changed here. @param {Setting} setting */
function isFixed({ origin, user_only }) {
  return user_only || origin.startsWith("HOLDFAST_");
}

/** Labels for settings whose keys are not clear enough. @type {Record<string, string>} */
const LABELS = {
  auto_edit: "Before an edit",
  auto_after_edit: "After an edit",
  auto_shell: "Before a command",
  auto_after_shell: "After a command",
  auto_message: "Before your message",
  auto_turn_end: "After an answer",
  auto_files: "After this many changed files",
  auto_interval: "After this many minutes",
  end_of_day: "Every day at this time",
  auto_merge: "After a merge into",
  watch: "Watch for changes",
  defaults: "Built-in ignore rules",
  capture_named_ignored: "Ignored files named by an agent",
  max_file_size: "Largest file to save",
  budget: "Disk space for this workspace",
  total_budget: "Disk space for all workspaces",
  max_manual_checkpoints: "Manual checkpoints in a session",
  nested_repositories: "Repositories inside this one",
  worktree_files: "Files of other worktrees",
  git_nested: "Git state of submodules",
  postgres: "PostgreSQL databases",
  agent_state: "Agent memory",
  record_environment: "Tool versions",
  component_timeout: "Seconds for one component",
  component_max_size: "Space for one component",
  restore_on_failure: "Roll back failed calls",
  check_command: "Check after a call",
  check_timeout: "Seconds for the check",
  accept_template: "Commit message",
  accept_timeout: "Seconds for a commit",
  mirror: "Mirror branch",
  mirror_refs: "Mirrored refs",
  daemon_idle: "Idle minutes of the daemon",
  lock_timeout: "Seconds to wait for the store",
  hook_lock_timeout: "Seconds that a hook waits",
  wait_for_edits: "Seconds to wait for edits",
  setuid: "Setuid and setgid bits",
};

/** @param {string} key */
function labelOf(key) {
  return LABELS[key] ?? sentence(key.replaceAll("_", " "));
}

/** @param {{id: string, setting: Setting, value: any, keep: (value: unknown) => Promise<boolean>, invalid: boolean}} props */
function Field({ id, setting, value, keep, invalid }) {
  const isSize = /budget|size/.test(setting.key);
  const draft = useDraft(Array.isArray(value) ? value.join("\n") : isSize ? size(Number(value)) : String(value ?? ""));
  /** A refused value stays in its field, with the reason. @param {(text: string) => unknown} read @returns {(event: Event) => Promise<void>} */
  const keepText = (read) => async (event) => {
    const written = text(event);
    if (await keep(read(written))) draft.kept(written);
  };
  const described = invalid ? `${id}-wrong` : null;
  const text = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).value;
  const { choices } = setting;
  const shared = { id, disabled: isFixed(setting), "aria-invalid": invalid, "aria-describedby": described };
  if (choices?.length === 2 && choices.includes("on") && choices.includes("off")) {
    return html`<label class="switch">
      <input type="checkbox" role="switch" id=${id} checked=${value === "on"} disabled=${shared.disabled}
        onChange=${(/** @type {Event} */ event) => keep(/** @type {HTMLInputElement} */ (event.target).checked ? "on" : "off")} /> ${value === "on" ? "On" : "Off"}</label>`;
  }
  if (choices) {
    return html`<select ...${shared} value=${value} onChange=${(/** @type {Event} */ event) => keep(text(event))}>
      ${[...new Set([...choices, value])].map((one) => html`<option value=${one}>${one}</option>`)}</select>`;
  }
  if (Array.isArray(value)) {
    return html`<textarea ...${shared} rows=${Math.min(6, Math.max(2, value.length))} class="code"
      placeholder="one per line" value=${draft.text} onInput=${draft.write} onChange=${keepText(linesOf)}></textarea>`;
  }
  if (typeof value === "number" && !isSize) {
    const isWhole = Number.isInteger(value) && !/timeout|interval|idle|wait/.test(setting.key);
    return html`<input type="number" ...${shared} min="0" step=${isWhole ? "1" : "any"}
      value=${draft.text} onInput=${draft.write} onChange=${keepText(Number)} />`;
  }
  // An input field would drop the line breaks of a template.
  if (/\n|_template$/.test(`${value}${setting.key}`))
    return html`<textarea ...${shared} rows="3" class="code" value=${draft.text} onInput=${draft.write}
      onChange=${keepText(String)}></textarea>`;
  return html`<input type="text" ...${shared} value=${draft.text} onInput=${draft.write} onChange=${keepText(String)} />`;
}

/** @param {string} text */
function linesOf(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** @param {{label: string, column: string, value: string, placeholder: string, isFixed: boolean, keep: (text: string) => Promise<boolean>}} props */
function RuleCell({ label, column, value, placeholder, isFixed, keep }) {
  const draft = useDraft(value);
  const change = async (/** @type {Event} */ event) => {
    const written = /** @type {HTMLInputElement} */ (event.target).value;
    if (await keep(written)) draft.kept(written);
  };
  return html`<td data-column=${column}><input type="text" class="num" size="8" aria-label=${label} value=${draft.text}
    placeholder=${placeholder} disabled=${isFixed} onInput=${draft.write} onChange=${change} /></td>`;
}

/** The kinds in the order of the table; others that have a rule follow. */
const KINDS = ["message", "tool", "risky", "threshold", "interval", "end-of-day", "merge", "safety"];
/** Fields of a rule, with their columns. @type {[string, string][]} */
const COLUMNS = [
  ["age", "Kept for"],
  ["before_messages", "Before messages"],
  ["most", "At most"],
  ["least", "At least"],
];
const AGES = ["age", "before_messages"];

/** @param {{setting: Setting, changed: () => void}} props */
function Retention({ setting, changed }) {
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const preview = useLoaded(() => api.cleanupPreview(), [JSON.stringify(setting.value)], { keep: true });
  const own = setting.value ?? {};
  const rules = setting.effective ?? own;
  const kinds = [...new Set([...KINDS, ...Object.keys(rules)])].filter((kind) => rules[kind] !== undefined);
  const keep = async (/** @type {string} */ kind, /** @type {string} */ field, /** @type {string} */ text) => {
    const rule = typeof rules[kind] === "object" ? { ...rules[kind] } : {};
    if (text.trim() === "") delete rule[field];
    else rule[field] = AGES.includes(field) ? text.trim() : Number(text);
    return store({ ...own, [kind]: Object.keys(rule).length > 0 ? rule : "forever" });
  };
  const store = async (/** @type {unknown} */ value) => {
    try {
      await api.setSetting("retention", value);
      setProblem(null);
      changed();
      return true;
    } catch (error) {
      setProblem(/** @type {Error} */ (error));
      return false;
    }
  };
  const cleanUp = async () => {
    try {
      const done = await api.cleanup();
      say({ text: `Removed ${plural(done.dropped, "checkpoint")}, freed ${size(done.freed_bytes)}.` });
      preview.again();
    } catch (error) {
      setProblem(/** @type {Error} */ (error));
    }
  };
  const plan = preview.value;
  const going = (plan?.decisions ?? []).filter((/** @type {any} */ one) => !one.keep);
  return html`<header class="with-origin"><h2>How long checkpoints are kept</h2>
      <${Origin} setting=${setting} reset=${() => store(null)} /></header><div class="two">
    <div class="box flush"><table class="table rules">
      <thead><tr><th>Kind</th>${COLUMNS.map(([field, column]) => html`<th title=${field === "before_messages" ? "The state before each of your messages is kept for this long" : null}>${column}</th>`)}</tr></thead>
      <tbody>${kinds.map(
        (kind) => html`<tr key=${kind}><th scope="row">${kindWords(kind)}</th>
        ${COLUMNS.map(
          ([
            field,
            column,
          ]) => html`<${RuleCell} key=${field} label=${`${kindWords(kind)}: ${column.toLowerCase()}`} column=${column}
          value=${String((typeof rules[kind] === "object" && rules[kind][field]) || "")} isFixed=${isFixed(setting)}
          placeholder=${field === "age" ? "forever" : "—"}
          keep=${(/** @type {string} */ text) => keep(kind, field, text)} />`,
        )}</tr>`,
      )}</tbody></table>
      <p class="remark soft">Kept until you delete them: checkpoints with a reason, a name or a note, the start of each session,
        and approved rounds.</p>
      ${problem && html`<p class="remark wrong" role="alert">${visible(problem.message)}</p>`}</div>
    <div class="box" aria-live="polite"><b>What a cleanup would remove now</b>
      ${
        preview.error
          ? html`<p class="soft">${isNothingSaved(preview.error) ? "Nothing is saved yet." : visible(/** @type {Error} */ (preview.error).message)}</p>`
          : !plan
            ? html`<${Loading} label="Calculating" />`
            : going.length === 0
              ? html`<p class="soft">Nothing. ${plural(plan.kept, "checkpoint")} kept.</p>`
              : html`
        <p>${plural(going.length, "checkpoint")} of ${plan.kept + going.length}${plan.unneeded_bytes ? `, about ${size(plan.unneeded_bytes)}` : ""}</p>
        <ul>${going.slice(0, MOST_LISTED).map(
          (/** @type {any} */ one) => html`<li><code>
          ${one.id.slice(0, 8)}</code> ${one.name && visible(one.name)} <span class="faint">
          ${visible(one.reason)}</span></li>`,
        )}</ul>
        <button onClick=${cleanUp}>Remove ${plural(going.length, "checkpoint")}</button>`
      }
    </div></div>`;
}

/** @param {{version: number, settings: unknown}} props */
function LeftOutNow({ version, settings }) {
  const loaded = useLoaded(() => api.status(), [version, settings], { keep: true });
  if (!loaded.value) return null;
  const skipped = /** @type {{path: string, reason: string, detail?: string}[]} */ (loaded.value.skipped);
  const total = /** @type {number[]} */ (Object.values(loaded.value.skipped_counts)).reduce((sum, one) => sum + one, 0);
  return html`<div class="box"><b>Not saved now: ${plural(total, "path")}</b>
    <ul>${skipped.slice(0, MOST_LISTED).map(
      (one) => html`<li><code>${visiblePath(one.path)}</code> <span class="faint">
      ${visible(one.reason)}${one.detail ? `: ${visible(one.detail)}` : ""}</span></li>`,
    )}</ul>
    ${total > MOST_LISTED && html`<p class="faint">and ${(total - MOST_LISTED).toLocaleString("en")} more</p>`}</div>`;
}
