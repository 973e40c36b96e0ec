// A number that increases with each event; data that depends on it is reloaded.

import { listen } from "./events.js";
import { useEffect, useState } from "./html.js";

/**
 * Many events in a short time count once.
 * @param {number} wait_ms
 * @param {(event: import("./events.js").LiveEvent) => boolean} [concerns]
 */
export function useLiveVersion(wait_ms, concerns = () => true) {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    let waiting = 0;
    const stop = listen((event) => {
      if (waiting || !concerns(event)) return;
      waiting = window.setTimeout(() => {
        waiting = 0;
        setVersion((now) => now + 1);
      }, wait_ms);
    });
    return () => (clearTimeout(waiting), stop());
  }, []);
  return version;
}
