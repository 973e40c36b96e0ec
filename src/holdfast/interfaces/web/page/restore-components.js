// The state besides files in the restore preview: which components are restored, and how.
//
// A component is restored in a mode. `files` leaves it as it is, `exact` restores all of it. A part is chosen by its
// key: `some:KEY,KEY`, and for git after the way of HEAD and index: `exact:NAME NAME`.

import { visible } from "./format.js";
import { html, useRef } from "./html.js";
import { componentWords, sentence, withoutOptions } from "./words.js";

/** @typedef {{name: string, mode: string, actions?: string[], blocked?: string[], choices?: Record<string, string>}} Component */
/** @typedef {{branch: string | null, commit: string | null}} GitPlace */

const LEAVE = "files";
const EXACT = "exact";
/** @type {Record<string, string>} */
const GIT_MODES = {
  files: "Leave git unchanged",
  exact: "Restore HEAD and the index too",
  branch: "Restore on a new branch",
  revert: "Add a revert commit",
};

/**
 * What the server offers in a warning, as the page can offer it: `external` and its lines.
 * @param {string} warning @returns {{name: string, words: string} | null}
 */
export function offerIn(warning) {
  const found =
    /^(\w+): differs, and is not restored without --\w+: ([^]*)$/.exec(warning) ??
    /^(worktrees): ([^]*) and is not restored; to restore its files: --with worktrees$/.exec(warning);
  return found && { name: found[1], words: found[2] };
}

/** The components that a plan restores, in words for its button. @param {{components: Component[]}} plan @returns {string[]} */
export function restoredComponents({ components }) {
  return components.filter((one) => (one.actions ?? []).length > 0).map((one) => componentWords(one.name));
}

/**
 * @param {object} props
 * @param {{components: Component[], git: {now: GitPlace, then: GitPlace, modes: string[]} | null, warnings: string[]}} props.plan
 * @param {boolean} props.isPart whether some files are left out; then only files are restored
 * @param {boolean} props.canChoose
 * @param {Record<string, string>} props.components @param {(components: Record<string, string>) => void} props.setComponents
 */
export function OtherState({ plan, isPart, canChoose, components, setComponents }) {
  const offers = plan.warnings.flatMap((one) => offerIn(one) ?? []);
  const offered = offers.filter((offer) => !plan.components.some((one) => one.name === offer.name));
  /** @type {Component[]} */
  const all = [...plan.components, ...offered.map(({ name }) => ({ name, mode: LEAVE }))];
  const shown = all.filter(
    (one) => isActive(one) || components[one.name] !== undefined || offers.some((offer) => offer.name === one.name),
  );
  const idle = all.filter((one) => !shown.includes(one)).map((one) => componentWords(one.name));
  const hasGit = plan.git && !all.some((one) => one.name === "git");
  if (shown.length + idle.length === 0 && !hasGit) return null;
  if (isPart)
    return html`<section aria-label="Other state"><h3>Other state</h3>
      <p class="soft">Stays as it is, because you left out some files.</p></section>`;
  const choose = (/** @type {string} */ name) => (/** @type {string} */ mode) =>
    setComponents({ ...components, [name]: mode });
  return html`<section aria-label="Other state"><h3>Other state</h3>
    ${shown.map(
      (
        one,
      ) => html`<${ComponentChoice} key=${one.name} one=${one} asked=${components[one.name] ?? null} choose=${canChoose ? choose(one.name) : null}
      offers=${offers.filter((offer) => offer.name === one.name).map((offer) => offer.words)} />`,
    )}
    ${hasGit && plan.git && html`<${GitChoice} git=${plan.git} chosen=${components.git ?? LEAVE} choose=${canChoose ? choose("git") : null} />`}
    ${idle.length > 0 && html`<p class="soft">${sentence(idle.join(", "))}: nothing to restore</p>`}
  </section>`;
}

/** @param {Component} one */
function isActive({ actions = [], blocked = [], choices = {} }) {
  return actions.length + blocked.length + Object.keys(choices).length > 0;
}

/** `asked` is the mode that the user chose. @param {{one: Component, offers: string[], asked: string | null, choose: ((mode: string) => void) | null}} props */
function ComponentChoice({ one, offers, asked, choose }) {
  const parts = useRef(/** @type {Map<string, string>} */ (new Map()));
  for (const [key, line] of Object.entries(one.choices ?? {})) parts.current.set(key, line);
  const actions = one.actions ?? [];
  const isOn = asked === null ? actions.length > 0 : asked !== LEAVE;
  const blocked = one.blocked ?? [];
  const said = actions.length > 0 ? actions : blocked.length > 0 ? blocked : offers;
  const name = sentence(componentWords(one.name));
  const isDivided = one.name === "git" ? parts.current.size > 0 : parts.current.size > 1;
  return html`<div class="component">
    <label><input type="checkbox" checked=${isOn} disabled=${!choose} onChange=${() => choose?.(isOn ? LEAVE : EXACT)} />
      <b>${visible(name)}</b></label>
    ${
      isDivided && choose
        ? html`<${Parts} one=${one} mode=${asked ?? one.mode} parts=${parts.current} choose=${choose} />`
        : html`<ul class="soft">${said.map((words) => html`<li>${visible(withoutOptions(words))}</li>`)}</ul>`
    }</div>`;
}

/** A checkbox for each part. @param {{one: Component, mode: string, parts: Map<string, string>, choose: (mode: string) => void}} props */
function Parts({ one, mode, parts, choose }) {
  const isGit = one.name === "git";
  const [way, named] = [mode.split(":", 1)[0], mode.slice(mode.indexOf(":") + 1)];
  const keys = mode.includes(":") ? named.split(isGit ? " " : ",") : !isGit && way === EXACT ? [...parts.keys()] : [];
  const chosen = new Set(keys);
  const toggle = (/** @type {string} */ key) => {
    if (!chosen.delete(key)) chosen.add(key);
    if (isGit) choose(chosen.size > 0 ? `${way}:${[...chosen].join(" ")}` : way);
    else choose(chosen.size === 0 ? LEAVE : chosen.size === parts.size ? EXACT : `some:${[...chosen].join(",")}`);
  };
  const others = (one.actions ?? []).filter((line) => ![...parts.values()].includes(line));
  return html`<ul class="soft">
    ${isGit && others.map((line) => html`<li>${visible(withoutOptions(line))}</li>`)}
    ${[...parts].map(
      ([
        key,
        line,
      ]) => html`<li key=${key}><label><input type="checkbox" checked=${chosen.has(key)} onChange=${() => toggle(key)} />
        <span>${visible(line)}</span></label></li>`,
    )}</ul>`;
}

/** @param {{git: {now: GitPlace, then: GitPlace, modes: string[]}, chosen: string, choose: ((mode: string) => void) | null}} props */
function GitChoice({ git, chosen, choose }) {
  const at = (/** @type {GitPlace} */ place) =>
    html`<code>${visible(place.branch ?? "detached")}</code>${place.commit && html` @ <code>${place.commit.slice(0, 7)}</code>`}`;
  return html`<div class="component"><b class="alone">Git</b><div class="git-choice"><span class="soft">now ${at(git.now)}, then ${at(git.then)}</span>
    ${
      choose &&
      html`<select aria-label="How to restore git" value=${chosen}
      onChange=${(/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value)}>
      ${[LEAVE, ...git.modes.filter((mode) => mode !== LEAVE)].map(
        (mode) => html`<option value=${mode}>${GIT_MODES[mode] ?? mode}</option>`,
      )}</select>`
    }</div></div>`;
}
