// The HTTP API as functions. Nothing else in the page calls fetch.

import { signal } from "./html.js";
import { route } from "./router.js";
import { countWords, withoutOptions } from "./words.js";

/** Whether the last request reached the server. */
export const reachable = signal(true);

/** A refusal, with the server's message. */
export class Problem extends Error {
  /** @param {number} status @param {{title?: string, detail?: unknown, code?: string, hint?: string}} said */
  constructor(status, said) {
    super(
      typeof said.detail === "string" ? withoutOptions(said.detail) : said.title || `The server answered ${status}.`,
    );
    this.status = status;
    this.code = said.code ?? "";
    this.hint = withoutOptions(said.hint ?? "");
  }
}

/** No answer: the server is not running, or the network is down. */
export class Unreachable extends Error {
  constructor() {
    super("The Holdfast server is not responding.");
    this.hint = "Start it again: holdfast ui";
  }
}

/** @typedef {Record<string, string | number | boolean | null | undefined | (string | number)[]>} Query */

/** @param {string} path @param {Query} [query] */
export function apiAddress(path, query = {}) {
  const { workspace } = route.value;
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => found.append(name, String(one)));
    else if (value !== null && value !== undefined) found.set(name, String(value));
  }
  const text = found.toString();
  const prefix = workspace ? `/api/workspaces/${encodeURIComponent(workspace)}` : "/api";
  return prefix + path + (text ? `?${text}` : "");
}

/** @typedef {{done: number, total: number | null, phase: string | null}} Progress */

const LOOK_AGAIN_MS = 250;

/**
 * @param {string} method @param {string} address
 * @param {{body?: unknown, signal?: AbortSignal, progress?: (progress: Progress) => void}} [more] @returns {Promise<any>}
 */
async function ask(method, address, more = {}) {
  let answer;
  try {
    answer = await fetch(address, {
      method,
      signal: more.signal,
      headers:
        more.body === undefined
          ? { Accept: "application/json, text/plain" }
          : { Accept: "application/json", "Content-Type": "application/json" },
      body: more.body === undefined ? undefined : JSON.stringify(more.body),
      credentials: "same-origin",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    reachable.value = false;
    throw new Unreachable();
  }
  reachable.value = true;
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get("Content-Type") ?? "");
  const said = isJson && text ? JSON.parse(text) : answer.ok ? text : {};
  if (!answer.ok) throw new Problem(answer.status, said);
  return answer.status === 202 ? finished(said, answer.headers.get("Location") ?? "", more) : said;
}

/**
 * Long operations answer 202; their result is fetched when it is ready.
 * @param {any} operation @param {string} address @param {{progress?: (progress: Progress) => void}} more @returns {Promise<any>}
 */
async function finished(operation, address, more) {
  let now = operation;
  while (now.status === "running") {
    more.progress?.(now);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    now = await ask("GET", address);
  }
  if (now.status === "failed") throw new Problem(now.problem?.status ?? 500, now.problem ?? {});
  return now.result;
}

/** @param {string} path @param {Query} [query] @param {AbortSignal} [signal] */
const get = (path, query, signal) => ask("GET", apiAddress(path, query), { signal });
/** @param {string} path @param {unknown} [body] @param {{signal?: AbortSignal, progress?: (progress: Progress) => void}} [more] */
const post = (path, body = {}, more = {}) => ask("POST", apiAddress(path), { body, ...more });
/** @param {string} path @param {unknown} body */
const put = (path, body) => ask("PUT", apiAddress(path), { body });

/** @param {string} session */
const ofSession = (session) => `/sessions/${encodeURIComponent(session)}`;
/** @param {string} session @param {string} moment */
const ofMoment = (session, moment) => `${ofSession(session)}/checkpoints/${encodeURIComponent(moment)}`;

/**
 * @typedef {object} RestoreChoice what to restore; everything if it is empty
 * @property {string[]} [paths]
 * @property {string[]} [hunks]
 * @property {number} [context] the context lines with which the hunks were named
 * @property {Record<string, string>} [components]
 */

/** @param {{total_files: number, total_directories: number}} page */
const differingWords = ({ total_files, total_directories }) =>
  countWords(total_files - total_directories, total_directories);

export const api = {
  workspaces: () => ask("GET", "/api/workspaces"),
  /** @param {string | null} workspace */
  sessionsOf: (workspace) =>
    ask("GET", workspace ? `/api/workspaces/${encodeURIComponent(workspace)}/sessions` : "/api/sessions"),
  /** @param {string | null} workspace */
  overviewOf: (workspace) =>
    ask("GET", workspace ? `/api/workspaces/${encodeURIComponent(workspace)}/overview` : "/api/overview"),
  /**
   * The number of differences between the last approval of a session and its newest moment, or the current workspace
   * if it is at that moment.
   * @param {string | null} workspace @param {{id: string, has_head: boolean, last_approved_at: string | null}} session @returns {Promise<string>}
   */
  unapprovedFiles: async (workspace, { id, has_head, last_approved_at }) => {
    const base = workspace ? `/api/workspaces/${encodeURIComponent(workspace)}` : "/api";
    const from = `${base}${ofMoment(id, last_approved_at ? "approved" : "initial")}/diff`;
    return differingWords(await ask("GET", `${from}${has_head ? "?with=now&" : "/HEAD?"}limit=1`));
  },
  sessions: () => get("/sessions"),
  /** @param {string} session @param {{cursor?: string | null, limit?: number}} page */
  timeline: (session, page) => get(`${ofSession(session)}/timeline`, page),
  /** @param {string} session @param {string} moment @param {AbortSignal} [signal] */
  moment: (session, moment, signal) => get(ofMoment(session, moment), { files: 0 }, signal),
  /**
   * The differences between two moments; null for `newer` means the current workspace;
   * without `older`, compare with the previous step.
   * @param {string} session @param {{older: string | null, newer: string | null}} ends @param {Query} part @param {AbortSignal} [signal]
   */
  diff: (session, { older, newer }, part, signal) => {
    const wanted = { colours: true, ...part };
    if (newer === null) return get(`${ofMoment(session, older ?? "HEAD")}/diff`, { with: "now", ...wanted }, signal);
    if (older === null) return get(`${ofMoment(session, newer)}/diff`, { with: "before", ...wanted }, signal);
    return get(`${ofMoment(session, older)}/diff/${encodeURIComponent(newer)}`, wanted, signal);
  },
  /** A moment's changes, without context lines. @param {string} session @param {string} moment @param {number} limit */
  changesOf: (session, moment, limit) =>
    get(`${ofMoment(session, moment)}/diff`, { with: "before", context: 0, limit }),
  /** The number of differences between a moment and now. @param {string} session @param {string} moment @returns {Promise<string>} "" for nothing */
  changedSince: async (session, moment) =>
    differingWords(await get(`${ofMoment(session, moment)}/diff`, { with: "now", limit: 1 })),
  /** @param {string} session @param {string} moment @param {string} path */
  file: (session, moment, path) => get(`${ofMoment(session, moment)}/file`, { path, colours: true }),
  /** @param {string} session @param {string} moment @param {string} path */
  directory: (session, moment, path) => get(`${ofMoment(session, moment)}/tree`, path ? { path } : {}),
  /** Databases with row counts. @param {string} session @param {string} moment */
  databases: (session, moment) => get(`${ofMoment(session, moment)}/databases`),
  /** @param {string} session @param {string} moment */
  agents: (session, moment) => get(`${ofMoment(session, moment)}/agents`),
  /** @param {string} session @param {string} moment */
  memory: (session, moment) => get(`${ofMoment(session, moment)}/memory`),
  /** @param {string} session @param {string} moment @param {string} path */
  rawAddress: (session, moment, path) => apiAddress(`${ofMoment(session, moment)}/raw`, { path }),
  /** The current file, if it differs from the moment. @param {string} session @param {string} moment @param {string} path */
  rawNowAddress: (session, moment, path) => apiAddress(`${ofMoment(session, moment)}/raw/now`, { path }),
  /** @param {string | null} workspace @param {string} query @param {number} limit @param {AbortSignal} [signal] */
  searchIn: (workspace, query, limit, signal) => {
    const wanted = new URLSearchParams({ q: query, limit: String(limit) });
    const base = workspace ? `/api/workspaces/${encodeURIComponent(workspace)}` : "/api";
    return ask("GET", `${base}/search?${wanted}`, { signal });
  },
  /** @param {string} session */
  rounds: (session) => get(`${ofSession(session)}/rounds`),
  /** @param {string} session */
  approval: (session) => get(`${ofSession(session)}/approval`),
  overview: () => get("/overview"),
  /** The current workspace, compared with its last checkpoint. */
  status: () => get("/status"),
  doctor: () => get("/doctor"),
  check: () => post("/check"),
  /** Metrics in the Prometheus text format. */
  metrics: () => ask("GET", "/metrics"),
  settings: () => get("/settings"),
  /** @param {string} key @param {unknown} value */
  setSetting: (key, value) => put(`/settings/${encodeURIComponent(key)}`, { value }),
  growth: () => get("/growth"),
  durations: () => get("/durations"),
  cleanupPreview: () => get("/cleanup/preview"),
  cleanup: () => post("/cleanup"),
  /** @param {string} session @param {{reasoning: string, name?: string, annotation?: string}} said */
  save: (session, said) => post(`${ofSession(session)}/checkpoints`, said),
  /** @param {string} session @param {string} moment @param {{name?: string | null, tags?: string[]}} changed */
  rename: (session, moment, changed) => put(ofMoment(session, moment), changed),
  /** @param {string} session @param {string} moment @param {string} text */
  annotate: (session, moment, text) => post(`${ofMoment(session, moment)}/annotations`, { text }),
  /** @param {string} session @param {string} moment @param {number} number @param {string} text */
  editNote: (session, moment, number, text) => post(`${ofMoment(session, moment)}/annotations`, { text, number }),
  /** @param {string} session @param {string} moment @param {RestoreChoice} choice @param {AbortSignal} [signal] */
  restorePreview: (session, moment, choice, signal) =>
    post(`${ofMoment(session, moment)}/rollback/preview`, choice, { signal }),
  /**
   * `plan` comes from the preview; the restore is refused if its plan would differ.
   * @param {string} session @param {string} moment @param {RestoreChoice & {plan: string | null}} choice @param {(progress: Progress) => void} progress
   */
  restore: (session, moment, choice, progress) => post(`${ofMoment(session, moment)}/rollback`, choice, { progress }),
  /** @param {string} session */
  undo: (session) => post(`${ofSession(session)}/undo`),
  undoPreview: () => post("/undo", { dry_run: true }),
  /** @param {string | null} plan */
  undoLast: (plan) => post("/undo", { plan }),
  /** @param {string} session */
  redo: (session) => post(`${ofSession(session)}/redo`),
  redoPreview: () => post("/redo", { dry_run: true }),
  redoLast: () => post("/redo"),
  /** @param {string} session @param {string | null} message */
  approve: (session, message) => post(`${ofSession(session)}/approve`, { message }),
  /** @param {string} session */
  resetPreview: (session) => get(`${ofSession(session)}/reset/preview`),
  /** @param {string} session @param {string | null} plan @param {(progress: Progress) => void} progress */
  reset: (session, plan, progress) => post(`${ofSession(session)}/reset`, { plan }, { progress }),
  /** @param {string} session @param {string | null} checkpoints a range, `A..B` */
  acceptPreview: (session, checkpoints) => post(`${ofSession(session)}/accept`, { dry_run: true, checkpoints }),
  /** @param {string} session @param {string} message @param {string} checkpoints a range, `A..B` */
  accept: (session, message, checkpoints) => post(`${ofSession(session)}/accept`, { message, checkpoints }),
};
