// A chart of how long something took, as plain SVG, with its figures in words for screen readers.

import { duration, plural } from "./format.js";
import { html } from "./html.js";

const WIDTH = 600;
const HEIGHT = 96;
const GAP = 4;
const FEWEST_BARS = 8;

/** One bar for each bucket, up to the last that has something in it. @param {{buckets: import("./metrics.js").Bucket[], label: string}} props */
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
