// What the server measured: durations, and its metrics in the Prometheus text format. Pure.

const EDGES_MS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/** @typedef {{most_ms: number, count: number}} Bucket durations up to `most_ms` and above the previous bucket */
/** @typedef {{count: number, half: number, most: number, buckets: Bucket[]}} Durations p50 and p95 in milliseconds */

/** @param {number[]} times_ms @returns {Durations | null} null for none */
export function durations(times_ms) {
  if (times_ms.length === 0) return null;
  const sorted = times_ms.toSorted((one, other) => one - other);
  const at = (/** @type {number} */ share) => sorted[Math.ceil(share * sorted.length) - 1];
  const buckets = [...EDGES_MS, Infinity].map((most_ms, index) => {
    const above = EDGES_MS[index - 1] ?? -1;
    return { most_ms, count: sorted.filter((one) => one > above && one <= most_ms).length };
  });
  return { count: sorted.length, half: at(0.5), most: at(0.95), buckets };
}

/** A metric without labels; null if the server does not report it. @param {string} text @param {string} name */
export function gauge(text, name) {
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}
