// Runs before the first paint, so that a chosen theme does not flash. `theme.js` changes it later.
try {
  const chosen = localStorage.getItem("holdfast-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage can be blocked; then the system's theme applies.
}
