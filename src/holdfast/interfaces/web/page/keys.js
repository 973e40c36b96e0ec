// All keyboard shortcuts in one table; `?` shows the active ones.

import { useLayoutEffect } from "./html.js";

/**
 * @typedef {object} Binding
 * @property {string} key as in KeyboardEvent.key; "mod+k" is Ctrl-K or ⌘K
 * @property {string} does the description for users
 * @property {() => void} run
 * @property {string} [group] the heading it is listed under
 */

/** @type {Set<Binding>} */
const bound = new Set();

/** The active bindings; a later one with the same key overrides an earlier one. @returns {Binding[]} */
export function boundKeys() {
  const byKey = new Map([...bound].map((binding) => [binding.key, binding]));
  return [...byKey.values()];
}

/** Binds keys for as long as the component is shown. @param {string} group @param {Binding[]} bindings @param {unknown[]} [inputs] */
export function useKeys(group, bindings, inputs = []) {
  // Before the next key, not after the next render: otherwise the second of two quick presses would use the old binding.
  useLayoutEffect(() => {
    for (const binding of bindings) bound.add(Object.assign(binding, { group }));
    return () => bindings.forEach((binding) => bound.delete(binding));
  }, inputs);
}

/** @param {KeyboardEvent} event */
function name(event) {
  const mod = event.ctrlKey || event.metaKey ? "mod+" : "";
  return mod + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
}

/** @param {EventTarget | null} target */
function takesText(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && /^(checkbox|radio|range)$/.test(target.type))
  );
}

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return;
    const pressed = name(event);
    if (takesText(event.target) && !pressed.startsWith("mod+")) return;
    if (document.querySelector("dialog[open]") && pressed !== "?") return;
    const found = [...bound].reverse().find((binding) => binding.key === pressed);
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}
