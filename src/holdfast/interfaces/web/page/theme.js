// Light, dark, or the system's choice; kept in this browser.

import { signal } from "./html.js";

/** @typedef {"system" | "light" | "dark"} Theme */

const KEY = "holdfast-theme";

/** @type {import("./html.js").Signal<Theme>} */
export const theme = signal(stored());

/** @returns {Theme} */
function stored() {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

/** @param {Theme} chosen */
export function chooseTheme(chosen) {
  theme.value = chosen;
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // Then it lasts until the page is closed.
  }
}

export function toggleTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = theme.value === "system" ? (dark ? "dark" : "light") : theme.value;
  chooseTheme(shown === "dark" ? "light" : "dark");
}
