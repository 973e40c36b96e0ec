// The server's metrics, parsed from its Prometheus output. Pure.

/** @typedef {{most_ms: number, count: number}} Bucket durations up to `most_ms` and above the previous bucket */
/** @typedef {{count: number, half: number | null, most: number | null, buckets: Bucket[]}} Durations p50 and p95 in milliseconds, as upper bounds from the buckets */

/**
 * @param {string} text the exposition format
 * @param {string} name of a histogram; all its labels are added up
 * @param {number} unit_ms how many milliseconds one unit of the histogram is
 * @returns {Durations}
 */
export function durations(text, name, unit_ms) {
  /** @type {Map<number, number>} */
  const reached = new Map();
  for (const line of text.split("\n")) {
    if (!line.startsWith(`${name}_bucket{`)) continue;
    const bound = /le="([^"]+)"/.exec(line)?.[1];
    const count = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (bound === undefined || Number.isNaN(count)) continue;
    const edge = bound === "+Inf" ? Infinity : Number(bound) * unit_ms;
    reached.set(edge, (reached.get(edge) ?? 0) + count);
  }
  const edges = [...reached.keys()].sort((one, other) => one - other);
  const total = reached.get(Infinity) ?? 0;
  const at = (/** @type {number} */ share) => {
    const edge = edges.find((one) => (reached.get(one) ?? 0) >= share * total);
    return total === 0 || edge === undefined || edge === Infinity ? null : edge;
  };
  const buckets = edges.map((edge, index) => ({
    most_ms: edge,
    count: (reached.get(edge) ?? 0) - (index > 0 ? (reached.get(edges[index - 1]) ?? 0) : 0),
  }));
  return { count: total, half: at(0.5), most: at(0.95), buckets };
}

/** A metric without labels; null if the server does not report it. @param {string} text @param {string} name */
export function gauge(text, name) {
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}
