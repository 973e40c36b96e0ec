// Health: what is saved, how fast, how large, and what needs attention.

import { api } from "./api.js";
import { DurationChart, GrowthChart } from "./charts.js";
import { CopyButton } from "./copy-button.js";
import { duration, longAgo, plural, size, visible } from "./format.js";
import { html, useEffect, useState } from "./html.js";
import { useLiveVersion } from "./live-version.js";
import { useLoaded } from "./load.js";
import { durations, gauge } from "./metrics.js";
import { Loading, Refused } from "./states.js";
import { sentence } from "./words.js";

const SIGNS = /** @type {Record<string, [string, string, string]>} */ ({
  ok: ["✓", "ok", "fine"],
  note: ["i", "note", "note"],
  warning: ["▲", "warning", "warning"],
  problem: ["✕", "problem", "problem"],
});

const REFRESH_MS = 1000;

export function HealthView() {
  const version = useLiveVersion(REFRESH_MS);
  useEffect(() => void (document.title = "Health · Holdfast"), []);
  const overview = useLoaded(() => api.overview(), [version], { keep: true });
  const status = useLoaded(() => api.status(), [version], { keep: true });
  const measured = useLoaded(() => api.metrics(), [version], { keep: true });
  const times = useLoaded(() => api.durations(), [version], { keep: true });
  const growth = useLoaded(() => api.growth(), [version], { keep: true });
  const doctor = useLoaded(() => api.doctor(), [], { keep: true });
  const [store, figures, now] = [overview.value, measured.value, status.value];
  const saves = durations(times.value?.saves ?? []);
  const restores = durations(times.value?.restores ?? []);
  if (overview.error && !store) {
    return html`<main class="page"><div class="column"><h1>Health</h1>
      <${Refused} doing="The store could not be read" error=${overview.error} again=${overview.again} /></div></main>`;
  }
  return html`<main class="page"><div class="column">
    <h1>Health</h1>
    ${
      !store
        ? html`<${Loading} label="Loading" />`
        : html`<div class="figures">
      <div class="figure"><b>${size(store.store_bytes)}</b><span>of ${size(store.budget_bytes)} used</span><span
        class="meter" aria-hidden="true"><i class=${store.store_bytes > store.budget_bytes * 0.9 ? "unsure" : "sure"}
        style=${{ width: `${Math.min(100, (100 * store.store_bytes) / store.budget_bytes)}%` }}></i></span></div>
      <div class="figure"><b>${store.checkpoints.toLocaleString("en")}</b><span>
        ${store.checkpoints === 1 ? "checkpoint" : "checkpoints"} in ${plural(store.sessions, "session")}</span></div>
      ${figures !== null && html`<${Watch} figures=${figures} reason=${now?.watch?.reason ?? null} />`}
      ${now && html`<${LastCheck} last=${now.last_check} />`}
      ${
        times.value &&
        html`<${Speed} doing="save" found=${saves} covers="by the daemon and this page since they started"
        none="The daemon and this page have not saved since they started. Other programs keep no times." />
      <${Speed} doing="restore" found=${restores} covers="by any program, after the safety checkpoint"
        none="No recent restore in the log." />`
      }
      ${
        now?.cleanup &&
        html`<div class="figure"><b>${sentence(longAgo(now.cleanup.at))}</b>
        <span>last cleanup: ${plural(now.cleanup.deleted, "checkpoint")} removed, ${size(now.cleanup.freed_bytes)} freed</span></div>`
      }
    </div>
    ${
      growth.value?.length > 1 &&
      html`<h2>Stored content over time</h2><div class="box"><${GrowthChart} points=${growth.value} /></div>`
    }`
    }
    ${
      now?.degraded.length > 0 &&
      html`<h2>Missing from the last checkpoint</h2><div class="box flush">
      ${now.degraded.map(
        (/** @type {any} */ one) => html`<${Finding} status="warning" subject=${one.component}
        finding=${one.reason} cure=${null} />`,
      )}</div>`
    }
    ${
      now?.warnings.length > 0 &&
      html`<h2>Warnings</h2><div class="box flush">
      ${now.warnings.map(
        (/** @type {string} */ one) => html`<${Finding} status="warning" subject="workspace"
        finding=${one} cure=${null} />`,
      )}</div>`
    }
    ${saves && html`<h2>How long saves took</h2><div class="box"><${DurationChart} buckets=${saves.buckets} label="Saves" /></div>`}
    ${restores && html`<h2>How long restores took</h2><div class="box"><${DurationChart} buckets=${restores.buckets} label="Restores" /></div>`}
    <h2>What doctor found</h2>
    ${
      doctor.error
        ? html`<${Refused} doing="The check failed" error=${doctor.error} again=${doctor.again} />`
        : !doctor.value
          ? html`<${Loading} label="Checking" />`
          : html`
      <${Findings} list=${doctor.value.findings} />`
    }
    <h2>Damage</h2><${Check} checked=${status.again} />
  </div></main>`;
}

/** @param {{doing: string, found: import("./metrics.js").Durations | null, covers: string, none: string}} props */
function Speed({ doing, found, covers, none }) {
  if (!found) {
    return html`<div class="figure"><b class="none">—</b><span>${none}</span></div>`;
  }
  return html`<div class="figure"><b>${duration(found.half)}</b>
    <span>p50 · p95 ${duration(found.most)} · ${plural(found.count, doing)} ${covers}</span></div>`;
}

/** @param {{last: {at: string, problems: number} | null}} props */
function LastCheck({ last }) {
  if (!last) return html`<div class="figure"><b class="none">—</b><span>never checked for damage</span></div>`;
  const found = last.problems === 0 ? "no damage found" : `${plural(last.problems, "problem")} found`;
  return html`<div class="figure"><b>${sentence(longAgo(last.at))}</b><span>last check: ${found}</span></div>`;
}

/** @param {{figures: string, reason: string | null}} props `reason` is why the watch cannot be trusted now */
function Watch({ figures, reason }) {
  if (gauge(figures, "watcher_active") !== 1) {
    const [title, words] =
      gauge(figures, "watcher_cpu_seconds_total") === null
        ? ["No daemon", "Hooks save without it, but take longer."]
        : ["Not watched", `The daemon runs, but does not watch this workspace${reason ? `: ${visible(reason)}` : ""}.`];
    return html`<div class="figure"><b>${title}</b><span>${words}</span></div>`;
  }
  const directories = plural(gauge(figures, "watcher_directories") ?? 0, "directory", "directories");
  const overflows = gauge(figures, "watcher_overflows") ?? 0;
  const lost = overflows > 0 ? `, ${plural(overflows, "event overflow")}` : "";
  return html`<div class="figure"><b>Watched</b><span>${directories} watched by the daemon${lost}</span></div>`;
}

/** Problems are shown; the rest is collapsed into one line. @param {{list: any[]}} props */
function Findings({ list }) {
  const order = ["problem", "warning", "note"];
  const open = list
    .filter((one) => one.status !== "ok")
    .sort((one, other) => order.indexOf(one.status) - order.indexOf(other.status));
  const fine = list.filter((one) => one.status === "ok");
  return html`<div class="box flush">
    ${open.map((one) => html`<${Finding} ...${one} />`)}
    ${
      fine.length > 0 &&
      html`<details class="fine"><summary>
      <span class="sign ok" aria-hidden="true">✓</span> ${plural(fine.length, "check")} passed</summary>
      ${fine.map((one) => html`<${Finding} ...${one} />`)}</details>`
    }</div>`;
}

/** @param {{status: string, subject: string, finding: string, cure: string | null}} props */
function Finding({ status, subject, finding, cure: said }) {
  const cure = said?.replace(/^run: /, "");
  const [sign, kind, words] = SIGNS[status] ?? ["▲", "warning", status];
  return html`<div class="finding"><span class=${`sign ${kind}`}><span aria-hidden="true">${sign}</span>
    <span class="unseen">${words}</span></span><b>${visible(subject)}</b><span>${visible(finding)}${
      cure &&
      html`<br />
    <code>${visible(cure)}</code>`
    }</span>
    ${cure ? html`<${CopyButton} text=${cure} label="Copy the fix" />` : html`<span></span>`}</div>`;
}

/** Runs only on a click, because it takes long in a large store. @param {{checked: () => void}} props */
function Check({ checked }) {
  const [asked, setAsked] = useState(0);
  const loaded = useLoaded(() => (asked > 0 ? api.check().finally(checked) : null), [asked]);
  const isRunning = asked > 0 && loaded.busy;
  return html`<div class="box">
    <${CheckResult} isAsked=${asked > 0} loaded=${loaded} />
    <div><button disabled=${isRunning} onClick=${() => setAsked(asked + 1)}>Check the store now</button></div>
  </div>`;
}

/** @param {{isAsked: boolean, loaded: import("./load.js").Loaded<{ok: boolean, problems: {subject: string, problem: string}[]}>}} props */
function CheckResult({ isAsked, loaded }) {
  const { busy, error, value } = loaded;
  if (!isAsked) return html`<p class="soft">A check looks for damage in the store. It changes nothing.</p>`;
  if (busy) {
    return html`<div class="working" role="status"><span>Checking…</span><span class="bar-of unknown"><i></i></span></div>`;
  }
  if (error || !value)
    return html`<p class="note wrong"><b>The check failed.</b> ${/** @type {Error} */ (error).message}</p>`;
  if (value.ok) return html`<p><b>✓ No damage found.</b></p>`;
  return html`<p class="note wrong"><b>${plural(value.problems.length, "problem")} found.</b> Repair: <code>holdfast repair</code></p>
    <ul>${value.problems.map((one) => html`<li><code>${visible(one.subject)}</code> ${visible(one.problem)}</li>`)}</ul>`;
}
