// Search reasons, messages, paths and commands of every session, here or in every project, with links to the moments.

import { api } from "./api.js";
import { useDraft } from "./draft.js";
import { plural, visible } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { useLoaded } from "./load.js";
import { address, addressIn, navigate, route } from "./router.js";
import { Empty, FirstSteps, Loading, Refused } from "./states.js";
import { Ago } from "./time-ago.js";
import { agentName, kindWords, titleOf, titleText } from "./words.js";

const TYPING_MS = 160;
const LIMIT = 50;
const TIMES = [
  ["1d", "Last day"],
  ["1w", "Last week"],
  ["30d", "Last month"],
];
const KINDS = ["manual", "message", "tool", "risky", "threshold", "interval", "end-of-day", "merge", "initial"];

/** @typedef {{id: string | null, name: string}} Place a workspace; the server's own has no id */

export function SearchView() {
  const { query } = route.value;
  const asked = query.get("q") ?? "";
  const facets = {
    session: query.get("session") ?? "",
    agent: query.get("agent") ?? "",
    kind: query.get("kind") ?? "",
    after: query.get("after") ?? "",
    tag: query.get("tag") ?? "",
    path: query.get("path") ?? "",
  };
  const [typed, setTyped] = useState(asked);
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  const known = useLoaded(() => api.workspaces(), []);
  const places = placesOf(known.value?.workspaces ?? [], route.value.workspace, query.get("in") === "all");
  const inputs = [JSON.stringify(places)];
  const sessions = useLoaded(() => sessionsOf(places), inputs, { keep: true });
  const isEmpty = !asked.trim() && Object.values(facets).every((value) => !value);
  const loaded = useLoaded(
    (stop) =>
      isEmpty || !sessions.value || places.length === 0 ? null : searched(places, asked, facets, sessions.value, stop),
    [asked, JSON.stringify(facets), sessions.value, ...inputs],
    { keep: true },
  );
  useEffect(() => (box.current?.focus(), void (document.title = "Search · Holdfast")), []);
  const go = (/** @type {Record<string, string>} */ changed) => {
    // From the current address: a timer may call this after a facet was chosen.
    const next = Object.entries({ ...Object.fromEntries(route.value.query), ...changed }).filter(([, value]) => value);
    navigate(`${address("search")}?${new URLSearchParams(next)}`, { replace: true });
  };
  useEffect(() => {
    if (typed === asked) return;
    const soon = setTimeout(() => go({ q: typed }), TYPING_MS);
    return () => clearTimeout(soon);
  }, [typed]);
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const step = (/** @type {1 | -1} */ by) => {
    const links = [.../** @type {NodeListOf<HTMLElement>} */ (list.current?.querySelectorAll("a.hit") ?? [])];
    const place = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    links[Math.min(links.length - 1, Math.max(0, place + by))]?.focus();
  };
  const leave = () => (history.length > 1 ? history.back() : navigate(address()));
  useKeys("Results", [
    { key: "j", does: "Next result", run: () => step(1) },
    { key: "k", does: "Previous result", run: () => step(-1) },
    { key: "Escape", does: "Leave the search", run: leave },
  ]);
  const titles = new Map((sessions.value ?? []).map((one) => [one.id, one.title ?? one.id]));
  const agents = /** @type {string[]} */ ([...new Set((sessions.value ?? []).map((one) => one.agent).filter(Boolean))]);
  /** @param {string} name @param {string} label @param {[string, string][]} options */
  const select = (name, label, options) => html`<label><span class="unseen">${label}</span>
    <select value=${/** @type {Record<string, string>} */ (facets)[name]}
      onChange=${(/** @type {Event} */ event) => go({ [name]: /** @type {HTMLSelectElement} */ (event.target).value })}>
    <option value="">${label}</option>${options.map(
      ([value, words]) => html`<option value=${value}>
      ${words}</option>`,
    )}</select></label>`;
  const hits = loaded.value?.hits ?? [];
  return html`<main class="page"><div class="column search">
    <h1 class="unseen">Search</h1>
    <form role="search" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), go({ q: typed }), step(1))}>
      <input type="search" ref=${box} value=${typed} aria-label="Search everything"
        placeholder="Search reasons, messages, files, commands"
        onInput=${(/** @type {Event} */ event) => setTyped(/** @type {HTMLInputElement} */ (event.target).value)}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) =>
          event.key === "ArrowDown"
            ? (event.preventDefault(), step(1))
            : event.key === "Escape" && !typed && leave()} />
    </form>
    <div class="facets">
      ${
        known.value?.workspaces.length > 1 &&
        html`<label><span class="unseen">Where</span>
        <select value=${query.get("in") ?? ""} onChange=${(/** @type {Event} */ event) =>
          go({ in: /** @type {HTMLSelectElement} */ (event.target).value, session: "" })}>
        <option value="">This project</option><option value="all">Every project</option></select></label>`
      }
      ${select("session", "Any session", /** @type {[string, string][]} */ ([...titles]))}
      ${
        agents.length > 0 &&
        select(
          "agent",
          "Any agent",
          agents.map((one) => [one, agentName(one)]),
        )
      }
      ${select(
        "kind",
        "Any kind",
        KINDS.map((kind) => [kind, kindWords(kind)]),
      )}
      ${select("after", "Any time", /** @type {[string, string][]} */ (TIMES))}
      <${TextFacet} label="Path" value=${facets.path} choose=${(/** @type {string} */ path) => go({ path })} />
      <${TextFacet} label="Tag" value=${facets.tag} choose=${(/** @type {string} */ tag) => go({ tag })} />
      <span class="grow"></span><span class="faint num" aria-live="polite">
        ${loaded.value && !isEmpty && plural(hits.length, "result")}${hits.length === LIMIT ? ", best matches only" : ""}</span>
    </div>
    ${
      isEmpty
        ? html`<${Empty} title="Find the moment">
          <p>Search messages, reasons, file paths and commands.</p><//>`
        : sessions.value?.length === 0
          ? html`<${FirstSteps} />`
          : loaded.error
            ? html`<${Refused} doing="The search failed" error=${loaded.error} again=${loaded.again} />`
            : !loaded.value
              ? html`<${Loading} label="Searching" />`
              : hits.length === 0
                ? html`<${Empty} title="Nothing found"><p>
                ${loaded.value.suggestions.length > 0 ? "Did you mean one of these?" : "Try fewer words or a longer period."}</p>
          ${loaded.value.suggestions.map(
            (/** @type {string} */ word) => html`<button
            onClick=${() => (setTyped(word), go({ q: word }))}>${visible(word)}</button>`,
          )}<//>`
                : html`<ul class="hits" ref=${list}>
                ${hits.map(
                  (/** @type {any} */ hit) => html`<${Hit}
                  key=${`${hit.place.id} ${hit.session_id} ${hit.checkpoint?.id ?? hit.at}`} hit=${hit}
                  project=${places.length > 1 ? hit.place.name : null}
                  title=${titles.get(hit.session_id) ?? hit.session_id} />`,
                )}</ul>`
    }
    ${
      loaded.value &&
      !loaded.value.complete &&
      html`<p
      class="note caution">The index is still catching up. Newer moments may be missing.</p>`
    }
  </div></main>`;
}

/** @param {{label: string, value: string, choose: (value: string) => void}} props */
function TextFacet({ label, value, choose }) {
  const draft = useDraft(value);
  const keep = (/** @type {Event} */ event) => {
    const text = /** @type {HTMLInputElement} */ (event.target).value;
    choose(text.trim());
    draft.kept(text);
  };
  return html`<input type="text" class="facet" aria-label=${label} placeholder=${label} value=${draft.text}
    onInput=${draft.write} onChange=${keep} />`;
}

/** @param {{id: string, name: string, is_own: boolean}[]} known @param {string | null} here @param {boolean} isEverywhere @returns {Place[]} */
function placesOf(known, here, isEverywhere) {
  if (!isEverywhere) return [{ id: here, name: "" }]; // at once, before they are known
  return known.map((one) => ({ id: one.is_own ? null : one.id, name: one.name }));
}

/** @typedef {{id: string, agent: string | null, title: string | null, place: string | null}} FoundSession */

/** A workspace that cannot be read has none. @param {Place[]} places @returns {Promise<FoundSession[]>} */
async function sessionsOf(places) {
  const found = await Promise.all(
    places.map(async ({ id }) =>
      (await api.sessionsOf(id).catch(() => [])).map((/** @type {any} */ one) => ({ ...one, place: id })),
    ),
  );
  return found.flat();
}

/**
 * The hits of all places, best first. One that cannot be searched does not hide the others.
 * @param {Place[]} places @param {string} asked @param {Record<string, string>} facets @param {FoundSession[]} sessions @param {AbortSignal} stop
 */
async function searched(places, asked, facets, sessions, stop) {
  const answers = await Promise.allSettled(
    places.map(async (place) => {
      const own = sessions.filter((one) => one.place === place.id);
      if (facets.agent && !own.some((one) => one.agent === facets.agent)) return null;
      const found = await api.searchIn(place.id, queryText(asked, facets, own), LIMIT, stop);
      return { ...found, hits: found.hits.map((/** @type {any} */ hit) => ({ ...hit, place })) };
    }),
  );
  const failed = answers.find((one) => one.status === "rejected");
  if (failed && answers.every((one) => one.status === "rejected")) throw failed.reason;
  const found = answers.flatMap((one) => (one.status === "fulfilled" && one.value ? [one.value] : []));
  const hits = found.flatMap((one) => one.hits);
  if (places.length > 1) hits.sort((one, other) => other.score - one.score);
  return {
    hits: hits.slice(0, LIMIT),
    suggestions: [...new Set(found.flatMap((one) => one.suggestions))],
    complete: found.every((one) => one.complete),
  };
}

/**
 * The facets as search filters. There is no agent filter, so an agent becomes all of its sessions.
 * @param {string} asked @param {Record<string, string>} facets @param {{id: string, agent: string | null}[]} sessions
 */
function queryText(asked, facets, sessions) {
  const { agent, session, ...others } = facets;
  const wanted = session ? [session] : agent ? sessions.filter((one) => one.agent === agent).map((one) => one.id) : [];
  const filters = [...wanted.map((id) => ["session", id]), ...Object.entries(others)].filter(([, value]) => value);
  return [asked.trim(), ...filters.map(([name, value]) => `${name}:${/\s/.test(value) ? `"${value}"` : value}`)]
    .filter(Boolean)
    .join(" ");
}

/** @param {{hit: any, title: string, project: string | null}} props */
function Hit({ hit, title, project }) {
  const moment = hit.checkpoint;
  const target = addressIn(hit.place.id, "s", hit.session_id, moment?.id);
  const isTitle = (/** @type {any} */ match) => match.field === (moment?.name ? "name" : "reasoning");
  const inTitle = hit.matches.find(isTitle);
  const paths = hit.matches.filter((/** @type {any} */ match) => match.field === "path");
  const others = hit.matches.filter(
    (/** @type {any} */ match) =>
      match !== inTitle &&
      !(match.field === "tool call" && paths.some((/** @type {any} */ path) => match.text.endsWith(path.text))),
  );
  // An automatic reason repeats its path or command, which is listed anyway.
  const [shownTitle, shown] =
    !inTitle || !moment
      ? [moment ? titleOf(moment.name ?? moment.reasoning) : "A message", hit.matches]
      : isSame(inTitle.text, moment.name ?? moment.reasoning)
        ? [html`<${Highlighted} text=${inTitle.text} spans=${inTitle.spans} />`, others]
        : [titleOf(moment.name ?? moment.reasoning), others.length > 0 ? others : hit.matches];
  return html`<li><a class="hit" href=${target}>
    <span class="first"><b>${shownTitle}</b><${Ago} class="num faint" at=${hit.at} /></span>
    ${shown.slice(0, 3).map(
      (/** @type {any} */ match) => html`<span
      class=${match.rolled_back ? "match rolled-back" : "match"}><span class="field">${fieldWords(match)}</span><span>
      <${Highlighted} text=${match.text} spans=${match.spans} /></span></span>`,
    )}
    <span class="faint">${project !== null && `${visible(project)} · `}${visible(title)}${moment && ` · ${kindWords(moment.kind)}`}</span>
  </a></li>`;
}

/** Whether a match is the displayed title. @param {string} text @param {string} words */
function isSame(text, words) {
  return text === words && titleText(words) === visible(words);
}

/** @param {{field: string, role?: string | null}} match */
function fieldWords(match) {
  if (match.role) return match.role === "user" ? "you" : match.role;
  return match.field === "reasoning" ? "reason" : match.field;
}

/** @param {{text: string, spans: [number, number][]}} props */
function Highlighted({ text, spans }) {
  const parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    parts.push(visible(text.slice(at, start)), html`<mark>${visible(text.slice(start, end))}</mark>`);
    at = end;
  }
  parts.push(visible(text.slice(at)));
  return html`${parts}`;
}
