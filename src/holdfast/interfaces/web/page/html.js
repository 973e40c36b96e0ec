// The only module that imports the vendored libraries; all others import from here.

import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { computed, effect, signal, untracked } from "./vendor/signals.js";

export const html = htm.bind(h);

/** @template T @typedef {import("./vendor/signals-core.js").Signal<T>} Signal */
