// Charts as plain SVG, with text for screen readers.

import { clock, dayOf, duration, plural, size } from "./format.js";
import { html } from "./html.js";

const WIDTH = 600;
const HEIGHT = 96;
const GAP = 4;
const FEWEST_BARS = 8;

/** One bar per bucket, up to the last non-empty one. @param {{buckets: import("./metrics.js").Bucket[], label: string}} props */
export function DurationChart({ buckets, label }) {
  const last = buckets.findLastIndex((bucket) => bucket.count > 0);
  if (last < 0) return null;
  const shown = buckets.slice(0, Math.max(last + 1, FEWEST_BARS));
  const most = Math.max(...shown.map((bucket) => bucket.count));
  const width = WIDTH / shown.length;
  const told = shown
    .filter((bucket) => bucket.count > 0)
    .map((bucket) => `${plural(bucket.count, "time")} ${boundWords(bucket)}`);
  return html`<figure class="chart">
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${label}: ${told.join(", ")}`}>
      ${shown.map((bucket, index) => {
        const height = bucket.count === 0 ? 0 : Math.max(3, (bucket.count / most) * HEIGHT);
        return html`<rect x=${index * width + GAP / 2} y=${HEIGHT - height} width=${Math.max(1, width - GAP)} height=${height} />`;
      })}
    </svg>
    <figcaption class="num">${shown.map((bucket) => html`<span>${boundWords(bucket)}</span>`)}</figcaption>
  </figure>`;
}

/** @param {import("./metrics.js").Bucket} bucket */
function boundWords(bucket) {
  return bucket.most_ms === Infinity ? "longer" : `≤ ${duration(bucket.most_ms)}`;
}

/** The size of the store over time, with a step at each checkpoint. @param {{points: {at: string, bytes: number}[]}} props */
export function GrowthChart({ points }) {
  const [first, last] = [points[0], points[points.length - 1]];
  const [start, end] = [Date.parse(first.at), Date.parse(last.at)];
  const most = Math.max(1, last.bytes);
  const x = (/** @type {string} */ at) => ((Date.parse(at) - start) / Math.max(1, end - start)) * WIDTH;
  const y = (/** @type {number} */ bytes) => HEIGHT - (bytes / most) * (HEIGHT - GAP);
  const line = points
    .map((one, index) => (index === 0 ? `M0 ${y(one.bytes)}` : `H${x(one.at).toFixed(1)} V${y(one.bytes).toFixed(1)}`))
    .join(" ");
  const words = `From ${size(first.bytes)} ${whenWords(first.at)} to ${size(last.bytes)} ${whenWords(last.at)}`;
  return html`<figure class="chart growth">
    <div class="scale num"><span>${size(last.bytes)}</span><span>0</span></div>
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${words}>
      <path class="area" d=${`${line} V${HEIGHT} H0 Z`} /><path class="line" d=${line} />
    </svg>
    <figcaption class="num"><span>${whenWords(first.at)}</span><span>${whenWords(last.at)}</span></figcaption>
  </figure>`;
}

/** @param {string} at */
function whenWords(at) {
  return `${dayOf(at)} ${clock(at)}`;
}
