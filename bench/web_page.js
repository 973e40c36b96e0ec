// What bench/web_page.py asks of the browser: when something was painted, and the time between frames.

window.bench = {
  /** When a frame that has it was painted. */
  painted(isThere, patience_ms = 20_000) {
    return new Promise((done, failed) => {
      const end = performance.now() + patience_ms;
      const look = () => {
        if (isThere()) requestAnimationFrame(() => done({ at: performance.now(), clock: Date.now() }));
        else if (performance.now() > end) failed(new Error(`not on the page: ${isThere}`));
        else requestAnimationFrame(look);
      };
      look();
    });
  },

  /** The browser records it some time after the frame itself. */
  firstPaint() {
    return new Promise((done) => {
      new PerformanceObserver((found) => {
        for (const one of found.getEntriesByName("first-contentful-paint")) done(one.startTime);
      }).observe({ type: "paint", buffered: true });
    });
  },

  /** From the next click until as many files are compared, each with the line. */
  watchClick(files, line) {
    const isThere = () => {
      const shown = [...document.querySelectorAll(".pane.changes article")];
      return shown.length === files && shown.every((file) => file.textContent.includes(line));
    };
    this.shown = new Promise((done, failed) => {
      const clicked = (click) => this.painted(isThere).then(({ at }) => done(at - click.timeStamp), failed);
      addEventListener("click", clicked, { capture: true, once: true });
    });
  },

  watchRow(words) {
    const rows = () => [...document.querySelectorAll("a.row .reason")];
    this.shown = this.painted(() => rows().some((row) => row.textContent.includes(words)));
  },

  watchFrames() {
    this.frames_ms = [];
    const after = (before) =>
      requestAnimationFrame((now) => {
        this.frames_ms.push(now - before);
        after(now);
      });
    requestAnimationFrame(after);
  },

  isAtTheEnd() {
    const pane = document.querySelector(".pane.timeline");
    return pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 1 && !pane.querySelector(".loading");
  },
};
window.bench.start = window.bench.painted(() => document.querySelector("a.row"));
