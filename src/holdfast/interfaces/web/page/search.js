// Search reasons, messages, paths and commands of every session, with links to the moments.

import { api } from "./api.js";
import { useDraft } from "./draft.js";
import { exactTime, longAgo, plural, visible } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { useLoaded } from "./load.js";
import { address, momentAddress, navigate, route } from "./router.js";
import { Empty, Loading, Refused } from "./states.js";
import { agentName, kindWords, titleOf, titleText } from "./words.js";

const TYPING_MS = 160;
const LIMIT = 50;
const TIMES = [
  ["1d", "Last day"],
  ["1w", "Last week"],
  ["30d", "Last month"],
];
const KINDS = ["manual", "tool", "risky", "message", "initial"];

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
  const sessions = useLoaded(() => api.sessions(), []);
  const whole = queryText(asked, facets, sessions.value ?? []);
  const loaded = useLoaded((stop) => (whole ? api.search(whole, { limit: LIMIT }, stop) : null), [whole], {
    keep: true,
  });
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
  const titles = new Map((sessions.value ?? []).map((/** @type {any} */ one) => [one.id, one.title ?? one.id]));
  const agents = [...new Set((sessions.value ?? []).map((/** @type {any} */ one) => one.agent).filter(Boolean))];
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
        ${loaded.value && whole && plural(hits.length, "result")}${hits.length === LIMIT ? ", best matches only" : ""}</span>
    </div>
    ${
      !whole
        ? html`<${Empty} title="Find the moment">
          <p>Search messages, reasons, file paths and commands.</p><//>`
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
                  key=${`${hit.session_id} ${hit.checkpoint?.id ?? hit.at}`} hit=${hit}
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

/** @param {{hit: any, title: string}} props */
function Hit({ hit, title }) {
  const moment = hit.checkpoint;
  const target = moment ? momentAddress(hit.session_id, moment.id) : momentAddress(hit.session_id);
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
    <span class="first"><b>${shownTitle}</b><time class="num faint"
      datetime=${hit.at} title=${exactTime(hit.at)}>${longAgo(hit.at)}</time></span>
    ${shown.slice(0, 3).map(
      (/** @type {any} */ match) => html`<span
      class=${match.rolled_back ? "match rolled-back" : "match"}><span class="field">${fieldWords(match)}</span><span>
      <${Highlighted} text=${match.text} spans=${match.spans} /></span></span>`,
    )}
    <span class="faint">${visible(title)}${moment && ` · ${kindWords(moment.kind)}`}</span>
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
